"""What moves from memory into segments, what stays readable meanwhile, and what a failed step leaves behind."""

from __future__ import annotations

import errno
import gc
import weakref
from dataclasses import replace

import pytest

from tests.engine.rig import SMALL, Rig, fill, records, trickle, with_limits
from topics.core.commands import Append
from topics.core.dedupe import IdempotencyKey, ProducerKey
from topics.core.run import MemoryRun
from topics.engine import images
from topics.errors import Throttled
from topics.limits import PACKS_MAX
from topics.model import Reason
from topics.storage.segmentrun import SegmentRun

# ---- memory becomes segments


def test_memory_becomes_segments_and_reads_are_the_same_bytes() -> None:
    rig = Rig()
    fill(rig)
    rig.delete("odd", match="tag:1")
    before = rig.text("odd")
    state = rig.engine.state("odd")
    rig.checkpoint()
    assert [type(run) for run in rig.log("odd").parts()] == [SegmentRun]
    assert rig.text("odd") == before and rig.engine.state("odd") == state
    fill(rig)
    both = rig.text("odd")
    rig.checkpoint()
    assert rig.text("odd") == both
    rig.kill()
    assert rig.text("odd") == both
    assert rig.engine.report.facts == 0, "nothing of it was in the WAL any more"


def test_memory_that_was_stored_is_let_go() -> None:
    rig = Rig()
    rig.write("odd", *range(1000))
    rig.log("odd").freeze_tail()
    (run,) = rig.log("odd").runs
    assert isinstance(run, MemoryRun)
    block = weakref.ref(run.block)
    del run
    rig.checkpoint()
    gc.collect()
    assert block() is None


def test_memory_that_was_evicted_is_let_go_without_a_checkpoint() -> None:
    rig = Rig()
    rig.configure("odd", cap_records=600)
    rig.write("odd", *range(600))
    (run,) = rig.log("odd").runs
    assert isinstance(run, MemoryRun)
    block = weakref.ref(run.block)
    del run
    rig.write("odd", *range(600))
    gc.collect()
    assert block() is None


def test_wal_files_go() -> None:
    rig = Rig()
    rig.configure("odd")
    rig.configure("even")
    for _ in range(20):
        rig.write("odd", "x" * 10_000)
        rig.write("even", "x" * 10_000)
    assert len(rig.files("/wal/")) > 6
    rig.checkpoint()
    assert sum(name.endswith(".wal") for name in rig.files("/wal/")) == 2
    rig.checkpoint()
    rig.kill()
    assert len(rig.read("odd")) == len(rig.read("even")) == 20


def test_a_log_that_nobody_wrote_to_keeps_no_wal_file() -> None:
    """What is covered is known log by log, those that are gone included."""
    rig = Rig()
    rig.write("odd", 1)
    rig.write("gone", 1)
    rig.checkpoint()
    rig.drop("gone")
    for _ in range(30):
        rig.write("odd", "x" * 10_000)
    rig.checkpoint()
    assert sum(name.endswith(".wal") for name in rig.files("/wal/")) == 2


# ---- between capture and install


def test_marks_made_meanwhile_survive() -> None:
    rig = Rig()
    fill(rig)
    rig.checkpoint()
    fill(rig)
    job = rig.capture()
    rig.delete("odd", match="tag:1")
    expected = rig.text("odd")
    count = rig.engine.state("odd").count
    rig.finish(job)
    assert rig.text("odd") == expected and rig.engine.state("odd").count == count
    rig.kill()
    assert rig.text("odd") == expected and rig.engine.state("odd").count == count
    rig.checkpoint()
    rig.crash()
    assert rig.text("odd") == expected and rig.engine.state("odd").count == count
    assert sum(run.live_count for run in rig.log("odd").runs) == count


def test_marks_made_during_the_capture_of_a_merge_are_counted_once() -> None:
    rig = trickle(PACKS_MAX + 1)
    capture = rig.engine.begin_checkpoint()
    job = next(capture)
    assert job.rewritten
    before = rig.engine.state("t0").count
    rig.delete("t0", match="tag:1")
    assert rig.engine.state("t0").count < before
    *_, job = capture
    rig.finish(job)
    log = rig.log("t0")
    assert sum(run.live_count for run in log.runs) == log.count == len(rig.read("t0"))
    rig.kill()
    assert rig.log("t0").count == len(rig.read("t0")) == log.count


def test_topics_dropped_and_recreated_meanwhile() -> None:
    rig = Rig()
    for name in ("odd", "even", "third"):
        fill(rig, name)
    rig.checkpoint()
    for name in ("odd", "even", "third"):
        fill(rig, name)
    job = rig.capture()
    rig.drop("odd")
    rig.drop("even")
    rig.write("even", "new life")
    expected = rig.text("third")
    rig.finish(job)
    for end in (rig.checkpoint, rig.crash, rig.stop):
        assert [state.topic for state in rig.engine.topics()] == ["even", "third"]
        assert rig.data("even") == ["new life"] and rig.text("third") == expected
        end()


def test_a_topic_dropped_while_others_are_captured_leaves_nothing_in_the_snapshot() -> None:
    rig = Rig()
    for name in ("odd", "even", "third"):
        fill(rig, name)
    rig.checkpoint()
    for name in ("odd", "even", "third"):
        fill(rig, name)
    capture = rig.engine.begin_checkpoint()
    next(capture)
    log_id = rig.log("odd").log_id
    rig.drop("odd")
    *_, job = capture
    rig.finish(job)
    assert images.log_key(log_id) not in rig.engine.store.snapshots.load()
    rig.kill()
    assert [state.topic for state in rig.engine.topics()] == ["even", "third"]
    rig.checkpoint()
    assert len(rig.read("even")) == 40


def test_everything_evicted_or_dead_meanwhile() -> None:
    rig = Rig()
    rig.configure("odd", ttl_ms=10_000)
    rig.configure("even")
    fill(rig, "odd")
    fill(rig, "even")
    job = rig.capture()
    rig.clock.advance(20_000)
    assert rig.read("odd") == []
    rig.delete("even", before_seq=100)
    rig.finish(job)
    assert rig.read("odd") == rig.read("even") == []
    rig.checkpoint()
    assert [name for name in rig.files("segments") if name.endswith(".data")] == []
    rig.kill()
    assert rig.read("odd") == rig.read("even") == []
    assert [gap.reason for gap in rig.gaps("odd")] == [Reason.TTL]
    assert rig.gaps("even") == [], "deleted is not lost"


def test_what_was_written_meanwhile_stays_in_memory_and_in_the_wal() -> None:
    rig = Rig()
    rig.write("odd", 1, 2)
    job = rig.capture()
    rig.write("odd", 3)
    rig.finish(job)
    assert rig.data("odd") == [1, 2, 3]
    rig.kill()
    assert rig.data("odd") == [1, 2, 3] and rig.engine.report.facts == 1


def test_a_full_wal_file_stays_when_something_in_it_was_written_meanwhile() -> None:
    rig = Rig()
    rig.write("odd", 1, 2)
    job = rig.capture()
    rig.write("odd", 3)
    large = "x" * SMALL.wal.file_bytes
    rig.write("odd", large)
    rig.finish(job)
    rig.kill()
    assert rig.data("odd") == [1, 2, 3, large]


def test_entries_of_a_snapshot_are_in_the_order_of_their_names() -> None:
    """A set of names has another order in each process: the same state would be another file there."""
    rig = Rig()
    topics = [f"t{number:02d}" for number in range(20)]
    for topic in reversed(topics):
        rig.configure(topic, durability="fsync")
        rig.stage(f"stage-{topic}", topic, 1)
    job = rig.capture()
    assert [key for key in job.images if key.startswith(b"t/")] == [f"t/{topic}".encode() for topic in topics]
    assert [key for key in job.images if key.startswith(b"s/")] == [f"s/stage-{topic}".encode() for topic in topics]
    rig.finish(job)


def test_a_capture_of_many_logs_comes_in_slices() -> None:
    rig = Rig()
    rig.configure("parts", partitions=300)
    for partition in range(300):
        rig.submit("parts", partition, partition=partition)
    rig.work()
    assert sum(1 for _ in rig.engine.begin_checkpoint()) > 300


# ---- failures


@pytest.mark.parametrize(
    ("call", "path"),
    [
        ("open", "*/segments/*"),
        ("write_at", "*/segments/*.data*"),
        ("sync", "*/segments/*"),
        ("rename", "*/segments/*"),
        ("sync_dir", "*/segments"),
        ("write_at", "*/snapshots/*"),
        ("sync", "*/snapshots/*"),
        ("rename", "*/snapshots/*"),
        ("sync_dir", "*/snapshots"),
    ],
)
def test_a_failed_write_changes_nothing_and_the_next_checkpoint_succeeds(call: str, path: str) -> None:
    rig = Rig()
    fill(rig)
    rig.write("even", 1)
    rig.checkpoint()
    fill(rig)
    rig.delete("odd", match="tag:1")
    rig.drop("even")
    rig.write("third", 3, key=IdempotencyKey("k"))
    expected = rig.text("odd")
    rule = rig.fs.fail(call, errno.ENOSPC, path=path)
    with pytest.raises(OSError, match="No space"):
        rig.engine.checkpoint()
    assert rule.fired == 1 and isinstance(rig.engine.checkpoint_error, OSError)
    assert rig.text("odd") == expected
    rig.work()
    fork = rig.disk.fork().crash("kept")
    assert Rig(disk=fork).text("odd") == expected
    rig.checkpoint()
    assert rig.engine.checkpoint_error is None and rig.text("odd") == expected
    rig.kill()
    assert rig.engine.report.facts == 0 and rig.engine.report.notes == [], "nothing was left lying about"
    assert rig.text("odd") == expected
    assert rig.write("third", 3, key=IdempotencyKey("k")).deduped
    assert [state.topic for state in rig.engine.topics()] == ["odd", "third"]


def test_a_topic_recreated_after_a_failed_checkpoint_stays() -> None:
    """The failed one wanted to remove the topic's old image; the new image must not go with it later."""
    rig = Rig()
    rig.write("odd", "old")
    rig.write("even", 1)
    rig.checkpoint()
    rig.drop("odd")
    rig.fs.fail("write_at", path="*/snapshots/*")
    with pytest.raises(OSError, match="Input/output"):
        rig.engine.checkpoint()
    rig.write("odd", "new")
    rig.checkpoint()
    rig.write("even", 2)
    rig.checkpoint()
    rig.kill()
    assert rig.data("odd") == ["new"] and rig.data("even") == [1, 2]


def test_files_that_cannot_be_removed_are_tried_again() -> None:
    rig = Rig()
    fill(rig)
    rig.checkpoint()
    rig.delete("odd", before_seq=100)
    rig.fs.fail("unlink", path="*/segments/*")
    rig.checkpoint()
    assert "could not be removed" in rig.engine.problems[0]
    assert rig.engine.checkpoint_error is None and rig.read("odd") == []
    rig.write("odd", 1)
    rig.checkpoint()
    assert rig.engine.problems == []
    assert sum(name.endswith(".data") for name in rig.files("segments")) == 1


def test_what_a_failed_checkpoint_did_not_store_still_counts_against_memory() -> None:
    rig = Rig(with_limits(dirty_bytes_max=1000, checkpoint_ms=60_000))
    rig.configure("odd")
    rig.fs.fail("write_at", errno.ENOSPC, path="*/snapshots/*", always=True)
    for _ in range(4):
        rig.write("odd", "x" * 1000)
        with pytest.raises(OSError, match="No space"):
            rig.engine.checkpoint()
    assert not rig.engine.checkpoint_due(), "a disk that is full is not tried again at once"
    with pytest.raises(Throttled) as refused:
        rig.write("odd", "x" * 1000)
    assert refused.value.detail["limit"] == "dirty_bytes"
    rig.clock.advance(60_000)
    assert rig.engine.checkpoint_due()
    rig.fs.clear()
    rig.checkpoint()
    assert rig.write("odd", 1).first_seq == 5


# ---- what a snapshot costs and holds


def test_dedupe_entries_survive_and_leave_the_snapshot_when_they_are_dead() -> None:
    rig = Rig()
    rig.configure("odd", idempotency_window_ms=60_000)
    rig.write("odd", 1, key=IdempotencyKey("a"))
    rig.checkpoint()
    rig.write("odd", 2, key=ProducerKey("p", 1, 1))
    rig.checkpoint()
    rig.write("odd", 3, key=IdempotencyKey("c"))
    for end in (rig.kill, rig.stop, rig.crash):
        end()
        assert rig.write("odd", 1, key=IdempotencyKey("a")).seqs == range(1, 2)
        assert rig.write("odd", 2, key=ProducerKey("p", 1, 1)).seqs == range(2, 3)
    assert rig.write("odd", 3, key=IdempotencyKey("c")).deduped
    assert chunk_count(rig) == 3
    rig.clock.advance(60_001)
    assert not rig.write("odd", 4, key=IdempotencyKey("a")).deduped
    rig.checkpoint()
    assert chunk_count(rig) == 2, "that of the producer, and the new one"
    rig.clock.advance(25 * 3600 * 1000)
    rig.write("odd", 5)
    rig.checkpoint()
    assert chunk_count(rig) == 0


def chunk_count(rig: Rig) -> int:
    return sum(key.startswith(b"d/") for key in rig.engine.store.snapshots.load())


@pytest.fixture(scope="module")
def ten_thousand() -> Rig:
    """10 000 topics with 10 records each, stored."""
    rig = Rig(replace(SMALL, wal=replace(SMALL.wal, file_bytes=8 << 20)))
    for number in range(10_000):
        rig.engine.submit(Append(f"t{number}", records(*range(10))))
    rig.work()
    rig.checkpoint()
    return rig


def test_ten_thousand_small_topics_are_few_files(ten_thousand: Rig) -> None:
    assert len(ten_thousand.files()) < 300
    assert ten_thousand.data("t7") == ten_thousand.data("t9999") == list(range(10))


def test_a_snapshot_costs_what_changed(ten_thousand: Rig) -> None:
    rig = ten_thousand
    rig.work()
    before = rig.files("snapshots")
    rig.write("t5000", "one more")
    assert sum(1 for _ in rig.engine.begin_checkpoint()) <= 2, "only what is dirty is captured"
    rig.engine.checkpointer.dirty.add(rig.log("t5000").log_id)
    rig.checkpoint()
    (new,) = (content for path, content in rig.files("snapshots").items() if path not in before)
    assert len(new) < 1000
    assert len(rig.files("segments")) <= 4


def test_many_topics_come_back(ten_thousand: Rig) -> None:
    copy = Rig(ten_thousand.options, ten_thousand.disk.fork().kill())
    assert len(copy.engine.machine.topics) == 10_000
    assert copy.data("t123") == list(range(10)) and copy.engine.machine.totals.count >= 100_000


# ---- ephemeral topics


@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
def test_an_ephemeral_head_survives_a_checkpoint(end: str) -> None:
    rig = Rig()
    rig.configure("odd", durability="ephemeral")
    rig.write("odd", 1, 2, 3)
    if end != "stop":
        rig.checkpoint()
    assert rig.data("odd") == [1, 2, 3]
    getattr(rig, end)()
    assert rig.holding(b'"data":2') == []
    (gap,) = rig.gaps("odd")
    assert (gap.gap_from, gap.gap_to, gap.reason) == (1, 3, Reason.RESTART)
    assert rig.write("odd", 4).first_seq == 4
    assert rig.seqs("odd") == [4]


def test_an_ephemeral_topic_that_lost_nothing_tells_of_nothing() -> None:
    rig = Rig()
    rig.configure("odd", durability="ephemeral")
    rig.write("odd", 1, 2)
    rig.delete("odd", before_seq=3)
    rig.stop()
    assert rig.gaps("odd") == [] and list(rig.log("odd").holes) == []
    assert rig.write("odd", 3).first_seq == 3


@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
@pytest.mark.parametrize("checkpoints", [False, True])
def test_what_was_stored_before_a_topic_became_ephemeral_stays(end: str, checkpoints: bool) -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.write("odd", *range(600))
    rig.write("odd", 600)
    rig.configure("odd", durability="ephemeral")
    rig.write("odd", *["memory"] * 600)
    if checkpoints:
        rig.checkpoint()
        rig.write("odd", *["memory"] * 5)
        rig.checkpoint()
    getattr(rig, end)()
    assert rig.data("odd")[:601] == list(range(601))
    assert "memory" not in rig.data("odd")[601:1000] or end == "stop"
    assert all(gap.reason is Reason.RESTART and gap.gap_from > 601 for gap in rig.gaps("odd"))
    if checkpoints or end == "stop":
        assert rig.log("odd").head_seq >= 1201


def test_an_ephemeral_topic_that_becomes_disk_keeps_its_records_from_then_on() -> None:
    rig = Rig()
    rig.configure("odd", durability="ephemeral")
    rig.write("odd", 1, 2)
    rig.configure("odd", durability="fsync")
    rig.write("odd", 3)
    lost = Rig(disk=rig.disk.fork().kill())
    assert lost.data("odd") == [3] and lost.seqs("odd") == [3]
    assert [(gap.gap_from, gap.gap_to) for gap in lost.gaps("odd")] == [(1, 2)]
    rig.checkpoint()
    assert rig.data("odd") == [1, 2, 3]
    rig.crash()
    assert rig.data("odd") == [3], "a checkpoint stores nothing of what came while it was ephemeral"
