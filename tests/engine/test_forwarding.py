"""Forwarding in an engine: over crashes, checkpoints and refusals, fairly, and off the way of who writes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.rig import Rig, with_limits
from topics.core.commands import Ack, Claimer, DropRouter, PutRouter
from topics.core.outcome import Outcome
from topics.core.payload import CopiedRun
from topics.engine.forwarding import IDLE_NS, RETRY_MS_MAX, RETRY_MS_MIN, SHARE, SLICE_NS
from topics.engine.ticket import Ticket
from topics.model import ClaimedJobs, Reason
from topics.routermodel import Guarantee, RouterConfig, RouterState
from topics.testing import CRASH_MODES, SimClock


def put(rig: Rig, source: str, dest: str, name: str = "", **fields: Any) -> RouterState:
    reply = rig.driver.do(PutRouter(name or f"{source}->{dest}", RouterConfig(source=source, dest=dest, **fields)))
    assert isinstance(reply, RouterState)
    return reply


def ready(*pairs: str, **fields: Any) -> Rig:
    """Routers between topics of one letter. With two of them, source and destination are in different shards."""
    rig = Rig()
    for source, dest in pairs:
        put(rig, source, dest, **fields)
    return rig


def test_what_is_written_arrives() -> None:
    rig = ready("ab", "bc", "ad")
    rig.write("a", 1, 2)
    rig.write("a", *range(600))
    rig.work()
    assert rig.data("b") == rig.data("c") == rig.data("d") == [1, 2, *range(600)]


def test_nothing_is_forwarded_before_readers_see_it() -> None:
    rig = ready("ab")
    rig.submit("a", 1)
    assert not rig.engine.forwarding.pump() and rig.log("b").head_seq == 0
    rig.work()
    assert rig.data("b") == [1]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_copies_are_the_same_after_a_restart(end: str) -> None:
    rig = ready("ab", "bc", guarantee=Guarantee.EXACTLY_ONCE)
    rig.write("a", 1, 2)
    rig.work()
    rig.checkpoint()
    rig.clock.advance(5)
    rig.write("a", *range(600))
    rig.work()
    before = rig.text("b"), rig.text("c"), rig.engine.routing.state("b->c")
    getattr(rig, end)()
    assert (rig.text("b"), rig.text("c"), rig.engine.routing.state("b->c")) == before
    rig.write("a", 3)
    rig.work()
    assert rig.data("c")[-1] == 3 and len(rig.data("c")) == 603


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_what_is_synced_survives_a_power_loss(mode: Any) -> None:
    rig = ready("ab")
    rig.write("a", 1, 2)
    rig.work()
    rig.clock.advance(1000)
    rig.work()
    before = rig.text("b")
    assert rig.log("b").synced_seq == 2
    rig.crash(mode)
    assert rig.text("b") == before


def test_fsync_copies_are_shown_when_their_source_is_safe_as_well() -> None:
    rig = Rig()
    rig.configure("b", durability="fsync")
    put(rig, "a", "b")
    rig.write("a", 1)
    rig.work()
    assert rig.data("b") == [1] and rig.log("a").synced_seq == 1
    before = rig.text("b")
    rig.crash("lost")
    assert rig.text("b") == before


def test_strong_readers_of_a_copy_wait_for_its_source() -> None:
    rig = ready("ab")
    source, dest = rig.log("a"), rig.log("b")
    for number in range(2):
        rig.write("a", number)
        rig.work()
    rig.configure("b", merge=True, durability="fsync")
    rig.write("b", 2)
    assert dest.visible_seq == 3 and source.synced_seq == 1 == dest.synced_seq, "its own shard is synced, and no other"
    rig.clock.advance(1000)
    rig.work()
    assert source.synced_seq == 2 and dest.synced_seq == 3


def test_a_source_that_evicts_first_leaves_a_gap() -> None:
    rig = Rig()
    rig.configure("a", cap_records=3)
    rig.configure("b", cap_records=2, discard="reject")
    put(rig, "a", "b")
    rig.write("a", *range(3))
    rig.work()
    state = rig.engine.routing.state("a->b")
    assert rig.data("b") == [0, 1] and state.stalled is not None and "full" in state.stalled and state.lag_records == 1
    rig.write("a", *range(3, 8))
    rig.delete("b", before_seq=100)
    rig.work()
    assert rig.data("b") == [5, 6]
    assert [(gap.gap_from, gap.gap_to, gap.reason) for gap in rig.gaps("b", 2)] == [(3, 5, Reason.SOURCE_TRIM)]
    rig.delete("b", before_seq=100)
    rig.work()
    state = rig.engine.routing.state("a->b")
    assert rig.data("b") == [7] and state.stalled is None and state.last_error is not None
    assert (state.forwarded_total, state.trimmed_total, state.lag_records) == (5, 3, 0)


def test_a_router_that_is_stalled_tries_again_later_and_later() -> None:
    rig = Rig()
    rig.configure("b", cap_records=1, discard="reject")
    put(rig, "a", "b")
    put(rig, "a", "c")
    rig.write("a", 1, 2)
    rig.work()
    assert rig.data("c") == [1, 2], "others go on"
    waited = []
    for _ in range(9):
        deadline_ms = rig.engine.forwarding.next_deadline_ms()
        assert deadline_ms is not None
        waited.append(deadline_ms - rig.clock.now_ms())
        rig.clock.advance(waited[-1])
        rig.engine.tick()
        rig.work()
    assert waited[:3] == [RETRY_MS_MIN, 2 * RETRY_MS_MIN, 4 * RETRY_MS_MIN] and waited[-1] == RETRY_MS_MAX
    assert rig.engine.forwarding.stalled_count == 1
    rig.configure("b", cap_records=0)
    rig.work()
    assert rig.data("b") == [1, 2] and rig.engine.forwarding.next_deadline_ms() is None, "a change wakes it at once"


def test_a_broken_disk_stalls_those_that_lead_to_it() -> None:
    rig = ready("ab", "ac")
    rig.engine.failed(rig.engine.wal.shard_of(rig.log("b").log_id), OSError("gone"))
    rig.write("a", 1)
    rig.work()
    stalled = rig.engine.routing.state("a->b").stalled
    assert stalled is not None and "disk failed" in stalled
    assert rig.data("c") == [1]


def test_no_copy_is_made_while_a_checkpoint_captures() -> None:
    """Or the source could be captured after it lost what a copy that is not captured needs."""
    rig = Rig()
    rig.configure("a", cap_records=1)
    put(rig, "a", "b")
    rig.write("a", 1)
    rig.work()
    capture = rig.engine.begin_checkpoint()
    job = next(capture)
    rig.write("a", 2)
    assert not rig.engine.forwarding.pump() and rig.log("b").head_seq == 1
    for job in capture:  # noqa: B007
        pass
    rig.engine.write_job(job)
    rig.engine.end_checkpoint(job, None)
    rig.work()
    assert rig.data("b") == [1, 2]
    rig.kill()
    assert rig.data("b") == [1, 2]


def test_checkpoints_make_copies_independent_of_their_source() -> None:
    rig = ready("ab")
    rig.write("a", *range(600))
    rig.work()
    assert isinstance(rig.log("b").runs[0], CopiedRun)
    rig.delete("a", before_seq=1000)
    rig.drop("a")
    before = rig.text("b")
    rig.kill()
    assert rig.text("b") == before, "made again from a topic that is dropped"
    rig.checkpoint()
    rig.checkpoint()
    assert rig.text("b") == before
    rig.kill()
    assert rig.text("b") == before and not rig.engine.report.facts


def test_copies_make_a_checkpoint_due_and_wait_for_one_that_is_behind() -> None:
    rig = Rig(with_limits(dirty_bytes_max=1000))
    put(rig, "a", "b")
    rig.checkpoint()
    rig.write("a", *("x" * 98 for _ in range(4)))
    assert not rig.engine.checkpoint_due()
    rig.work()
    assert rig.engine.forwarding.copied_bytes == 400
    rig.engine.forwarding.copied_bytes = 4000
    assert rig.engine.checkpoint_due()
    rig.engine.forwarding.copied_bytes = 8001
    rig.write("a", 1)
    rig.work()
    assert "ahead of the checkpoint" in str(rig.engine.routing.state("a->b").stalled)
    rig.checkpoint()
    rig.clock.advance(RETRY_MS_MIN)
    rig.engine.tick()
    rig.work()
    assert rig.data("b")[-1] == 1 and rig.engine.forwarding.copied_bytes == 1


def test_a_checkpoint_that_fails_leaves_the_copies_to_the_next() -> None:
    rig = ready("ab")
    rig.write("a", 1, 2)
    rig.work()
    job = rig.capture()
    assert rig.engine.forwarding.copied_bytes == 0
    rig.engine.end_checkpoint(job, OSError("full"))
    assert rig.engine.forwarding.copied_bytes == 2


def test_routers_that_change_or_go_do_so_at_once() -> None:
    rig = ready("ab", "ac")
    rig.driver.do(DropRouter("a->b"))
    put(rig, "a", "c", filter=("tag", "Eq", "x"))
    rig.write("a", {"data": 1, "tag": "x"}, {"data": 2})
    rig.work()
    assert rig.data("b") == [] and rig.data("c") == [1]
    rig.drop("c")
    rig.write("a", 3)
    rig.work()
    assert rig.engine.routing.page() == []


def test_a_change_of_filter_does_not_reach_back_after_a_crash() -> None:
    rig = ready("ab", filter=("tag", "Eq", "x"))
    rig.write("a", {"data": 1, "tag": "y"})
    rig.work()
    put(rig, "a", "b")
    rig.kill()
    rig.write("a", 2)
    rig.work()
    assert rig.data("b") == [2]


def test_a_router_that_is_made_again_passes_over_what_is_stamped() -> None:
    rig = ready("ab", guarantee=Guarantee.EXACTLY_ONCE)
    rig.write("a", *range(5))
    rig.work()
    rig.delete("b", before_seq=3)
    rig.driver.do(DropRouter("a->b"))
    put(rig, "a", "b", guarantee=Guarantee.EXACTLY_ONCE, backfill=True)
    rig.work()
    assert rig.data("b") == [2, 3, 4, 0, 1], "what was deleted has no evidence any more"
    rig.write("a", 5)
    rig.work()
    assert rig.data("b")[-1] == 5 and len(rig.data("b")) == 6


def test_at_least_once_brings_all_of_it_again() -> None:
    rig = ready("ab")
    rig.write("a", 1, 2)
    rig.work()
    rig.driver.do(DropRouter("a->b"))
    put(rig, "a", "b", backfill=True)
    rig.work()
    assert rig.data("b") == [1, 2, 1, 2]


def test_queues_are_sources_and_destinations_like_any_topic() -> None:
    rig = Rig()
    rig.configure("jobs", type="queue")
    rig.configure("more", type="queue")
    put(rig, "jobs", "more")
    rig.write("jobs", 1, 2)
    rig.work()
    for topic in ("jobs", "more"):
        ticket = rig.engine.claim(topic, Claimer("w", 10))
        rig.work()
        claimed = ticket.result()
        assert isinstance(claimed, ClaimedJobs) and claimed.seqs == [1, 2]
        rig.driver.do(Ack(topic, "w", [1]))
    rig.kill()
    assert rig.data("more") == [2] == rig.data("jobs")


class WorkingClock(SimClock):
    """Each look at it takes a while, as steps do."""

    def __init__(self) -> None:
        super().__init__()
        self.computed_ns = 0

    def ticks_ns(self) -> int:
        self.set_ticks_ns(super().ticks_ns() + 10_000)
        return super().ticks_ns()

    def cpu_ns(self) -> int:
        return self.computed_ns


def steps_in_a_slice(computed_ns: int, idle_ns: int = 0) -> int:
    clock = WorkingClock()
    rig = Rig(clock=clock)
    for number in range(200):
        put(rig, "a", f"b{number}")
    rig.driver.wait(rig.submit("a", 1))
    forwarding = rig.engine.forwarding
    forwarding._ended_ns = clock.ticks_ns()
    clock.computed_ns = forwarding._ended_cpu_ns + computed_ns
    clock.set_ticks_ns(forwarding._ended_ns + computed_ns + idle_ns)
    forwarding.pump()
    return forwarding.forwarded_count


def test_a_pump_takes_a_share_of_the_loop_when_others_want_it() -> None:
    whole = SLICE_NS // 10_000
    assert whole // 2 < steps_in_a_slice(0) <= whole
    assert whole // 2 < steps_in_a_slice(IDLE_NS - 1) <= whole
    assert 1 <= steps_in_a_slice(SHARE * 100_000) <= 12
    assert whole // 2 < steps_in_a_slice(SHARE * 100_000, idle_ns=SLICE_NS) <= whole


def test_routers_take_turns() -> None:
    rig = Rig()
    # One that may be full takes a batch at a time.
    rig.configure("b", cap_records=10_000, discard="reject")
    put(rig, "a", "b")
    put(rig, "c", "d")
    order: list[str] = []
    add = rig.engine.forwarding._add

    def noting(outcome: Outcome) -> Ticket:
        assert outcome.log is not None
        order.append(outcome.log.topic)
        return add(outcome)

    rig.engine.forwarding._add = noting
    for _ in range(3):
        rig.write("a", *range(600))
    rig.write("c", 1)
    rig.work()
    assert order == ["b", "d", "b", "b"]
