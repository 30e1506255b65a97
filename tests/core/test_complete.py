"""Jobs and their results: both or neither, and only for who holds the jobs."""

from __future__ import annotations

import pytest

from tests.core.queuerig import QueueRig, counts_of
from topics.core.commands import Append, Claim, Claimer, Complete
from topics.core.dedupe import IdempotencyKey
from topics.core.records import Records
from topics.errors import InvalidRequest, LeaseLost, TopicFull


@pytest.fixture
def rig() -> QueueRig:
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=1000)
    rig.write_numbers(1, 2, 3, topic="q")
    rig.step(Claim("q", (Claimer("a", 2),)))
    return rig


def result(topic: str, *datas: object, **options: object) -> Append:
    return Append(topic, Records.of([{"data": data, "tag": "r"} for data in datas]), **options)  # type: ignore[arg-type]


def test_jobs_go_and_results_come(rig: QueueRig) -> None:
    outcome = rig.step(Complete("q", "a", [1, 2], [result("out", "x", "y"), result("q", "next", delay_ms=5)]))
    assert outcome.reply.acked == 2 and outcome.reply.in_flight == 0  # type: ignore[attr-defined]
    for found in (rig, rig.replayed()):
        assert [(record.seq, record.data, record.tag) for record in found.scan("out")] == [(1, "x", "r"), (2, "y", "r")]
        assert [record.seq for record in found.scan("q")] == [3, 4]
        assert counts_of(found.queue_state()) == (1, 0, 0, 1)


def test_a_topic_for_results_is_made_as_the_write_says(rig: QueueRig) -> None:
    rig.step(Complete("q", "a", [1], [result("jobs", 1, config={"type": "queue", "partitions": 3}, partition=2)]))
    topic = rig.replayed().machine.topic("jobs")
    assert (topic.config.type.value, topic.config.partitions) == ("queue", 3)
    assert [record.data for record in rig.scan("jobs", partition=2)] == [1]


def test_one_job_that_is_not_held_refuses_all(rig: QueueRig) -> None:
    rig.step(Complete("q", "a", [1], [result("out", 1)]))
    with pytest.raises(LeaseLost) as refused:
        rig.step(Complete("q", "a", [1, 2, 3], [result("out", 2)]))
    assert (refused.value.detail["skipped"], refused.value.detail["gone"]) == ([1, 3], [1])
    assert counts_of(rig.queue_state()) == (1, 1, 0, 0)
    assert len(rig.scan("out")) == 1


def test_leases_are_checked_when_they_are_given(rig: QueueRig) -> None:
    with pytest.raises(LeaseLost):
        rig.step(Complete("q", "a", [1], [result("out", 1)], lease_ids=["lease_2"]))
    rig.step(Complete("q", "a", [1], [result("out", 1)], lease_ids=["lease_1"]))
    assert len(rig.scan("out")) == 1


def test_a_target_that_is_full_refuses_all(rig: QueueRig) -> None:
    rig.configure("full", cap_records=1, discard="reject")
    rig.write_numbers(1, topic="full")
    with pytest.raises(TopicFull):
        rig.step(Complete("q", "a", [1], [result("out", 1), result("full", 1)]))
    assert rig.machine.topics.get("out") is None
    assert counts_of(rig.queue_state()) == (1, 2, 0, 0)


def test_results_take_no_key_of_their_own(rig: QueueRig) -> None:
    with pytest.raises(InvalidRequest, match="no idempotency key"):
        rig.step(Complete("q", "a", [1], [result("out", 1, dedupe_key=IdempotencyKey("k"))]))


def test_what_is_on_its_way_out_is_nobodys(rig: QueueRig) -> None:
    """Between the decision and its end nobody can complete, get or give back the jobs."""
    outcome = rig.machine.step(Complete("q", "a", [1], [result("out", 1)]), rig.now_ms)
    assert counts_of(rig.queue_state()) == (1, 2, 0, 0)
    with pytest.raises(LeaseLost):
        rig.machine.step(Complete("q", "a", [1], [result("out", 1)]), rig.now_ms)
    rig.now_ms += 5000
    (jobs,) = rig.machine.step(Claim("q", (Claimer("b", 9),)), rig.now_ms).reply  # type: ignore[misc]
    assert jobs.seqs == [2, 3]
    assert len(outcome.moves) == 1
