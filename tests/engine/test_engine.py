"""The verbs: reads and their limits, time and what it makes due, and erasing bytes for good."""

from __future__ import annotations

import pytest

from tests.engine.rig import COLD, SMALL, Rig, records, with_limits, with_wal
from topics.core.commands import Abort, Append, Command, Configure, Delete, Drop, Publish, Stage
from topics.errors import Internal, InvalidRequest, LogStopped, ShuttingDown, Throttled, TopicNotFound
from topics.limits import PACKS_MAX
from topics.testing import CrashMode

SECRETS = (b"payload-secret", b"tag-secret", b"meta-secret", b"node-secret")


def secret(number: int = 0) -> dict[str, object]:
    return {
        "data": f"payload-secret-{number}",
        "tag": "tag-secret",
        "node": "node-secret",
        "meta": {"k": "meta-secret"},
    }


def plain(number: int) -> dict[str, object]:
    return {"data": f"kept-{number}", "tag": "tag-kept", "node": "node-kept", "meta": {"k": "meta-kept"}}


# ---- reads


def test_limits_are_clamped_and_zero_is_the_default() -> None:
    rig = Rig(with_limits(limit_max=50))
    rig.write("odd", *range(400))
    assert rig.engine.read("odd", limit=1000).count == 50
    assert rig.engine.read("odd", limit=7).count == 7
    assert Rig(SMALL, rig.disk.kill()).engine.read("odd", limit=0).count == 256


def test_a_byte_budget_cuts_a_page_but_never_to_nothing() -> None:
    rig = Rig()
    rig.write("odd", *["x" * 100] * 10)
    assert 1 <= rig.engine.read("odd", byte_budget=350).count < 10
    assert rig.engine.read("odd", byte_budget=1).count == 1


def test_what_cannot_be_read_is_refused() -> None:
    rig = Rig()
    rig.write("odd", 1)
    with pytest.raises(InvalidRequest, match="from_seq"):
        rig.engine.read("odd", -1)
    with pytest.raises(InvalidRequest, match="partitions 0 to 0"):
        rig.engine.read("odd", partition=1)
    with pytest.raises(TopicNotFound):
        rig.engine.state("even")


def test_only_a_touching_read_counts_as_one() -> None:
    rig = Rig()
    rig.write("odd", 1)
    rig.engine.read("odd", touch=False)
    assert rig.engine.state("odd", touch=False).last_read_ts is None
    rig.engine.read("odd")
    assert rig.engine.state("odd", touch=False).last_read_ts == rig.clock.now_ms()


def test_topics_are_listed_by_name() -> None:
    rig = Rig()
    for name in ("b", "a", "ca", "cb"):
        rig.configure(name)
    assert [state.topic for state in rig.engine.topics()] == ["a", "b", "ca", "cb"]
    assert [state.topic for state in rig.engine.topics("c", limit=1)] == ["ca"]
    assert [state.topic for state in rig.engine.topics("c", after="ca")] == ["cb"]


def test_each_partition_is_a_log_of_its_own() -> None:
    rig = Rig()
    rig.configure("parts", partitions=3)
    for partition in range(3):
        assert rig.write("parts", partition, partition=partition).first_seq == 1
    assert [rig.data("parts", partition) for partition in range(3)] == [[0], [1], [2]]
    rig.checkpoint()
    rig.kill()
    assert [rig.data("parts", partition) for partition in range(3)] == [[0], [1], [2]]


# ---- time


def test_time_never_goes_back() -> None:
    rig = Rig()
    now_ms = rig.engine.now_ms()
    rig.clock.jump(-10_000)
    assert rig.engine.now_ms() == now_ms
    rig.write("odd", 1)
    assert rig.read("odd")[0].ts == now_ms
    rig.stop()
    assert rig.engine.now_ms() >= now_ms, "a restart does not take it back either"


def test_an_idle_engine_waits_for_nothing() -> None:
    rig = Rig()
    assert rig.engine.next_deadline_ms() is None
    rig.write("odd", 1)
    assert rig.engine.next_deadline_ms() == rig.clock.now_ms() + rig.engine.limits.checkpoint_ms
    rig.checkpoint()
    assert rig.engine.next_deadline_ms() is None


def test_a_checkpoint_is_due_after_its_time_or_its_bytes() -> None:
    rig = Rig(with_limits(checkpoint_ms=1000, dirty_bytes_max=5000))
    assert not rig.engine.checkpoint_due()
    rig.write("odd", 1)
    rig.clock.advance(999)
    assert not rig.engine.checkpoint_due()
    rig.clock.advance(1)
    assert rig.engine.checkpoint_due()
    rig.checkpoint()
    assert not rig.engine.checkpoint_due()
    rig.write("odd", "x" * 5000)
    assert rig.engine.checkpoint_due()


def test_a_stopped_shard_leaves_no_deadline_that_never_passes() -> None:
    """A deadline in the past that nothing can meet would wake its host for ever."""
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.stage("s", "odd", 1)
    rig.fs.fail("sync", path="*/wal/0-*")
    rig.engine.submit(Configure("other", {}))
    rig.work()
    rig.clock.advance(10 * 3600 * 1000)
    rig.engine.tick()
    assert rig.engine.next_deadline_ms() is None


def test_a_tick_is_not_held_back_by_a_full_queue() -> None:
    rig = Rig(with_wal(queue_bytes_max=1000))
    rig.configure("odd")
    rig.configure("even")
    rig.stage("s", "odd", 1)
    rig.clock.advance(2 * 3600 * 1000)
    rig.submit("even", "x" * 2000)
    with pytest.raises(Throttled):
        rig.submit("even", 1)
    rig.engine.tick()
    assert rig.engine.machine.batches.stages == {}


# ---- back-pressure and the end


def test_writes_wait_for_a_checkpoint_that_is_far_behind() -> None:
    rig = Rig(with_limits(dirty_bytes_max=1000))
    rig.configure("odd")
    rig.write("odd", "x" * 4100)
    with pytest.raises(Throttled) as refused:
        rig.submit("odd", 1)
    assert refused.value.detail["limit"] == "dirty_bytes"
    with pytest.raises(Throttled):
        rig.engine.submit(Delete("odd", before_seq=1))
    rig.configure("odd", cap_records=100)
    rig.checkpoint()
    assert rig.write("odd", 1).first_seq == 2


@pytest.mark.parametrize(
    "command",
    [
        Append("odd", records(1)),
        Delete("odd", before_seq=1),
        Configure("odd", {}),
        Drop("odd"),
        Stage("s", "odd", records(1)),
        Publish(("s",), "p", 1),
        Abort(("s",)),
    ],
    ids=lambda command: type(command).__name__,
)
def test_an_engine_that_stops_takes_no_commands(command: Command) -> None:
    rig = Rig()
    rig.write("odd", 1)
    rig.engine.stop()
    with pytest.raises(ShuttingDown):
        rig.engine.submit(command)
    assert rig.data("odd") == [1], "and is read from until it is closed"


# ---- erase


def assert_erased(rig: Rig) -> None:
    assert rig.holding(*SECRETS) == []


@pytest.mark.parametrize("checkpoints", [0, 1, 2])
@pytest.mark.parametrize("how", ["match", "before", "all"])
def test_erased_bytes_are_nowhere(how: str, checkpoints: int) -> None:
    """Records in memory and the WAL alone, in a pack shared with another topic, and in several segments."""
    rig = Rig()
    for turn in range(3):
        rig.write("odd", *(secret(number) for number in range(4)))
        if how == "match":
            rig.write("odd", *(plain(number) for number in range(3)))
        rig.write("even", *(plain(number) for number in range(5)))
        if turn < checkpoints:
            rig.checkpoint()
    if how != "match":
        rig.write("odd", *(plain(number) for number in range(9)))
    assert rig.holding(*SECRETS) != []
    deleted = rig.delete("odd", match="tag-secret") if how == "match" else rig.delete("odd", before_seq=13)
    assert deleted.deleted == 12
    if how == "all":
        deleted = rig.delete("odd", before_seq=100)
    texts = rig.text("odd"), rig.text("even")
    assert rig.log("odd").count == (0 if how == "all" else 9)
    rig.erase("odd")
    assert_erased(rig)
    assert (rig.text("odd"), rig.text("even")) == texts
    for end in (rig.crash, rig.stop):
        end()
        assert_erased(rig)
        assert (rig.text("odd"), rig.text("even")) == texts
    if how == "match":
        assert rig.delete("odd", match="tag-kept").deleted == 9, "the others are found by their tags"


def test_erasing_in_the_cold_directory() -> None:
    rig = Rig(COLD)
    rig.write("odd", secret(), plain(1))
    rig.checkpoint()
    rig.clock.advance(2000)
    rig.write("even", plain(2))
    rig.checkpoint()
    assert [path for path in rig.holding(*SECRETS) if path.startswith("/cold/")]
    rig.delete("odd", match="tag-secret")
    rig.erase("odd")
    assert_erased(rig)
    assert rig.data("odd") == ["kept-1"]


def test_what_was_evicted_is_erased_as_well() -> None:
    rig = Rig()
    rig.write("odd", secret(), secret(), plain(1), plain(2))
    rig.checkpoint()
    rig.configure("odd", cap_records=2)
    rig.delete("odd", before_seq=1)
    rig.erase("odd")
    assert_erased(rig)
    assert rig.data("odd") == ["kept-1", "kept-2"]


@pytest.mark.parametrize("checkpoints", [False, True])
def test_the_stage_that_records_came_from_is_erased_with_them(checkpoints: bool) -> None:
    rig = Rig()
    rig.configure("odd")
    rig.stage("s", "odd", secret())
    rig.write("even", plain(1))
    rig.checkpoint()
    assert [path for path in rig.holding(*SECRETS) if "segments" in path]
    rig.driver.wait(rig.publish("s"))
    if checkpoints:
        rig.checkpoint()
    rig.delete("odd", match="tag-secret")
    rig.erase("odd")
    assert_erased(rig)
    assert rig.data("even") == ["kept-1"] and rig.data("odd") == []


def test_an_earlier_life_of_the_topic_is_erased_with_it() -> None:
    rig = Rig()
    rig.write("odd", secret())
    rig.write("even", plain(1))
    rig.checkpoint()
    rig.drop("odd")
    rig.write("odd", plain(2))
    rig.erase("odd")
    assert_erased(rig)
    assert rig.data("odd") == ["kept-2"] and rig.data("even") == ["kept-1"]


def test_what_is_written_during_an_erasure_does_not_keep_the_wal() -> None:
    rig = Rig()
    rig.write("odd", secret(), plain(1))
    rig.delete("odd", match="tag-secret")
    rotated: list[Exception | None] = []
    rig.engine.rotate(rotated.append)
    rig.work()
    assert rotated == [None]
    *_, job = rig.engine.begin_checkpoint(rig.engine.erasable("odd", 0))
    rig.write("odd", plain(2))
    rig.write("even", plain(3))
    rig.finish(job)
    assert_erased(rig)
    assert rig.data("odd") == ["kept-1", "kept-2"]
    rig.kill()
    assert rig.data("odd") == ["kept-1", "kept-2"] and rig.data("even") == ["kept-3"]


def test_an_erasure_that_cannot_remove_a_file_says_so_and_can_be_repeated() -> None:
    rig = Rig()
    rig.write("odd", secret(), plain(1))
    rig.checkpoint()
    rig.delete("odd", match="tag-secret")
    rig.fs.fail("unlink", path="*/segments/*")
    with pytest.raises(Internal, match="not erased"):
        rig.erase("odd")
    assert rig.data("odd") == ["kept-1"]
    rig.erase("odd")
    assert_erased(rig)
    rig.kill()
    assert rig.data("odd") == ["kept-1"]


def test_a_crash_during_an_erasure_loses_nothing_and_it_can_be_repeated() -> None:
    rig = Rig()
    rig.write("odd", secret(), plain(1))
    rig.write("even", plain(2))
    rig.checkpoint()
    rig.delete("odd", match="tag-secret")
    rig.write("odd", plain(3))
    rig.clock.advance(1000)
    rig.work()
    forks: list[Rig] = []
    modes: tuple[CrashMode, ...] = ("lost", "kept")
    rig.fs.on_call = lambda call: forks.extend(Rig(disk=rig.disk.fork().crash(mode)) for mode in modes)
    rig.erase("odd")
    rig.fs.on_call = None
    assert_erased(rig)
    for other in forks:
        assert other.data("odd") == ["kept-1", "kept-3"] and other.data("even") == ["kept-2"]
        other.erase("odd")
        assert_erased(other)


def test_an_engine_with_a_stopped_shard_erases_nothing() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.configure("even")
    rig.fs.fail("sync", path="*/wal/1-*")
    rig.submit("odd", 1)
    rig.work()
    with pytest.raises(LogStopped):
        rig.erase("even")


def test_merged_and_erased_in_turns() -> None:
    rig = Rig()
    for number in range(PACKS_MAX + 3):
        rig.write("odd", secret(number), plain(number))
        rig.write("even", plain(number))
        rig.checkpoint()
        if number % 5 == 4:
            rig.delete("odd", match="tag-secret")
            rig.erase("odd")
            assert_erased(rig)
    kept = [f"kept-{number}" for number in range(PACKS_MAX + 3)]
    assert [data for data in rig.data("odd") if data.startswith("kept")] == kept and rig.data("even") == kept
