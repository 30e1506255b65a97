"""When each class is answered and seen, what a power loss may take, and what a failing disk leaves running."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.core.rig import frozen
from tests.engine.rig import SMALL, Rig, records, with_wal
from topics.core.commands import Append, Configure, Publish, Stage
from topics.core.dedupe import IdempotencyKey
from topics.engine.ticket import Ticket
from topics.errors import LogStopped, Throttled
from topics.limits import CEILING_RESERVE_MIN
from topics.model import Reason, Written
from topics.storage.commitlog import Entry
from topics.testing import Call

SYNC_MS = SMALL.wal.disk_sync_ms


def at_each_sync(rig: Rig, look: Callable[[Call], None]) -> None:
    """Look at the engine whenever bytes are written and not yet synced."""
    rig.fs.on_call = lambda call: look(call) if call.name == "sync" else None


def shard_of(call: Call) -> int:
    return int(call.path.rsplit("/", 1)[1][0])


# ---- when a write is answered and seen


def test_fsync_is_answered_and_seen_when_it_is_synced() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    ticket = rig.submit("odd", 1)
    before: list[tuple[bool, int]] = []
    at_each_sync(rig, lambda call: before.append((ticket.done, rig.log("odd").visible_seq)))
    assert not ticket.done
    rig.work()
    assert before == [(False, 0)], "written, and neither answered nor seen before its sync"
    assert ticket.result() == Written(topic="odd", partition=0, first_seq=1, last_seq=1, head_seq=1)
    assert rig.data("odd") == [1]


def test_disk_is_answered_at_the_write_below_the_durable_ceiling() -> None:
    rig = Rig()
    rig.configure("odd", durability="disk")
    first = rig.submit("odd", 1)
    before: list[tuple[bool, int]] = []
    at_each_sync(rig, lambda call: before.append((first.done, rig.log("odd").visible_seq)))
    rig.work()
    assert before == [(False, 0)], "the first one has no ceiling yet: answered and seen when it is synced"
    before.clear()
    second = rig.submit("odd", 2)
    rig.engine.flush()
    assert not second.done and rig.data("odd") == [1]
    rig.driver.wal.work()
    assert second.done and rig.data("odd") == [1, 2] and not before, "answered without a sync"
    rig.clock.advance(SYNC_MS - 1)
    rig.driver.wal.work()
    assert not before
    rig.clock.advance(1)
    rig.driver.wal.work()
    assert len(before) == 1, "and synced within its interval"


def test_groups_that_are_written_together_are_synced_one_by_one() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.work()
    first = rig.submit("odd", 1)
    rig.engine.flush()
    second = rig.submit("odd", 2)
    rig.engine.flush()
    shard = rig.engine.wal.shard_of(rig.log("odd").log_id)
    group = rig.engine.turn._shards[shard].last_group
    rig.engine.written(shard, group)
    assert not first.done and not second.done
    rig.engine.synced(shard, group - 1)
    assert first.done and not second.done
    rig.engine.synced(shard, group)
    assert second.done


def test_a_ticket_knows_when_it_was_written() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.clock.advance(5)
    ticket = rig.submit("odd", 1)
    at_each_sync(rig, lambda call: rig.clock.advance(3))
    before_ns = rig.clock.ticks_ns()
    rig.work()
    assert ticket.written_ns == before_ns
    assert rig.clock.ticks_ns() > before_ns


def test_memory_is_answered_at_the_write() -> None:
    rig = Rig()
    rig.configure("odd", durability="memory")
    syncs: list[Call] = []
    at_each_sync(rig, syncs.append)
    ticket = rig.submit("odd", 1)
    assert not ticket.done and rig.data("odd") == []
    rig.work()
    assert ticket.done and rig.data("odd") == [1] and syncs == []


def test_ephemeral_is_answered_at_once() -> None:
    rig = Rig()
    rig.configure("odd", durability="ephemeral")
    calls = len(rig.fs.calls)
    assert rig.submit("odd", 1).done and rig.data("odd") == [1]
    rig.work()
    assert not any(call.changes for call in rig.fs.calls[calls:])


@pytest.mark.parametrize(("durability", "waits"), [("fsync", True), ("disk", True), ("memory", False)])
def test_a_repeated_write_waits_for_the_first_one(durability: str, waits: bool) -> None:
    rig = Rig()
    rig.configure("odd", durability=durability)
    key = IdempotencyKey("k")
    first = rig.submit("odd", 1, key=key)
    rig.engine.flush()
    again = rig.submit("odd", 1, key=key)
    assert not again.done
    before: list[tuple[bool, bool]] = []
    at_each_sync(rig, lambda call: before.append((first.done, again.done)))
    rig.work()
    assert before == ([(False, False)] if waits else [])
    assert first.done and again.done
    reply = again.result()
    assert isinstance(reply, Written) and reply.deduped and (reply.first_seq, reply.last_seq) == (1, 1)
    assert rig.submit("odd", 1, key=key).done, "and is answered at once when that is safe"
    assert rig.data("odd") == [1]


def test_a_repeated_write_behind_an_unfinished_batch_is_answered() -> None:
    """The first one is safe, although readers do not see it yet."""
    rig = Rig()
    rig.configure("odd")
    rig.configure("even")
    rig.stage("s", "even", "staged")
    rig.publish("s")
    rig.engine.flush()
    rig.driver.wal.work()
    rig.driver.wal.work()
    assert rig.log("even").hidden_from == 1
    key = IdempotencyKey("k")
    first = rig.submit("even", 2, key=key)
    rig.engine.flush()
    again = rig.submit("even", 2, key=key)
    rig.work()
    assert first.done and again.done
    assert rig.data("even") == ["staged", 2]


# ---- topics whose creation is on its way


@pytest.mark.parametrize("durability", ["fsync", "disk", "memory"])
def test_what_is_written_to_a_new_topic_waits_for_its_creation(durability: str) -> None:
    rig = Rig()
    first = rig.engine.submit(Append("odd", records(1), config={"durability": durability}))
    second = rig.submit("odd", 2)
    rig.engine.flush()
    third = rig.submit("odd", 3)
    syncs: list[tuple[int, bool, int]] = []

    def look(call: Call) -> None:
        syncs.append((shard_of(call), first.done or second.done or third.done, rig.log("odd").visible_seq))

    at_each_sync(rig, look)
    rig.work()
    assert sorted(syncs) == [(0, False, 0), (1, False, 0)], (
        "the creation in the meta log's shard, the records in theirs"
    )
    assert first.done and second.done and third.done
    assert rig.data("odd") == [1, 2, 3]
    syncs.clear()
    rig.write("odd", 4)
    assert all(shard == 1 for shard, _, _ in syncs), "from then on the log's own shard is enough"


def test_a_topic_whose_creation_failed_takes_nothing() -> None:
    rig = Rig()
    rig.fs.fail("sync", path="*/wal/0-*")
    first = rig.engine.submit(Append("odd", records(1), config={"durability": "fsync"}))
    second = rig.submit("odd", 2)
    rig.work()
    for ticket in (first, second):
        with pytest.raises(LogStopped, match="disk failed"):
            ticket.result()
    assert rig.data("odd") == [], "log 1 was synced; without its creation that is worth nothing"
    with pytest.raises(LogStopped):
        rig.submit("odd", 3)
    rig.crash()
    assert rig.engine.topics() == []
    rig.write("again", 1)
    assert rig.log("again").log_id > 1, "a log's id is never used twice"


def test_the_ceiling_counts_only_when_the_logs_own_shard_has_synced_it() -> None:
    rig = Rig()
    rig.configure("first")
    ticket = rig.engine.submit(Append("even", records(1)))
    assert rig.log("even").log_id == 2
    seen: list[tuple[int, int, int]] = []
    at_each_sync(rig, lambda call: seen.append((shard_of(call), rig.log("even").durable_ceiling, 0)))
    rig.work()
    assert ticket.done
    other = rig.engine.submit(Append("odd", records(1)))
    assert rig.log("odd").log_id == 3
    seen.clear()
    log = rig.log("odd")
    at_each_sync(rig, lambda call: seen.append((shard_of(call), log.durable_ceiling, log.synced_seq)))
    rig.work()
    assert other.done
    assert (1, 0, 0) in seen, "the meta log's shard synced first, and nothing followed from that for this log"
    assert rig.log("odd").durable_ceiling == 1 + CEILING_RESERVE_MIN and rig.log("odd").synced_seq == 1


def test_a_repeated_write_waits_for_the_creation_although_the_first_one_is_synced() -> None:
    """What it waits for in the log's own shard is past already; that must not keep it waiting."""
    rig = Rig()
    key = IdempotencyKey("k")
    first = rig.engine.submit(Append("odd", records(1), dedupe_key=key, config={"durability": "fsync"}))
    rig.engine.flush()
    rig.driver.wal._committers[1].work()
    assert rig.log("odd").synced_seq == 1 and not first.done
    again = rig.submit("odd", 1, key=key)
    assert not again.done
    rig.work()
    assert first.done and again.done


# ---- ceilings


def lose_acked_records(rig: Rig, count: int) -> int:
    """Ack disk-class records that were never synced; the last seq that was answered."""
    rig.configure("odd")
    rig.write("odd", "synced")
    for number in range(count):
        assert rig.write("odd", number).last_seq == number + 2
    return count + 1


def test_a_power_loss_skips_what_was_acked_and_says_so_once() -> None:
    rig = Rig()
    acked = lose_acked_records(rig, 5)
    rig.crash("lost")
    assert rig.data("odd") == ["synced"]
    (gap,) = rig.gaps("odd")
    assert gap.reason is Reason.RESTART and gap.gap_from == 2 and gap.gap_to >= acked
    after = rig.write("odd", "after").first_seq
    assert after == gap.gap_to + 1, "the range told is exactly the range skipped"
    assert rig.seqs("odd") == [1, after] and len(rig.gaps("odd")) == 1
    rig.crash("lost")
    rig.stop()
    assert [told.gap_from for told in rig.gaps("odd")] == [2, after + 1][: len(rig.gaps("odd"))]
    assert rig.seqs("odd") == [1, after], "an answered first write was synced, as it was above the ceiling"


def test_no_seq_that_a_reader_saw_is_assigned_again() -> None:
    rig = Rig()
    rig.configure("odd")
    rig.write("odd", "synced")
    rig.submit("odd", *range(2 * CEILING_RESERVE_MIN))
    rig.engine.flush()
    seen: list[int] = []
    at_each_sync(rig, lambda call: seen.append(rig.log("odd").visible_seq))
    rig.driver.wal.work()
    assert seen == [1], "written, and not shown before the sync"
    assert rig.log("odd").visible_seq == 1 + 2 * CEILING_RESERVE_MIN
    rig.crash("lost")
    assert rig.write("odd", "after").first_seq > 1 + 2 * CEILING_RESERVE_MIN


def test_a_power_loss_after_a_power_loss_skips_nothing_more() -> None:
    rig = Rig()
    lose_acked_records(rig, 5)
    rig.crash("lost")
    gaps = rig.gaps("odd")
    rig.crash("lost")
    assert rig.gaps("odd") == gaps and rig.log("odd").head_seq == gaps[0].gap_to


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_process_that_dies_or_stops_skips_nothing(end: str) -> None:
    rig = Rig()
    acked = lose_acked_records(rig, 5)
    getattr(rig, end)()
    assert rig.seqs("odd") == list(range(1, acked + 1)) and rig.gaps("odd") == []
    assert rig.write("odd", "next").first_seq == acked + 1


def test_fsync_topics_lose_and_skip_nothing() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.write("odd", 1, 2)
    rig.submit("odd", 3)
    rig.engine.flush()
    rig.crash("lost")
    assert rig.data("odd") == [1, 2] and rig.gaps("odd") == []
    assert rig.write("odd", 3).first_seq == 3


def test_the_ceiling_grows_with_the_load() -> None:
    """A writer of 500 records between two syncs waits for few of them once the engine knows it."""
    rig = Rig()
    rig.configure("odd")
    waits: list[int] = []
    for _ in range(8):
        waited = 0
        for _ in range(50):
            ticket = rig.submit("odd", *range(10))
            waited += ticket.needs_sync
            rig.engine.flush()
            rig.driver.wal.work()
            assert ticket.done
        waits.append(waited)
        rig.clock.advance(SYNC_MS)
        rig.driver.wal.work()
    assert waits[0] >= 1
    assert waits[-4:] == [0, 0, 0, 0], f"syncs that writers waited for: {waits}"


# ---- failing disks


@pytest.mark.parametrize("call", ["write_at", "sync"])
@pytest.mark.parametrize("durability", ["fsync", "disk", "memory"])
def test_a_failing_shard_stops_alone(call: str, durability: str) -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.configure("even", durability="fsync")
    rig.write("odd", "before")
    rig.configure("odd", durability=durability)
    rig.fs.fail(call, path="*/wal/1-*")
    ticket = rig.submit("odd", "lost")
    rig.work()
    rig.clock.advance(SYNC_MS)
    rig.work()
    if not (call == "sync" and durability == "memory"):
        with pytest.raises(LogStopped, match="Input/output error"):
            ticket.result()
    with pytest.raises(LogStopped, match="reads go on"):
        rig.submit("odd", "refused")
    stopped = rig.engine.state("odd").stopped
    assert stopped is not None and "Input/output error" in stopped and "1-" in stopped
    assert rig.data("odd")[0] == "before"
    assert rig.engine.state("even").stopped is None
    assert rig.write("even", "goes on").first_seq == 1 and rig.data("even") == ["goes on"]
    rig.crash("lost")
    assert rig.data("odd") == ["before"] and rig.data("even") == ["goes on"]


def test_nothing_is_answered_that_was_not_synced() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    tickets = [rig.submit("odd", number) for number in range(3)]
    rig.fs.fail("sync", path="*/wal/1-*", always=True)
    rig.engine.flush()
    tickets.append(rig.submit("odd", 3))
    rig.work()
    assert all(isinstance(ticket.error, LogStopped) for ticket in tickets)
    assert rig.data("odd") == []


def test_without_the_meta_shard_nothing_is_created_and_the_rest_goes_on() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.fs.fail("sync", path="*/wal/0-*")
    ticket = rig.engine.submit(Configure("other", {}))
    rig.work()
    assert isinstance(ticket.error, LogStopped)
    for command in (
        Configure("another", {}),
        Append("another", records(1)),
        Stage("s", "odd", records(1)),
        Publish(("s",), "p", 1),
    ):
        with pytest.raises(LogStopped):
            rig.engine.submit(command)
    assert rig.write("odd", 1).first_seq == 1
    assert not rig.engine.checkpoint_possible()
    with pytest.raises(LogStopped):
        rig.engine.begin_checkpoint()


def test_a_new_topic_is_refused_when_its_own_shard_has_stopped() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.configure("even")
    rig.fs.fail("sync", path="*/wal/1-*")
    rig.submit("odd", 1)
    rig.work()
    before = frozen(rig.engine.machine)
    with pytest.raises(LogStopped):
        rig.submit("third", 1)  # would be log 3
    with pytest.raises(LogStopped):
        rig.engine.submit(Stage("s", "even", records(1)))
    with pytest.raises(LogStopped):
        rig.engine.submit(Configure("odd", {"durability": "disk"}))
    assert frozen(rig.engine.machine) == before


# ---- back-pressure


def test_a_write_is_throttled_before_anything_changes() -> None:
    rig = Rig(with_wal(queue_bytes_max=10_000))
    rig.configure("odd")
    rig.write("odd", 0)
    rig.submit("odd", "x" * 8_000)
    before = frozen(rig.engine.machine)
    with pytest.raises(Throttled) as refused:
        rig.submit("odd", "y" * 4_000)
    assert refused.value.detail["limit"] == "queue_bytes" and refused.value.detail["retry_after_ms"] > 0
    rig.engine.flush()
    with pytest.raises(Throttled):
        rig.submit("odd", "y" * 4_000)
    assert frozen(rig.engine.machine) == before
    rig.work()
    assert rig.write("odd", "y" * 4_000).first_seq == 3


def test_how_full_the_fullest_shard_is() -> None:
    rig = Rig(with_wal(queue_bytes_max=10_000))
    rig.configure("odd")
    rig.configure("even")
    assert rig.engine.turn.fullness() == 0
    rig.submit("even", "x" * 1_000)
    rig.submit("odd", "x" * 5_000)
    assert 0.5 < rig.engine.turn.fullness() < 0.6
    rig.engine.flush()
    assert 0.5 < rig.engine.turn.fullness() < 0.6, "handed over, not written"
    rig.work()
    assert rig.engine.turn.fullness() == 0


def submit_until_throttled(rig: Rig) -> list[Ticket]:
    """Tiny records, whose stored form is many times their payload, a group at a time."""
    tickets = []
    with pytest.raises(Throttled):
        for _ in range(100):
            tickets.append(rig.submit("odd", *([1] * 30)))
            rig.engine.flush()
    assert len(tickets) > 1
    return tickets


def test_records_that_take_more_room_than_foreseen_wait_and_are_kept() -> None:
    """The check counts payload; the queue counts what is stored. Neither loses a record nor stops the shard."""
    rig = Rig(with_wal(queue_bytes_max=4_000))
    rig.configure("odd")
    tickets = submit_until_throttled(rig)
    assert rig.driver.wal.metrics(1).submit_full >= 1, "the queue has refused what the check had let pass"
    rig.work()
    assert all(ticket.error is None and ticket.done for ticket in tickets)
    assert rig.engine.state("odd").stopped is None
    assert len(rig.data("odd")) == 30 * len(tickets)
    rig.kill()
    assert len(rig.data("odd")) == 30 * len(tickets)


def test_everybody_is_told_when_a_shard_fails_with_records_held_back() -> None:
    rig = Rig(with_wal(queue_bytes_max=2_000))
    rig.configure("odd")
    rig.fs.fail("write_at", path="*/wal/1-*")
    tickets = submit_until_throttled(rig)
    rig.work()
    assert all(isinstance(ticket.error, LogStopped) for ticket in tickets)


def test_who_is_answered_while_a_group_is_handed_over_may_write_again() -> None:
    rig = Rig()
    rig.configure("odd", durability="memory")
    turn = rig.engine.turn
    first = rig.submit("odd", 1)
    rig.engine.flush()
    again: list[Ticket] = []
    first.on_done(lambda done: again.append(rig.submit("odd", 3)))
    take = turn.commit_log.append

    def reporting(shard: int, entries: Sequence[Entry], sync: bool) -> int:
        """A commit log that gets as far as the group before while it takes one."""
        rig.driver.wal.work()
        return take(shard, entries, sync)

    turn.commit_log.append = reporting  # type: ignore[method-assign]
    second = rig.submit("odd", 2)
    rig.engine.flush()
    assert first.done and len(again) == 1
    rig.work()
    assert second.done and again[0].done
    assert rig.data("odd") == [1, 2, 3]
