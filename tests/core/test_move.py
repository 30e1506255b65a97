"""A move cut short at any of its facts is finished by whoever finds it, once."""

from __future__ import annotations

import pytest

from tests.core.queuerig import QueueRig
from topics.core import move
from topics.core.commands import Append, Claim, Claimer, Complete
from topics.core.records import Records


def begun() -> QueueRig:
    rig = QueueRig()
    rig.configure("q", type="queue")
    rig.configure("old")
    rig.write_numbers(1, 2, topic="q")
    rig.step(Claim("q", (Claimer("a", 2),)))
    return rig


def finish_all(rig: QueueRig) -> None:
    """What an engine does after a recovery."""
    for log in list(rig.machine.logs.values()):
        for number, fact in sorted(log.transit.leaving.items()) if log.has_moves else ():
            for landing in move.land(rig.machine, log, fact, rig.now_ms):
                rig.store(landing.outcome.facts)
            rig.store(move.finish(rig.machine, log, number).facts)
    rig.show()


@pytest.mark.parametrize("target", ["old", "new"])
def test_every_cut_ends_in_both_or_neither(target: str) -> None:
    rig = begun()
    before = len(rig.facts)
    rig.step(Complete("q", "a", [1], [Append(target, Records.of([{"data": "r"}]))]))
    rig.step(Complete("q", "a", [2], [Append(target, Records.of([{"data": "s"}]))]))
    assert len(rig.facts) - before >= 6
    for kept in range(before, len(rig.facts) + 1):
        dead = QueueRig()
        dead.now_ms = rig.now_ms
        dead.facts = rig.facts[:kept]
        found = dead.replayed()
        finish_all(found)
        found = found.replayed()
        results = [record.data for record in found.scan(target)] if found.machine.topics.get(target) else []
        assert results == ["r", "s"][: 2 - len(found.scan("q"))]
        assert not any(log.transit.leaving for log in found.machine.logs.values())


def test_a_target_that_is_gone_takes_its_part_with_it() -> None:
    rig = begun()
    results = [Append(topic, Records.of([{"data": 1}])) for topic in ("old", "new")]
    outcome = rig.machine.step(Complete("q", "a", [1], results), rig.now_ms)
    rig.drop("old")
    rig.keep(outcome)
    assert rig.machine.topics.get("old") is None
    assert [record.data for record in rig.scan("new")] == [1]
    assert rig.seqs(topic="q") == [2]


def test_an_ephemeral_queue_moves_without_a_trace() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", durability="ephemeral")
    rig.configure("out")
    rig.write_numbers(1, topic="q")
    rig.step(Claim("q", (Claimer("a"),)))
    before = len(rig.facts)
    rig.step(Complete("q", "a", [1], [Append("out", Records.of([{"data": 1}]))]))
    assert len(rig.facts) == before + 1
    assert rig.seqs(topic="q") == [] and len(rig.scan("out")) == 1


def test_results_in_an_ephemeral_topic_are_there_and_not_stored() -> None:
    rig = begun()
    rig.configure("out", durability="ephemeral")
    rig.step(Complete("q", "a", [1], [Append("out", Records.of([{"data": 1}]))]))
    assert len(rig.scan("out")) == 1 and rig.seqs(topic="q") == [2]
    log_id = rig.log("out").log_id
    assert not [fact for fact in rig.facts if fact.log_id == log_id]
    again = rig.replayed()
    assert again.scan("out") == [] and again.seqs(topic="q") == [2]


def test_a_job_that_is_deleted_while_it_moves_is_moved_all_the_same() -> None:
    rig = begun()
    outcome = rig.machine.step(Complete("q", "a", [1], [Append("old", Records.of([{"data": 1}]))]), rig.now_ms)
    rig.delete("q", before_seq=2)
    rig.keep(outcome)
    assert len(rig.scan("old")) == 1 and rig.seqs(topic="q") == [2]
    state = rig.queue_state()
    assert (state.ready, state.in_flight) == (0, 1)
