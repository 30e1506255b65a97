"""The oracle says what the specification says."""

from __future__ import annotations

import pytest

from topics.testing.oraclequeue import End, OracleQueue


def test_a_job_is_ready_held_ready_again_and_done() -> None:
    queue = OracleQueue(lease_ms=100)
    queue.write(2, 0)
    assert queue.claim(5, 0).seqs == [1, 2]
    queue.handed_out(1, "a", 7, 0)
    assert queue.counts(100) == (1, 1, 0, 0), "the deadline belongs to the lease"
    assert queue.counts(101) == (2, 0, 0, 0)
    assert [job.seq for job in queue.own("a", [1, 2], 101)] == [1], "nobody else has had it since"
    assert queue.own("a", [1], 101, [8]) == []
    queue.ack(queue.own("a", [1], 101, [7]))
    assert (queue.counts(101), queue.jobs[0].end) == ((1, 0, 0, 0), End.ACKED)


def test_what_is_held_is_not_handed_out() -> None:
    queue = OracleQueue(lease_ms=100)
    queue.write(1, 0)
    queue.handed_out(1, "a", 1, 0)
    assert queue.claim(1, 100).seqs == []
    with pytest.raises(AssertionError):
        queue.handed_out(1, "b", 2, 100)


def test_what_came_back_goes_first_and_dies_after_its_last_delivery() -> None:
    queue = OracleQueue(lease_ms=100, max_deliveries=2)
    queue.write(3, 0)
    queue.handed_out(2, "a", 1, 0)
    queue.nack(queue.own("a", [2], 0), 0, delay_ms=50)
    assert queue.counts(49) == (2, 0, 0, 1)
    assert queue.claim(2, 50).seqs == [2, 1]
    queue.handed_out(2, "a", 2, 50)
    wanted = queue.claim(9, 151)
    assert (wanted.seqs, wanted.dead_letters) == ([1, 3], [2])
    assert queue.counts(151) == (2, 0, 1, 0)


def test_ttl_cap_and_deletes_take_jobs_whoever_has_them() -> None:
    queue = OracleQueue(lease_ms=1000, ttl_ms=100, cap_records=2)
    queue.write(3, 0, tag="x")
    assert [job.seq for job in queue.live(0)] == [2, 3]
    queue.handed_out(2, "a", 1, 0)
    assert queue.delete(0, before_seq=3) == 1
    assert queue.own("a", [2], 0) == []
    assert queue.counts(101) == (0, 0, 0, 0)
