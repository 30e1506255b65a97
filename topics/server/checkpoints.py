"""Checkpoints: ids for a stream that follows too many logs to name them all in each event.

Each event has a number, and the number is the checkpoint. What is kept is how to go back: for each event, its log and
where the stream stood in it before. Only so many are kept; who comes back from before that begins anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

KEPT_MAX: Final = 16_384
"""More than fit between what a server has written and what a client has read, in small events."""

Place = tuple[int, int]
"""A seq and its epoch."""


class Checkpoints:
    def __init__(self, places: Mapping[str, Place]) -> None:
        """`places` is where the stream stands now, by key."""
        self.at = 0
        """The number of the last event. No number is used twice, also not after going back."""
        self._forgotten = 0
        """Events up to here cannot be undone."""
        self._last = dict(places)
        self._before: deque[tuple[int, str, Place]] = deque()

    def join(self, key: str, place: Place) -> None:
        """Another log is followed from here on."""
        self._last[key] = place

    def forget(self, key: str) -> None:
        """A log is not followed any more."""
        self._last.pop(key, None)

    def advance(self, key: str, place: Place) -> int:
        """An event of a log was sent, and the stream stands here now; the checkpoint behind it."""
        self.at += 1
        self._before.append((self.at, key, self._last[key]))
        self._last[key] = place
        if len(self._before) > KEPT_MAX:
            self._forgotten = self._before.popleft()[0]
        return self.at

    def since(self, at: int) -> dict[str, Place] | None:
        """Where the stream stood at a checkpoint, in those logs that have moved since. None when that is too long ago
        to be known, or never was."""
        if not self._forgotten <= at <= self.at:
            return None
        places: dict[str, Place] = {}
        for number, key, place in reversed(self._before):
            if number <= at:
                break
            places[key] = place
        return places

    def go_back(self, at: int) -> None:
        """Forget the events behind a checkpoint: the stream stands there again."""
        while self._before and self._before[-1][0] > at:
            _, key, self._last[key] = self._before.pop()
