"""Dead letters go back: by filter, in bounded steps, each once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.queuerig import QueueRig, counts_of
from topics.core import redrive as module
from topics.core.commands import Claim, Claimer, Redrive
from topics.core.match import parse_match
from topics.model import Redriven


@pytest.fixture
def rig() -> QueueRig:
    """Two queues that share a dead-letter topic; six jobs of one and two of the other are in it, and a stranger."""
    rig = QueueRig()
    for name, count in (("q", 6), ("other", 2)):
        rig.configure(name, type="queue", lease_ms=100, max_deliveries=1, dead_letter="dead")
        drafts = [{"data": f"{name}{n}", "tag": f"t{n % 2}", "meta": {"k": str(n)}} for n in range(count)]
        rig.write(*drafts, topic=name)
        for _ in range(2):
            rig.step(Claim(name, (Claimer("a", 10),)))
            rig.now_ms += 101
    rig.write({"data": "stranger"}, topic="dead")
    return rig


def redrive(rig: QueueRig, **options: Any) -> Redriven:
    reply = rig.step(Redrive("dead", **options)).reply
    assert isinstance(reply, Redriven)
    return reply


def test_all_go_back_to_where_they_came_from_as_they_were(rig: QueueRig) -> None:
    answer = redrive(rig)
    assert (answer.moved, answer.skipped, answer.scanned, answer.done) == (8, 0, 9, True)
    assert [record.data for record in rig.scan("dead")] == ["stranger"]
    assert [record.data for record in rig.scan("q")] == [f"q{n}" for n in range(6)]
    first = rig.scan("q")[0]
    assert (first.seq, first.tag, first.meta) == (7, "t0", {"k": "0"})
    assert counts_of(rig.queue_state()) == (6, 0, 6, 0)
    assert counts_of(rig.queue_state("other")) == (2, 0, 2, 0)
    again = rig.replayed()
    assert (again.scan("q"), again.scan("dead")) == (rig.scan("q"), rig.scan("dead"))
    (jobs,) = rig.step(Claim("q", (Claimer("a"),))).reply
    assert b'"deliveries":1' in jobs.jobs[0], "a redriven job begins anew"


def test_filters_choose_which(rig: QueueRig) -> None:
    assert redrive(rig, source="other").moved == 2
    assert redrive(rig, source="other").moved == 0
    assert redrive(rig, match=parse_match("t1")).moved == 3
    assert redrive(rig, reason="something else").moved == 0
    assert redrive(rig, before_seq=2).moved == 1
    assert redrive(rig, reason="max_deliveries").moved == 2
    assert [record.data for record in rig.scan("dead")] == ["stranger"]


def test_a_dry_run_counts_and_moves_nothing(rig: QueueRig) -> None:
    before = rig.scan("dead")
    answer = redrive(rig, dry_run=True, source="q")
    assert (answer.moved, answer.dry_run) == (6, True)
    assert rig.scan("dead") == before and counts_of(rig.queue_state()) == (0, 0, 6, 0)


def test_steps_go_on_where_the_last_one_ended(rig: QueueRig) -> None:
    moved, from_seq, steps = 0, 0, 0
    while True:
        answer = redrive(rig, limit=3, from_seq=from_seq)
        moved, from_seq, steps = moved + answer.moved, answer.next_from_seq, steps + 1
        if answer.done:
            break
    assert (moved, steps) == (8, 3)


def test_a_step_looks_at_so_many_and_no_more(rig: QueueRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REDRIVE_SCANNED_MAX", 4)
    answer = redrive(rig, source="other", limit=4)
    assert (answer.moved, answer.scanned, answer.next_from_seq, answer.done) == (0, 4, 4, False)


def test_letters_that_are_large_move_in_several_steps(rig: QueueRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOVE_BYTES_MAX", 300)
    answers = [redrive(rig)]
    while not answers[-1].done:
        answers.append(redrive(rig, from_seq=answers[-1].next_from_seq))
    assert len(answers) > 2 and sum(answer.moved for answer in answers) == 8
    assert [record.data for record in rig.scan("q")] == [f"q{n}" for n in range(6)]


def test_all_can_go_to_one_destination(rig: QueueRig) -> None:
    rig.configure("archive")
    assert redrive(rig, destination="archive").moved == 8
    assert len(rig.scan("archive")) == 8


def test_what_cannot_go_stays_and_is_counted(rig: QueueRig) -> None:
    rig.drop("other")
    rig.configure("q", merge=True, cap_records=5, discard="reject")
    answer = redrive(rig)
    assert (answer.moved, answer.skipped) == (0, 8), "six at once are too many for a queue that holds five"
    assert len(rig.scan("dead")) == 9
    assert redrive(rig, limit=5).moved == 5


def test_a_dead_letter_that_somebody_works_on_stays() -> None:
    rig = QueueRig()
    rig.configure("dead", type="queue")
    rig.configure("q", type="queue", lease_ms=100, max_deliveries=1, dead_letter="dead")
    rig.write_numbers(1, 2, topic="q")
    for _ in range(2):
        rig.step(Claim("q", (Claimer("a", 2),)))
        rig.now_ms += 101
    rig.step(Claim("dead", (Claimer("doctor"),)))
    answer = redrive(rig)
    assert (answer.moved, answer.skipped) == (1, 1)
    assert counts_of(rig.queue_state("dead")) == (0, 1, 0, 0)
