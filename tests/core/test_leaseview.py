"""Who holds which jobs, as it is told."""

from __future__ import annotations

import pytest

from tests.core.damage import spoil
from tests.core.queuerig import QueueRig
from tests.core.rig import frozen
from topics.core.commands import Append, Claim, Claimer, Nack
from topics.core.leaseview import lease_page
from topics.core.records import Records
from topics.errors import NotAQueue
from topics.leasemodel import JobLease, LeasePage, ReadyJob


@pytest.fixture
def rig() -> QueueRig:
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=1000)
    return rig


def page(rig: QueueRig, after: int = 0, limit: int = 10, delayed: bool = False) -> LeasePage:
    return lease_page(rig.machine, "q", 0, after, limit, rig.now_ms, delayed)


def test_an_empty_queue_has_nothing_to_tell(rig: QueueRig) -> None:
    assert page(rig) == LeasePage(topic="q", leases=[])


def test_jobs_that_somebody_has_are_told_page_by_page(rig: QueueRig) -> None:
    rig.write_numbers(1, 2, 3, 4, topic="q")
    rig.step(Claim("q", (Claimer("a", 2), Claimer("b", 1, 500))))
    first = page(rig, limit=2)
    assert first.leases == [
        JobLease(seq=seq, node="a", lease_id=f"lease_{seq}", since=rig.now_ms, deadline=rig.now_ms + 1000, deliveries=1)
        for seq in (1, 2)
    ]
    assert first.oldest_ready == ReadyJob(seq=4, ts=rig.now_ms, deliveries=0) and first.next_after is not None
    second = page(rig, first.next_after, limit=2)
    assert [(lease.seq, lease.node, lease.deadline) for lease in second.leases] == [(3, "b", rig.now_ms + 500)]
    assert second.next_after is None
    rig.now_ms += 501
    assert [lease.seq for lease in page(rig).leases] == [1, 2], "the other one ran out"


def test_jobs_whose_time_has_not_come_are_told_apart(rig: QueueRig) -> None:
    rig.step(Append("q", Records.of([{"data": 1}]), delay_ms=300))
    rig.write_numbers(2, topic="q")
    rig.step(Claim("q", (Claimer("a", 1),)))
    rig.step(Nack("q", "a", [2], delay_ms=700))
    assert page(rig).leases == []
    assert page(rig, delayed=True).leases == [
        JobLease(seq=1, deadline=rig.now_ms + 300, deliveries=0),
        JobLease(seq=2, deadline=rig.now_ms + 700, deliveries=1),
    ]
    assert page(rig, delayed=True).oldest_ready is None


def test_the_oldest_ready_may_have_been_handed_out_before_and_a_look_takes_nothing(rig: QueueRig) -> None:
    written_ms = rig.now_ms
    rig.write_numbers(1, 2, 3, topic="q")
    rig.step(Claim("q", (Claimer("a", 2),)))
    rig.step(Nack("q", "a", [2]))
    rig.now_ms += 5
    before = frozen(rig.machine)
    assert page(rig).oldest_ready == ReadyJob(seq=2, ts=written_ms, deliveries=1)
    assert frozen(rig.machine) == before


def test_a_job_that_cannot_be_read_has_no_time(rig: QueueRig) -> None:
    rig.write_numbers(1, topic="q")
    rig.step(Claim("q", (Claimer("a", 1),)))
    rig.step(Nack("q", "a", [1]))
    spoil(rig.log("q"))
    assert page(rig).oldest_ready == ReadyJob(seq=1, ts=None, deliveries=1)


def test_only_queues_have_leases(rig: QueueRig) -> None:
    rig.configure("plain")
    with pytest.raises(NotAQueue):
        lease_page(rig.machine, "plain", 0, 0, 10, rig.now_ms)
