"""What a worker says about its jobs, as transcripts."""

from __future__ import annotations

import msgspec
import pytest

from tests.core.queuerig import QueueRig, counts_of
from tests.core.rig import T0_MS
from topics.core.commands import Ack, Acks, Claim, Claimer, Extend, Nack, Release
from topics.core.facts import Acked, parse_log_fact
from topics.errors import InvalidRequest
from topics.model import AckedJobs, ExtendedJobs, NackedJobs


@pytest.fixture
def rig() -> QueueRig:
    """Four jobs: two with a, one with b, one ready."""
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=1000)
    rig.write_numbers(1, 2, 3, 4, topic="q")
    rig.step(Claim("q", (Claimer("a", 2),)))
    rig.step(Claim("q", (Claimer("b", 1, connection=9),)))
    return rig


def ack(rig: QueueRig, node: str, *seqs: int, leases: list[str] | None = None) -> tuple[int, list[int]]:
    reply = rig.step(Ack("q", node, seqs, leases)).reply
    assert isinstance(reply, AckedJobs)
    assert (reply.ready, reply.in_flight) == counts_of(rig.queue_state())[:2]
    return reply.acked, reply.skipped


def test_an_ack_completes_ones_own_and_tells_of_the_others(rig: QueueRig) -> None:
    assert ack(rig, "a", 3, 1, 4, 1, 99) == (1, [3, 4, 99])
    assert ack(rig, "a", 1) == (0, [1])
    assert rig.seqs(topic="q") == [2, 3, 4]
    assert rig.replayed().seqs(topic="q") == [2, 3, 4]


def test_a_job_that_is_named_twice_is_extended_once_and_not_skipped(rig: QueueRig) -> None:
    reply = rig.step(Extend("q", "a", [2, 2, 9], 1000)).reply
    assert isinstance(reply, ExtendedJobs)
    assert (reply.extended, list(reply.deadlines), reply.skipped) == (1, [2], [9])
    given = rig.step(Nack("q", "a", [2, 2, 9])).reply
    assert isinstance(given, NackedJobs) and (given.nacked, given.skipped) == (1, [9])


def test_jobs_that_were_claimed_together_are_completed_by_who_has_them(rig: QueueRig) -> None:
    others, own = (rig.step(Ack("q", node, [1, 2])).reply for node in ("b", "a"))
    assert isinstance(others, AckedJobs) and isinstance(own, AckedJobs)
    assert (others.acked, others.skipped, own.acked, own.skipped) == (0, [1, 2], 2, [])


@pytest.mark.parametrize(("durability", "must_sync"), [("fsync", True), ("disk", False)])
def test_an_ack_is_as_durable_as_its_queue(durability: str, must_sync: bool) -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", durability=durability)
    rig.write_numbers(1, topic="q")
    rig.step(Claim("q", (Claimer("a", 1),)))
    assert rig.step(Ack("q", "a", (1,))).must_sync is must_sync


def test_a_lease_id_fences(rig: QueueRig) -> None:
    assert ack(rig, "a", 1, 2, leases=["lease_2", "lease_2"]) == (1, [1])
    assert ack(rig, "a", 1, leases=["rubbish"]) == (0, [1])
    assert ack(rig, "a", 1, leases=["lease_1"]) == (1, [])


def test_an_ack_after_the_deadline_counts_until_somebody_else_has_the_job(rig: QueueRig) -> None:
    rig.now_ms += 5000
    assert ack(rig, "a", 1) == (1, [])
    rig.step(Claim("q", (Claimer("c", 1),)))
    assert ack(rig, "a", 2) == (0, [2])
    assert ack(rig, "c", 2) == (1, [])


def test_a_worker_that_gets_its_own_job_again_is_fenced_by_the_old_lease_only(rig: QueueRig) -> None:
    rig.now_ms += 5000
    rig.step(Claim("q", (Claimer("a", 1),)))
    assert ack(rig, "a", 1, leases=["lease_1"]) == (0, [1])
    assert ack(rig, "a", 1) == (1, [])


def test_a_nack_gives_back_now_or_later(rig: QueueRig) -> None:
    reply = rig.step(Nack("q", "a", [1, 3])).reply
    assert isinstance(reply, NackedJobs) and (reply.nacked, reply.skipped, reply.ready) == (1, [3], 2)
    rig.step(Nack("q", "a", [2], delay_ms=200))
    assert counts_of(rig.queue_state()) == (2, 1, 0, 1)
    assert ack(rig, "a", 1, 2) == (0, [1, 2])
    rig.now_ms += 200
    assert counts_of(rig.queue_state()) == counts_of(rig.replayed().queue_state()) == (3, 1, 0, 0)


def test_a_nack_after_the_deadline_is_no_different(rig: QueueRig) -> None:
    rig.now_ms += 5000
    rig.step(Nack("q", "a", [1], delay_ms=300))
    assert counts_of(rig.queue_state()) == (3, 0, 0, 1)


def test_a_delay_is_at_most_a_day(rig: QueueRig) -> None:
    rig.step(Nack("q", "a", [1], delay_ms=10**12))
    rig.now_ms += 86_400_000
    assert rig.queue_state().delayed == 0


def test_an_extension_sets_the_time_and_keeps_the_lease(rig: QueueRig) -> None:
    rig.now_ms += 500
    reply = rig.step(Extend("q", "a", [1, 3], 2000)).reply
    assert isinstance(reply, ExtendedJobs)
    assert (reply.deadlines, reply.skipped) == ({1: T0_MS + 2500}, [3])
    rig.now_ms += 1000
    assert counts_of(rig.queue_state()) == (3, 1, 0, 0)
    assert ack(rig, "a", 1, leases=["lease_1"]) == (1, [])


def test_a_lease_that_ran_out_can_be_extended_until_somebody_else_has_the_job(rig: QueueRig) -> None:
    rig.now_ms += 5000
    rig.step(Extend("q", "a", [1], 1000))
    (jobs,) = rig.step(Claim("q", (Claimer("c", 9),))).reply  # type: ignore[misc]
    assert jobs.seqs == [2, 3, 4]
    assert rig.step(Extend("q", "a", [2], 1000)).reply.extended == 0  # type: ignore[attr-defined]


def test_a_stream_that_ends_gives_back_what_it_holds(rig: QueueRig) -> None:
    rig.step(Release("q", 9))
    assert counts_of(rig.queue_state()) == (2, 2, 0, 0)
    before = len(rig.facts)
    rig.step(Release("q", 9))
    rig.step(Release("q", 77))
    assert len(rig.facts) == before


def test_acks_together_are_one_fact_and_each_has_its_answer(rig: QueueRig) -> None:
    rig.write_numbers(5, 6, topic="q")
    rig.step(Claim("q", (Claimer("b", 1),)))
    before = len(rig.facts)
    acks = [Ack("q", "a", [2, 1]), Ack("q", "b", [1, 3]), Ack("q", "a", [1, 9]), Ack("q", "b", [4, 3, 4])]
    reply = rig.step(Acks("q", acks)).reply
    assert [(each.acked, each.skipped) for each in reply] == [(2, []), (1, [1]), (0, [1, 9]), (1, [3])]
    assert {(each.ready, each.in_flight) for each in reply} == {(2, 0)}
    (stored,) = rig.facts[before:]
    assert parse_log_fact(b"".join(stored.body)) == Acked([1, 2, 3, 4])


def test_one_ack_that_is_not_valid_changes_nothing_for_all(rig: QueueRig) -> None:
    with pytest.raises(InvalidRequest):
        rig.step(Acks("q", [Ack("q", "a", [1]), Ack("q", "a", [])]))
    assert rig.queue_state().in_flight == 3


def test_what_nobody_has_seen_was_not_delivered(rig: QueueRig) -> None:
    assert rig.step(Nack("q", "a", [1, 2], undelivered=True)).reply.nacked == 2
    rig.step(Nack("q", "b", [3]))
    (jobs,) = rig.step(Claim("q", (Claimer("c", 3),))).reply
    assert [msgspec.json.decode(job)["deliveries"] for job in jobs.jobs] == [1, 1, 2]
