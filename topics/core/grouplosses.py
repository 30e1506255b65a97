"""What a consumer group lost before it was acked, until somebody acks to know.

A loss is told like a record is delivered: with a claim, once, until its time is over or it is given back; then again.
A range that was claimed when it was lost is a loss that its consumer need not be told of: it had the records. It
becomes one that has to be told when the claim runs out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from topics.limits import GROUP_LOSSES_MAX
from topics.model import Reason


@dataclass(slots=True)
class Loss:
    first: int
    last: int
    reason: Reason
    due_ms: int = 0
    """It is to be told from here on."""
    consumer: str = ""
    token: int = 0
    """Of the claim it was told with; 0 when it was not told since it was lost, or given back."""


class Losses:
    __slots__ = ("_losses",)

    def __init__(self, losses: Iterable[Loss] = ()) -> None:
        self._losses = list(losses)

    def __len__(self) -> int:
        return len(self._losses)

    def __iter__(self) -> Iterator[Loss]:
        return iter(self._losses)

    def add(self, loss: Loss) -> None:
        """Keeps them ascending; neighbours that are alike become one."""
        self._losses.append(loss)
        self._losses.sort(key=lambda each: each.first)
        joined: list[Loss] = []
        for each in self._losses:
            before = joined[-1] if joined else None
            if before is not None and before.last + 1 >= each.first and _alike(before, each):
                before.last = max(before.last, each.last)
            else:
                joined.append(each)
        if len(joined) > GROUP_LOSSES_MAX:
            # The two oldest become one that is not told yet: the range told to a consumer grows, it never shrinks.
            joined[:2] = [Loss(joined[0].first, joined[1].last, Reason.MIXED)]
        self._losses = joined

    def next_due_ms(self) -> int | None:
        return min((loss.due_ms for loss in self._losses), default=None)

    def untold(self, now_ms: int) -> Loss | None:
        """The first that has to be told."""
        return next((loss for loss in self._losses if loss.due_ms <= now_ms), None)

    def tell(self, first: int, last: int, due_ms: int, consumer: str, token: int) -> None:
        for loss in self._cut(first, last):
            loss.due_ms, loss.consumer, loss.token = due_ms, consumer, token

    def free(self, first: int, last: int, due_ms: int) -> None:
        for loss in self._cut(first, last):
            loss.due_ms, loss.consumer, loss.token = due_ms, "", 0

    def keep(self, first: int, last: int, due_ms: int) -> None:
        for loss in self._cut(first, last):
            if loss.token:
                loss.due_ms = due_ms

    def know(self, first: int, last: int) -> None:
        """Somebody knows of these."""
        known = self._cut(first, last)
        self._losses = [loss for loss in self._losses if not any(loss is each for each in known)]

    def _cut(self, first: int, last: int) -> list[Loss]:
        """The losses that hold exactly what is lost from `first` to `last`."""
        for border in (first, last + 1):
            for at, loss in enumerate(self._losses):
                if loss.first < border <= loss.last:
                    self._losses.insert(at + 1, replace(loss, first=border))
                    loss.last = border - 1
                    break
        return [loss for loss in self._losses if first <= loss.first and loss.last <= last]


def _alike(one: Loss, other: Loss) -> bool:
    return (one.reason, one.due_ms, one.token) == (other.reason, other.due_ms, other.token)
