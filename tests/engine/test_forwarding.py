"""Forwarding in an engine: over crashes, checkpoints and refusals, fairly, and off the way of who writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.archives import restored
from tests.engine.queuerig import QueueRig
from tests.engine.rig import SMALL, Rig, records, with_limits
from tests.engine.routerrig import put, ready
from topics.clock import SystemClock
from topics.core.commands import Ack, Acks, Append, Claimer, Command, Complete, Configure, DropRouter, PutRouter
from topics.core.outcome import Outcome
from topics.core.payload import CopiedRun
from topics.engine import credit
from topics.engine.backup import Backup
from topics.engine.credit import PAUSE_S
from topics.engine.engine import Engine
from topics.engine.findings import FsckReport
from topics.engine.forwarding import RETRY_MS_MAX, RETRY_MS_MIN
from topics.engine.fsck import fsck
from topics.engine.host import Host
from topics.engine.recovery import recover
from topics.engine.ticket import Ticket
from topics.model import ClaimedJobs, Reason
from topics.routermodel import Guarantee, RouterConfig
from topics.storage.committer import Post
from topics.storage.fs import RealFs
from topics.testing import CRASH_MODES


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
    rig.engine.forwarding.copied_bytes = 8004
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


def test_where_a_filter_stands_that_nothing_matches_is_in_the_next_snapshot() -> None:
    rig = ready("ab", filter=("tag", "Eq", "x"))
    rig.checkpoint()
    rig.write("a", 1, 2)
    rig.work()
    assert rig.log("b").log_id in rig.engine.checkpointer.dirty
    rig.checkpoint()
    inflow = rig.log("b").inflow
    assert inflow is not None and [route.cursor for route in inflow.routes.values()] == [2]


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


def test_a_backup_holds_copies_whose_payload_is_in_their_source() -> None:
    rig = ready("ab", "bc")
    rig.write("a", 1)
    rig.work()
    rig.checkpoint()
    rig.write("a", *range(600))
    rig.work()
    backup = Backup.begin(rig.engine)
    backup.pin()
    backup.cut(lambda error: None)
    rig.driver.wal.work()
    backup.open()
    rig.drop("a")
    rig.write("b", "later")
    other = restored(rig, backup.chunks(0))
    backup.release()
    assert other.data("b") == other.data("c") == [1, *range(600)]
    assert [state.router for state in other.engine.routing.page()] == ["a->b", "b->c"]
    other.write("a", 2)
    other.work()
    assert other.data("c")[-1] == 2


def test_bytes_that_are_erased_from_a_source_are_not_needed_by_its_copies() -> None:
    rig = ready("ab")
    rig.write("a", {"data": "secret", "tag": "x"}, {"data": "public"})
    rig.work()
    rig.delete("a", match="x")
    rig.delete("b", match="x")
    rig.erase("a")
    rig.erase("b")
    assert rig.data("b") == ["public"]
    rig.kill()
    assert rig.data("b") == ["public"] == rig.data("a")
    assert not rig.holding(b"secret")


def checked(rig: Rig, repair: bool = False) -> FsckReport:
    return fsck(rig.disk, "/data", rig.clock, lambda: 7, rig.options, repair)


def test_a_check_finds_nothing_wrong_with_copies() -> None:
    rig = ready("ab", "bc", "cd")
    rig.write("a", 1, 2)
    rig.checkpoint()
    rig.work()
    rig.write("a", *range(600))
    rig.work()
    rig.drop("a")
    rig.disk = rig.disk.kill()
    report = checked(rig)
    assert report.clean and {kept.topic: kept.records for kept in report.kept} == {"b": 602, "c": 602, "d": 602}


def test_a_repair_tells_of_copies_whose_source_it_cannot_read() -> None:
    rig = Rig()
    rig.configure("b")
    rig.configure("a", durability="fsync")
    put(rig, "a", "b")
    rig.write("a", *range(600))
    rig.work()
    rig.checkpoint()
    rig.write("a", "lost" * 30)
    rig.work()
    rig.write("a", "kept")
    rig.clock.advance(1000)
    rig.work()
    rig.disk = rig.disk.kill()
    (path,) = [path for path, content in rig.disk.contents().items() if b"lost" * 30 in content]
    content = rig.disk.contents()[path]
    file = rig.disk.open(path, "write")
    file.write_at(content.index(b"lost" * 30) + 3, [b"X"])
    file.sync()
    file.close()
    report = checked(rig, repair=True)
    assert report.repaired
    lost = {(lost.topic, lost.gap_from, lost.gap_to, lost.reason) for lost in report.lost}
    assert lost == {("a", 601, 601, Reason.DAMAGE), ("b", 601, 601, Reason.SOURCE_TRIM)}
    rig.start()
    assert rig.data("b")[:600] == list(range(600)) and "kept" in rig.data("b")
    assert Reason.SOURCE_TRIM in {gap.reason for gap in rig.gaps("b", 600)}
    rig.write("a", "new")
    rig.work()
    assert rig.data("b")[-1] == "new"


def test_a_pump_without_credit_does_nothing_and_comes_back_later() -> None:
    rig = ready("ab")
    forwarding, after_s = rig.engine.forwarding, list[float]()
    forwarding.wanted = after_s.append
    rig.driver.wait(rig.submit("a", 1))
    forwarding._credit._balance_ns = 0
    forwarding._caught_up = False
    assert forwarding.pump() and rig.log("b").head_seq == 0
    assert after_s == [PAUSE_S]
    rig.clock.advance(1)
    assert forwarding.pump() and rig.log("b").head_seq == 1


def test_who_has_caught_up_is_not_visited_again() -> None:
    rig = ready("ab", "ac")
    rig.write("a", 1)
    assert rig.engine.forwarding.pump() and not rig.engine.forwarding._line
    assert rig.log("b").head_seq == rig.log("c").head_seq == 1


def test_a_router_that_goes_in_mid_round_takes_nobody_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credit, "SLICE_NS", 0)
    rig = Rig()
    for name in ("b", "c"):
        rig.configure(name, cap_records=1, discard="reject")
        rig.write(name, 0)
    for name in ("b", "c", "d"):
        put(rig, "a", name)
    rig.write("a", 1)
    for _ in range(2):
        rig.engine.forwarding.pump()
    assert rig.engine.forwarding.stalled_count == 2
    rig.driver.do(DropRouter("a->b"))
    rig.work()
    assert rig.data("d") == [1]


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


def on_a_loop(directory: Path, work: Callable[[Host], Awaitable[None]]) -> None:
    """An engine on the real disk, opened and closed around some work."""

    def opened(post: Post) -> Engine:
        return recover(RealFs(), str(directory), SystemClock(), lambda: 7, SMALL, post)

    async def main() -> None:
        host = await Host.open(opened)
        try:
            await asyncio.wait_for(work(host), 60)
        finally:
            await host.close()

    asyncio.run(main())


async def arrived(host: Host, topic: str, above_seq: int = 0) -> None:
    log = host.engine.machine.log(host.engine.machine.topic(topic))
    assert await host.wait_visible(log, above_seq, 60)


def test_on_a_loop_routers_go_on_by_themselves_after_a_start(tmp_path: Path) -> None:
    async def before(host: Host) -> None:
        await host.submit(PutRouter("a->b", RouterConfig(source="a", dest="b")))
        host.engine.forwarding.stop()
        await host.submit(Append("a", records(1)))

    async def after(host: Host) -> None:
        await arrived(host, "b")
        assert [record.data for record in host.engine.read("b").records] == [1]

    on_a_loop(tmp_path, before)
    on_a_loop(tmp_path, after)


def test_on_a_loop_a_stalled_router_tries_again_in_time(tmp_path: Path) -> None:
    async def work(host: Host) -> None:
        await host.submit(Configure("b", {"cap_records": 1, "discard": "reject", "ttl_ms": 30}))
        await host.submit(PutRouter("a->b", RouterConfig(source="a", dest="b")))
        await host.submit(Append("a", records(1, 2)))
        await arrived(host, "b")
        await arrived(host, "b", above_seq=1)
        assert host.engine.routing.state("a->b").last_error is not None

    on_a_loop(tmp_path, work)


@pytest.mark.parametrize("how", ["alone", "together", "with results"])
def test_jobs_that_are_done_make_room_for_a_router(how: str) -> None:
    """However the worker says so; nobody has to wait for the next try."""
    rig = QueueRig()
    rig.configure("a")
    rig.queue("q", cap_records=2, discard="reject")
    put(rig, "a", "q")
    rig.write("a", *range(3))
    rig.work()
    assert rig.data("q") == [0, 1] and rig.engine.forwarding.stalled_count == 1
    seqs = rig.claim("w").seqs
    commands: dict[str, Command] = {
        "alone": Ack("q", "w", seqs),
        "together": Acks("q", [Ack("q", "w", seqs)]),
        "with results": Complete("q", "w", seqs, [Append("results", records(1))]),
    }
    rig.driver.do(commands[how])
    rig.work()
    assert rig.data("q") == [1, 2] and rig.engine.forwarding.stalled_count == 0
