"""Who gets which job, and when: at once, after waiting, after a window, on a stream."""

from __future__ import annotations

import pytest

from tests.engine.queuerig import QueueRig, Worker, deliveries, seqs_of
from topics.core.commands import Ack, Append, Claimer, Configure, Drop, Nack
from topics.core.records import Records
from topics.engine.claiming import PACED_AFTER_MS, RETRY_MS
from topics.engine.orphans import GRACE_MS
from topics.errors import InvalidRequest, LogStopped, NotAQueue, ShuttingDown, Throttled, TopicNotFound
from topics.model import ClaimedJobs


@pytest.fixture
def rig() -> QueueRig:
    rig = QueueRig()
    rig.queue(lease_ms=1000)
    return rig


# ---- at once


def test_a_claim_is_served_at_once_and_says_what_is_left(rig: QueueRig) -> None:
    rig.write("q", 1, 2, 3)
    jobs = rig.claim("a", 2)
    assert (jobs.seqs, jobs.ready, deliveries(jobs)) == ([1, 2], 1, [1, 1])
    assert rig.claim("b", 9).seqs == [3]
    empty = rig.claim("c")
    assert (empty.count, empty.ready) == (0, 0)


def test_nothing_that_readers_do_not_see_is_handed_out() -> None:
    rig = QueueRig()
    rig.queue(durability="fsync")
    rig.submit("q", 1)
    assert seqs_of(rig.ask("a")) == []
    assert rig.counts() == (0, 0, 0, 0)
    rig.work()
    assert rig.claim("a").seqs == [1]


def test_a_job_that_is_not_seen_yet_is_not_passed_over() -> None:
    rig = QueueRig()
    rig.queue(durability="fsync")
    rig.submit("q", 1)
    rig.work()
    rig.submit("q", 2)
    assert rig.claim("a", 10).seqs == [1]
    rig.work()
    assert rig.claim("a").seqs == [2]


def test_a_delayed_job_that_is_due_before_it_is_durable_waits_for_that() -> None:
    rig = QueueRig()
    rig.queue(durability="fsync")
    rig.engine.submit(Append("q", Records.of([{"data": 0}]), delay_ms=5))
    rig.clock.advance(10)
    assert seqs_of(rig.ask("a")) == []
    assert rig.counts() == (0, 0, 0, 0)
    rig.work()
    assert rig.counts() == (1, 0, 0, 0)
    assert rig.claim("a").seqs == [1]


def test_a_claim_with_durable_leases_waits_for_the_sync() -> None:
    rig = QueueRig()
    rig.queue(leases_durable=True)
    rig.write("q", 1)
    ticket = rig.ask("a")
    assert not ticket.done
    rig.work()
    assert seqs_of(ticket) == [1]
    rig.crash("lost")
    assert rig.counts() == (0, 1, 0, 0)


def test_a_lease_that_cannot_be_stored_is_not_handed_out() -> None:
    rig = QueueRig()
    rig.queue(leases_durable=True)
    rig.write("q", 1)
    ticket = rig.ask("a")
    rig.fs.fail("sync", path="*.wal", always=True)
    rig.work()
    with pytest.raises(LogStopped):
        ticket.result()
    with pytest.raises(LogStopped):
        rig.ask("a")


def test_a_lease_that_is_lost_with_the_power_makes_its_job_claimable_again(rig: QueueRig) -> None:
    rig.write("q", 1)
    rig.work()
    rig.clock.advance(1000)
    rig.work()
    rig.claim("a")
    rig.crash("lost")
    assert rig.counts()[0] == 1
    assert deliveries(rig.claim("b")) == [1]


def test_a_lease_survives_the_death_of_the_process(rig: QueueRig) -> None:
    rig.write("q", 1)
    rig.claim("a")
    rig.kill()
    assert rig.counts() == (0, 1, 0, 0)
    rig.clock.advance(1001)
    again = rig.claim("b")
    assert (again.seqs, deliveries(again)) == ([1], [2])


def test_wrong_claims_are_refused(rig: QueueRig) -> None:
    rig.write("log", 1)
    with pytest.raises(NotAQueue, match='topic "log" is a log'):
        rig.engine.claim("log", Claimer("a"))
    with pytest.raises(TopicNotFound):
        rig.engine.claim("nowhere", Claimer("a"))
    with pytest.raises(InvalidRequest, match="max must be 1 or more"):
        rig.ask("a", 0)
    with pytest.raises(InvalidRequest, match="node must be"):
        rig.ask("")
    rig.engine.stop()
    with pytest.raises(ShuttingDown):
        rig.ask("a")


# ---- waiting


def test_a_claim_waits_for_a_job_to_be_written(rig: QueueRig) -> None:
    ticket = rig.ask("a", wait_ms=5000)
    assert not ticket.done
    rig.write("q", 1)
    rig.work()
    assert seqs_of(ticket) == [1]


def test_a_claim_whose_time_is_over_is_answered_with_nothing(rig: QueueRig) -> None:
    ticket = rig.ask("a", wait_ms=500)
    rig.tick(499)
    assert not ticket.done
    rig.tick(1)
    assert seqs_of(ticket) == []
    rig.write("q", 1)
    assert rig.counts()[0] == 1, "nobody waits any more"


def test_a_claim_waits_for_a_lease_to_run_out_and_is_woken_by_time_alone(rig: QueueRig) -> None:
    rig.write("q", 1)
    rig.claim("a")
    ticket = rig.ask("b", wait_ms=5000)
    rig.tick(1000)
    assert not ticket.done, "the deadline itself belongs to the lease"
    rig.tick(1)
    assert seqs_of(ticket) == [1]


def test_a_claim_waits_for_a_delay_to_end_and_never_gets_the_job_early(rig: QueueRig) -> None:
    rig.delay("later", 700)
    ticket = rig.ask("a", wait_ms=5000)
    rig.tick(699)
    assert not ticket.done
    rig.tick(1)
    assert seqs_of(ticket) == [1]
    assert rig.counts() == (0, 1, 0, 0)


def test_a_claim_waits_for_a_job_to_be_given_back(rig: QueueRig) -> None:
    rig.write("q", 1)
    rig.claim("a")
    ticket = rig.ask("b", wait_ms=5000)
    rig.nack("a", 1)
    rig.work()
    assert seqs_of(ticket) == [1]


def test_those_who_wait_share_what_comes_and_the_first_come_first(rig: QueueRig) -> None:
    tickets = [rig.ask(f"w{number}", 10, wait_ms=5000) for number in range(5)]
    rig.write("q", 1, 2)
    rig.work()
    assert [seqs_of(ticket) for ticket in tickets] == [[1], [2], None, None, None]
    rig.write("q", *range(7))
    rig.work()
    assert [len(seqs_of(ticket) or []) for ticket in tickets[2:]] == [3, 2, 2]


def test_whoever_gives_up_gets_nothing(rig: QueueRig) -> None:
    gone = rig.ask("a", wait_ms=5000)
    waits = rig.ask("b", wait_ms=5000)
    rig.engine.claiming.cancel("q", 0, gone)
    rig.write("q", 1)
    rig.work()
    assert seqs_of(waits) == [1] and not gone.done


def test_what_was_leased_to_whoever_gave_up_is_given_back() -> None:
    rig = QueueRig()
    rig.queue(leases_durable=True)
    rig.write("q", 1)
    ticket = rig.ask("a")
    rig.engine.claiming.cancel("q", 0, ticket)
    rig.work()
    assert rig.counts() == (1, 0, 0, 0)


def test_who_waits_for_a_topic_that_is_deleted_is_told(rig: QueueRig) -> None:
    ticket = rig.ask("a", wait_ms=5000)
    worker = Worker(rig, "b", 2)
    rig.driver.do(Drop("q"))
    with pytest.raises(TopicNotFound):
        ticket.result()
    assert worker.error is None, "there may be another topic of that name in a moment"
    assert rig.engine.next_deadline_ms() is not None
    rig.tick(GRACE_MS)
    assert isinstance(worker.error, TopicNotFound)


def test_a_stream_is_told_when_the_disk_is_behind_for_long(rig: QueueRig) -> None:
    worker = Worker(rig, "a", 1)
    told: list[int] = []
    worker.stream.paced = told.append
    real, behind = rig.engine.claiming._check, Throttled("the disk is behind", limit="queue_bytes")

    def refuse(log_id: int) -> None:
        raise behind

    rig.engine.claiming._check = refuse
    rig.write("q", 1)
    rig.tick(PACED_AFTER_MS - RETRY_MS)
    assert (told, worker.got) == ([], [])
    rig.tick(2 * PACED_AFTER_MS)
    assert told == [RETRY_MS] * 2
    rig.engine.claiming._check = real
    rig.tick(RETRY_MS)
    assert worker.got == [1] and worker.error is None


def test_at_the_end_everybody_who_waits_is_answered(rig: QueueRig) -> None:
    ticket = rig.ask("a", wait_ms=5000)
    rig.engine.stop()
    assert seqs_of(ticket) == []


# ---- the window


def test_those_who_come_within_the_window_share_evenly() -> None:
    rig = QueueRig()
    rig.queue(claim_jitter_ms=40)
    rig.write("q", *range(50))
    tickets = []
    for number in range(10):
        tickets.append(rig.ask(f"w{number}", 10))
        rig.tick(3)
    assert not any(ticket.done for ticket in tickets)
    rig.tick(10)
    assert [len(seqs_of(ticket) or []) for ticket in tickets] == [5] * 10
    assert rig.engine.machine.topic("q").config.claim_jitter_ms == 40


def test_a_window_without_jobs_ends_with_empty_hands() -> None:
    rig = QueueRig()
    rig.queue(claim_jitter_ms=40)
    ticket = rig.ask("a")
    rig.tick(39)
    assert not ticket.done
    rig.tick(1)
    assert seqs_of(ticket) == []


def test_the_window_is_kept_although_a_lease_runs_out_before_it() -> None:
    rig = QueueRig()
    rig.queue(claim_jitter_ms=500, lease_ms=100)
    rig.write("q", 1)
    first = rig.ask("a")
    rig.tick(500)
    assert seqs_of(first) == [1]
    second, third = rig.ask("b"), rig.ask("c")
    rig.tick(101)
    assert not second.done
    rig.tick(400)
    assert [seqs_of(second), seqs_of(third)] == [[1], []]


# ---- streams


def test_a_stream_is_kept_at_its_bound(rig: QueueRig) -> None:
    rig.write("q", *range(5))
    worker = Worker(rig, "a", 2)
    rig.work()
    assert worker.got == [1, 2]
    rig.ack("a", 1)
    rig.work()
    assert worker.got == [1, 2, 3]
    rig.nack("a", 2, delay_ms=60_000)
    rig.work()
    assert worker.got == [1, 2, 3, 4]
    assert rig.counts() == (1, 2, 0, 1)


def test_a_stream_gets_new_jobs_as_they_come_and_others_when_its_own_run_out(rig: QueueRig) -> None:
    worker = Worker(rig, "a", 1)
    rig.write("q", 1, 2)
    rig.work()
    assert worker.got == [1]
    rig.tick(1001)
    assert worker.got == [1, 1], "its lease ran out and nobody else wanted the job"


def test_the_end_of_a_stream_releases_what_it_holds_and_nothing_else(rig: QueueRig) -> None:
    rig.write("q", 1, 2, 3)
    polled = rig.claim("a")
    worker = Worker(rig, "a", 5)
    rig.work()
    assert (polled.seqs, worker.got) == ([1], [2, 3])
    worker.stream.close()
    rig.work()
    assert rig.counts() == (2, 1, 0, 0)
    assert rig.claim("b", 5).seqs == [2, 3]
    worker.stream.close()
    rig.kill()
    assert rig.counts() == (0, 3, 0, 0)


def test_streams_and_claims_are_served_together(rig: QueueRig) -> None:
    first, second = Worker(rig, "a", 4), Worker(rig, "b", 4)
    ticket = rig.ask("c", 4, wait_ms=5000)
    rig.write("q", *range(6))
    rig.work()
    assert [len(first.got), len(second.got), len(seqs_of(ticket) or [])] == [2, 2, 2]


def test_nobody_is_left_behind_when_they_have_gone(rig: QueueRig) -> None:
    worker = Worker(rig, "a", 4)
    ticket = rig.ask("c", 4, wait_ms=50)
    worker.stream.close()
    rig.tick(60)
    assert seqs_of(ticket) == []
    assert rig.engine.claiming._lines == {}
    assert rig.engine.claiming.next_deadline_ms() is None


def test_jobs_that_die_do_not_keep_others_waiting() -> None:
    """A claim that meets only jobs delivered too often moves them away and waits on."""
    rig = QueueRig()
    rig.queue(lease_ms=100, max_deliveries=1, dead_letter="dead")
    rig.write("q", *range(600))
    rig.claim("a", 600)
    rig.clock.advance(101)
    ticket = rig.ask("b", wait_ms=5000)
    rig.work()
    assert not ticket.done
    rig.write("q", "new")
    rig.work()
    assert seqs_of(ticket) == [601]
    assert rig.counts() == (0, 1, 600, 0)


def test_a_config_that_changes_while_a_claim_waits_is_followed(rig: QueueRig) -> None:
    ticket = rig.ask("a", wait_ms=5000)
    rig.driver.do(Configure("q", {"lease_ms": 123}, merge=True))
    rig.write("q", 1)
    rig.work()
    reply = ticket.result()
    assert isinstance(reply, ClaimedJobs) and b'"deadline":%d' % (rig.clock.now_ms() + 123) in reply.jobs[0]
    assert rig.driver.do(Nack("q", "a", [1])) is not None


def test_claims_that_were_answered_leave_no_deadlines_behind(rig: QueueRig) -> None:
    for _ in range(3000):
        ticket = rig.ask("a", wait_ms=30_000)
        rig.engine.claiming.cancel("q", 0, ticket)
    assert len(rig.engine.claiming._deadlines) <= 1025


def test_streams_that_come_and_go_leave_nothing_behind(rig: QueueRig) -> None:
    rig.write("q", *range(3))
    for number in range(20):
        worker = Worker(rig, f"w{number}", 2)
        rig.work()
        if number % 2:
            rig.tick(1001)
        worker.stream.close()
        rig.work()
    queue = rig.log("q").queue
    assert queue is not None
    assert rig.counts() == (3, 0, 0, 0)
    assert queue.leases.holders.lighter == set() and len(queue.leases.holders) == 0


def test_a_stream_that_is_paused_gets_nothing_until_it_goes_on(rig: QueueRig) -> None:
    worker = Worker(rig, "a", 2)
    worker.stream.pause()
    rig.write("q", 1, 2, 3)
    assert worker.got == [] and rig.counts() == (3, 0, 0, 0)
    worker.stream.resume()
    rig.work()
    assert worker.got == [1, 2]
    worker.stream.pause()
    rig.ack("a", 1)
    rig.work()
    assert worker.got == [1, 2], "room alone does not bring it back in line"
    worker.stream.resume()
    rig.work()
    assert worker.got == [1, 2, 3]
    worker.stream.close()
    worker.stream.resume()
    rig.work()
    assert worker.got == [1, 2, 3] and rig.counts() == (2, 0, 0, 0)


def test_a_cancelled_claim_says_whether_it_was_still_in_line(rig: QueueRig) -> None:
    waiting = rig.ask("a", wait_ms=1000)
    assert rig.engine.claiming.waiting_count() == 1
    assert rig.engine.claiming.cancel("q", 0, waiting)
    assert rig.engine.claiming.waiting_count() == 0
    rig.configure("q", merge=True, leases_durable=True)
    rig.write("q", 1)
    served = rig.ask("a", wait_ms=1000)
    assert not served.done and not rig.engine.claiming.cancel("q", 0, served)
    rig.work()
    assert rig.counts() == (1, 0, 0, 0), "given back when the lease was on disk"


def test_streams_are_counted_and_are_no_claims(rig: QueueRig) -> None:
    worker = Worker(rig, "a", 1)
    claiming = rig.engine.claiming
    assert (claiming.stream_count(), claiming.waiting_count()) == (1, 0)
    worker.stream.close()
    assert claiming.stream_count() == 0


def test_a_stream_that_has_enough_is_not_leased_the_rest(rig: QueueRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.core.claim.CLAIM_BYTES_MAX", 1)
    rig.write("q", 1, 2, 3)
    worker = Worker(rig, "a", 3)
    deliver = worker.stream.deliver

    def fill(jobs: ClaimedJobs) -> None:
        deliver(jobs)
        worker.stream.pause()

    worker.stream.deliver = fill
    rig.work()
    assert worker.got == [1] and rig.counts() == (2, 1, 0, 0)
    worker.stream.deliver = deliver
    worker.stream.resume()
    rig.work()
    assert worker.got == [1, 2, 3] and rig.counts() == (0, 3, 0, 0)


# ---- several in one turn


def test_claims_of_one_turn_are_all_served_in_one_pass(rig: QueueRig) -> None:
    rig.write("q", 1, 2, 3, 4)
    facts = rig.engine.turn.positions.copy()
    tickets = [rig.engine.claim("q", Claimer(node, 2)) for node in ("a", "b", "c")]
    rig.work()
    assert [seqs_of(ticket) for ticket in tickets] == [[1, 2], [3], [4]]
    log_id = rig.engine.machine.topic("q").first_log_id
    assert rig.engine.turn.positions[log_id] == facts[log_id] + 1


def test_an_ack_in_the_same_turn_does_not_keep_a_claim_from_its_jobs(rig: QueueRig) -> None:
    rig.write("q", 1, 2)
    rig.claim("a")
    rig.engine.submit(Ack("q", "a", [1]))
    ticket = rig.engine.claim("q", Claimer("a"))
    rig.work()
    assert seqs_of(ticket) == [2]


def test_claims_together_are_served_now_or_have_to_get_in_line(rig: QueueRig) -> None:
    both = (Claimer("a", 2), Claimer("b", 2))
    assert rig.engine.claiming.claim_together("q", both, 0, may_wait=True) is None, "one of them would get nothing"
    ticket = rig.engine.claiming.claim_together("q", both, 0, may_wait=False)
    assert ticket is not None
    rig.work()
    assert [jobs.seqs for jobs in ticket.result()] == [[], []]  # type: ignore[attr-defined]
    rig.write("q", 1, 2, 3)
    ticket = rig.engine.claiming.claim_together("q", both, 0, may_wait=True)
    assert ticket is not None
    rig.work()
    assert [jobs.seqs for jobs in ticket.result()] == [[1, 2], [3]]  # type: ignore[attr-defined]
    waiting = rig.ask("c", wait_ms=1000)
    rig.nack("b", 3)
    assert seqs_of(waiting) == [3]
    rig.ask("c", wait_ms=1000)
    assert rig.engine.claiming.claim_together("q", both, 0, may_wait=False) is None, "somebody is before them"
    rig.engine.stop()
    with pytest.raises(ShuttingDown):
        rig.engine.check_claims()
