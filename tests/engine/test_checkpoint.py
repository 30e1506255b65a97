"""What moves from memory into segments, what stays readable meanwhile, and what a failed step leaves behind."""

from __future__ import annotations

import errno
import gc
import weakref
from dataclasses import replace

import pytest

from tests.engine.rig import COLD, SMALL, Rig, records, with_limits, with_segments
from topics.core.commands import Append
from topics.core.dedupe import IdempotencyKey, ProducerKey
from topics.core.run import MemoryRun
from topics.engine import images
from topics.errors import Throttled
from topics.limits import PACKS_MAX
from topics.model import Reason
from topics.storage.segmentrun import SegmentRun


def tagged(*numbers: int) -> list[dict[str, object]]:
    """Records that use every column."""
    return [
        {"data": {"n": number}, "tag": f"tag:{number % 3}", "node": f"node{number % 2}", "meta": {"m": str(number)}}
        for number in numbers
    ]


def fill(rig: Rig, topic: str = "odd", count: int = 20) -> None:
    for first in range(0, count, 5):
        rig.write(topic, *tagged(*range(first, first + 5)))


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


# ---- packs


def trickle(checkpoints: int, topics: int = 4) -> Rig:
    """A little of everything before each checkpoint."""
    rig = Rig()
    for number in range(checkpoints):
        for topic in range(topics):
            rig.write(f"t{topic}", *tagged(number, number + 1))
        rig.checkpoint()
    return rig


def test_merging_bounds_the_files_of_topics_that_trickle() -> None:
    rig = Rig()
    most = 0
    for number in range(200):
        rig.write(f"t{number % 5}", *tagged(number, number + 1))
        if number % 3 == 0:
            rig.delete(f"t{number % 5}", match="tag:1")
        rig.checkpoint()
        most = max(most, sum(name.endswith(".data") for name in rig.files("segments")))
    assert most <= PACKS_MAX + 2
    for topic in range(5):
        expected = [n + i for n in range(topic, 200, 5) for i in (0, 1)]
        found = [record.data["n"] for record in rig.read(f"t{topic}")]
        assert set(found) <= set(expected) and all(n % 3 != 1 or n > 190 for n in found)
        assert rig.log(f"t{topic}").count == len(found)
    texts = [rig.text(f"t{topic}") for topic in range(5)]
    rig.crash()
    assert [rig.text(f"t{topic}") for topic in range(5)] == texts


def test_reads_go_on_while_packs_are_merged() -> None:
    """The old files go only when nothing reads from them."""
    rig = trickle(PACKS_MAX + 1)
    rig.engine.store.maps.budget_bytes = 0
    expected = rig.text("t0")
    job = rig.capture()
    assert len(job.rewritten) == PACKS_MAX + 1
    rig.engine.write_job(job)
    assert rig.text("t0") == expected
    rig.engine.end_checkpoint(job, None)
    assert rig.text("t0") == expected
    rig.engine.clean_job(job)
    assert rig.text("t0") == expected
    rig.engine.cleaned(job)
    assert rig.text("t0") == expected
    assert sum(name.endswith(".data") for name in rig.files("segments")) == 1


def test_a_merge_that_fails_leaves_the_packs() -> None:
    rig = trickle(PACKS_MAX + 1)
    expected = rig.text("t0")
    rig.fs.fail("write_at", path="*/segments/*")
    with pytest.raises(OSError, match="Input/output"):
        rig.engine.checkpoint()
    assert rig.text("t0") == expected
    rig.checkpoint()
    assert rig.text("t0") == expected
    assert sum(name.endswith(".data") for name in rig.files("segments")) == 1


def test_merged_packs_are_no_larger_than_a_segment() -> None:
    rig = Rig(with_segments(bytes_max=20_000))
    for number in range(PACKS_MAX + 1):
        rig.write("odd", *[{"data": f"{number}:{'x' * 100}"}] * 20)
        rig.checkpoint()
    expected = rig.text("odd")
    rig.write("odd", 1)
    rig.checkpoint()
    sizes = [len(content) for name, content in rig.files("segments").items() if name.endswith(".data")]
    assert len(sizes) >= 2 and max(sizes) < 30_000
    assert rig.text("odd").startswith(expected)


def test_large_logs_are_split_at_bytes_and_records() -> None:
    rig = Rig(with_segments(bytes_max=1 << 20, records_max=3000))
    for _ in range(8):
        rig.write("odd", *(["x" * 1000] * 600))
    rig.write("even", *range(2000))
    rig.write("even", *range(2000))
    rig.checkpoint()
    runs = rig.log("odd").runs
    assert len({run.segment_no for run in runs if isinstance(run, SegmentRun)}) >= 4
    sizes = [len(content) for name, content in rig.files("segments").items() if name.endswith(".data")]
    assert max(sizes) < 1.2 * (1 << 20)
    assert [run.last_seq - run.first_seq + 1 for run in rig.log("even").runs] == [2000, 2000]
    rig.kill()
    assert len(rig.read("odd")) == 4800 and rig.data("even") == [*range(2000), *range(2000)]


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
    assert rig.gaps("odd") == [] and rig.log("odd").holes == []
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
    rig.crash()
    assert rig.data("odd") == [1, 2, 3], "a checkpoint stores what is there"


# ---- the cold tier


def cold(rig: Rig) -> list[str]:
    return [name for name in rig.files("/cold/") if name.endswith(".data")]


def hot(rig: Rig) -> list[str]:
    return [name for name in rig.files("/segments/") if name.endswith(".data")]


def chill(rig: Rig) -> None:
    """Time passes, and something else makes a checkpoint due."""
    rig.clock.advance(1001)
    rig.write("other", "warm")
    rig.checkpoint()


def test_segments_grow_cold_and_read_the_same() -> None:
    rig = Rig(COLD)
    fill(rig)
    rig.checkpoint()
    expected = rig.text("odd")
    chill(rig)
    assert len(cold(rig)) == 1 and rig.text("odd") == expected
    rig.delete("odd", match="tag:1")
    expected = rig.text("odd")
    rig.checkpoint()
    for end in (rig.stop, rig.kill, rig.crash):
        end()
        assert rig.text("odd") == expected and len(cold(rig)) == 1


@pytest.mark.parametrize("how", ["cap", "ttl", "delete", "drop"])
def test_cold_segments_are_dropped(how: str) -> None:
    rig = Rig(COLD)
    rig.configure("odd", ttl_ms=10_000 if how == "ttl" else 0)
    rig.configure("other")
    fill(rig)
    rig.checkpoint()
    chill(rig)
    (name,) = cold(rig)
    match how:
        case "cap":
            rig.configure("odd", merge=True, cap_records=2)
            rig.write("odd", 1, 2)
        case "ttl":
            rig.clock.advance(20_000)
            assert rig.read("odd") == []
        case "delete":
            rig.delete("odd", before_seq=100)
        case "drop":
            rig.drop("odd")
    rig.checkpoint()
    assert name not in cold(rig) and name.replace("data", "idx") not in rig.files()


def test_a_segment_that_cannot_be_moved_is_reported_and_stays_readable() -> None:
    rig = Rig(COLD)
    fill(rig)
    rig.checkpoint()
    expected = rig.text("odd")
    rig.fs.fail("write_at", errno.ENOSPC, path="/cold/*")
    chill(rig)
    assert "could not be moved to the cold directory" in rig.engine.problems[0]
    assert cold(rig) == [] and rig.text("odd") == expected
    chill(rig)
    assert rig.engine.problems == [] and len(cold(rig)) >= 1
    assert rig.text("odd") == expected


# ---- memory


def test_the_map_cache_keeps_its_budget_and_reads_are_right() -> None:
    rig = Rig(replace(with_segments(bytes_max=1 << 16), hot_bytes=600_000))
    for number in range(40):
        rig.write("odd", *[f"{number}:{'x' * 300}"] * 100)
    rig.checkpoint()
    rig.kill()
    maps = rig.engine.store.maps
    assert sum(len(content) for content in rig.files("segments").values()) > 2 * maps.budget_bytes
    for number in range(40):
        page = rig.engine.read("odd", 100 * number, limit=100)
        assert [record.data[: len(f"{number}:")] for record in page.records] == [f"{number}:"] * 100
        assert maps.used_bytes <= maps.budget_bytes
    maps.budget_bytes = 1
    assert len(rig.read("odd")) == 4000
