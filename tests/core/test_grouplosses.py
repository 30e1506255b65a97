from __future__ import annotations

import pytest

from topics.core import grouplosses
from topics.core.grouplosses import Loss, Losses
from topics.model import Reason


def test_when_there_are_too_many_the_oldest_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouplosses, "GROUP_LOSSES_MAX", 3)
    losses = Losses()
    for first in (1, 11, 21):
        losses.add(Loss(first, first + 1, Reason.TTL))
    losses.tell(1, 2, 500, "a", 7)
    losses.add(Loss(31, 32, Reason.CAP))
    assert [(loss.first, loss.last, loss.reason) for loss in losses] == [
        (1, 12, Reason.MIXED),
        (21, 22, Reason.TTL),
        (31, 32, Reason.CAP),
    ]
    untold = losses.untold(0)
    assert untold is not None and untold.first == 1, "it is told again, as it is larger now"


def test_what_nobody_was_told_is_nobody_s_to_keep() -> None:
    losses = Losses()
    losses.add(Loss(1, 2, Reason.TTL))
    losses.add(Loss(5, 6, Reason.CAP))
    losses.tell(5, 6, 100, "a", 7)
    losses.keep(1, 9, 300)
    assert [(loss.first, loss.due_ms) for loss in losses] == [(1, 0), (5, 300)]
