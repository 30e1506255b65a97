"""Dead letters are deleted: by filter, in bounded steps, and nothing else goes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.queuerig import QueueRig
from tests.core.rig import frozen
from tests.core.test_redrive import rig as rig
from topics.core import discard as module
from topics.core.commands import Claim, Claimer, Discard
from topics.core.discard import Discarded
from topics.core.match import parse_match
from topics.errors import InvalidRequest, TopicNotFound


def discard(rig: QueueRig, **options: Any) -> Discarded:
    reply = rig.step(Discard("dead", **options)).reply
    assert isinstance(reply, Discarded)
    return reply


def test_all_go_and_other_records_stay(rig: QueueRig) -> None:
    answer = discard(rig)
    assert (answer.deleted, answer.skipped, answer.scanned, answer.done) == (8, 0, 9, True)
    assert [record.data for record in rig.scan("dead")] == ["stranger"]
    assert rig.scan("q") == [], "they do not go back"
    assert rig.replayed().scan("dead") == rig.scan("dead")


def test_filters_choose_which(rig: QueueRig) -> None:
    assert discard(rig, source="other").deleted == 2
    assert discard(rig, source="other").deleted == 0
    assert discard(rig, match=parse_match("t1")).deleted == 3
    assert discard(rig, reason="something else").deleted == 0
    assert discard(rig, before_seq=2).deleted == 1
    assert discard(rig, from_seq=3, reason="max_deliveries").deleted == 1
    assert [record.data for record in rig.scan("dead")] == ["q2", "stranger"]


def test_a_dry_run_counts_and_deletes_nothing(rig: QueueRig) -> None:
    before = frozen(rig.machine)
    answer = discard(rig, dry_run=True, source="q")
    assert (answer.deleted, answer.dry_run) == (6, True)
    assert frozen(rig.machine) == before


def test_steps_go_on_where_the_last_one_ended(rig: QueueRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REDRIVE_SCANNED_MAX", 4)
    answers = [discard(rig, limit=3)]
    while not answers[-1].done:
        answers.append(discard(rig, limit=3, from_seq=answers[-1].next_from_seq))
    assert [answer.deleted for answer in answers] == [3, 3, 2]
    assert all(answer.scanned <= 4 for answer in answers)


def test_one_that_somebody_has_stays(rig: QueueRig) -> None:
    rig.configure("graves", type="queue", lease_ms=1000)
    rig.configure("held", type="queue", lease_ms=100, max_deliveries=1, dead_letter="graves")
    rig.write({"data": 1}, {"data": 2}, topic="held")
    for _ in range(2):
        rig.step(Claim("held", (Claimer("a", 10),)))
        rig.now_ms += 101
    rig.step(Claim("graves", (Claimer("a", 1),)))
    reply = rig.step(Discard("graves")).reply
    assert (reply.deleted, reply.skipped) == (1, 1)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"limit": 0}, InvalidRequest, "limit must be"),
        ({"from_seq": -1}, InvalidRequest, "from_seq"),
        ({"topic": "none"}, TopicNotFound, '"none" does not exist'),
    ],
)
def test_what_is_refused_changes_nothing(
    rig: QueueRig, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    before = frozen(rig.machine)
    with pytest.raises(error, match=said):
        rig.step(Discard(**{"topic": "dead", **options}))
    assert frozen(rig.machine) == before
