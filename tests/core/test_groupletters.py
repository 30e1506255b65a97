"""Dead letters of a group: those that are not taken, and those that are too many for one pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.grouprig import DEAD, GroupRig
from topics.core import consume as consuming
from topics.core import groupletters
from topics.core.groupcommands import Consume, NackGroup
from topics.core.groupranges import DELAYED, FREE
from topics.groupmodel import GroupBatch
from topics.limits import DEAD_LETTER_RETRY_MS


def rig_with(count: int, **config: Any) -> GroupRig:
    """Records that were delivered as often as they may be, each for itself."""
    rig = GroupRig()
    rig.configure("t", max_deliveries=1, dead_letter=DEAD, **config)
    rig.write_numbers(*range(count))
    for _ in range(count):
        rig.step(Consume("t", "g", limit=1, consumer="a"))
    rig.step(NackGroup("t", "g", consumer="a"))
    return rig


def consume(rig: GroupRig) -> GroupBatch:
    reply = rig.step(Consume("t", "g")).reply
    assert isinstance(reply, GroupBatch)
    return reply


@pytest.mark.parametrize("refused", ["is full", "auto_create false"])
def test_what_is_not_taken_rests_and_is_tried_again(refused: str) -> None:
    rig = rig_with(2, auto_create=refused == "is full")
    if refused == "is full":
        rig.configure(DEAD, cap_records=2, discard="reject")
        rig.write({"data": "full"}, topic=DEAD)
    assert consume(rig).count == 0
    for each in (rig, rig.replayed()):
        group = each.group()
        assert group is not None and group.dead_lettered == 0 and group.committed == 0
        assert [found.state for found in group.ranges] == [DELAYED, DELAYED]
    group = rig.group()
    assert group is not None and refused in (group.dead_letter_error or "")
    rig.configure(DEAD)
    rig.now_ms += DEAD_LETTER_RETRY_MS - 1
    assert consume(rig).count == 0 and group.dead_lettered == 0, "not before its time"
    rig.now_ms += 1
    assert consume(rig).count == 0 and group.dead_lettered == 2
    assert (group.dead_letter_error, group.committed) == (None, 2)
    assert [letter.data for letter in rig.scan(DEAD)][-2:] == [0, 1]


def test_there_is_only_so_much_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (consuming, groupletters):
        monkeypatch.setattr(module, "DEAD_LETTERS_PER_PASS_MAX", 2)
    rig = rig_with(5)
    group = rig.group()
    assert group is not None
    rig.configure(DEAD, cap_records=1, discard="reject")
    assert consume(rig).count == 0
    assert [found.state for found in group.ranges] == [DELAYED, DELAYED, FREE, FREE, FREE]
    rig.configure(DEAD)
    rig.now_ms += DEAD_LETTER_RETRY_MS
    rig.write_numbers(99)
    assert [record.data for record in consume(rig).records] == [99], "who comes does not wait for the rest"
    assert group.dead_lettered == 2
    assert [found.state for found in group.ranges][:3] == [FREE, FREE, FREE]
    for dead_lettered in (4, 5, 5):
        assert consume(rig).count == 0 and group.dead_lettered == dead_lettered
    assert [letter.data for letter in rig.scan(DEAD)] == [0, 1, 2, 3, 4]
