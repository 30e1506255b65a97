"""Those who wait for the records of groups: consumes that may wait, and streams that batches are pushed on.

A consume is answered once. A stream stays: it is in line while it has fewer claims than it may, and gets in line again
when one of them is over.

`Lines` knows who waits for what, in the order they came, and when to look again because of time alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from topics.core.groupcommands import Consume
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.groupmodel import GroupBatch

Batches = tuple[GroupBatch, ...]
Key = tuple[int, str]
"""A log and a group: by these, those who wait are found."""

FOREVER_MS = 2**63
"""A time that does not come."""
DEADLINES_SLACK = 1024
"""Deadlines of consumes that were answered that are not worth looking for."""


@dataclass(slots=True, eq=False)
class Stream:
    """Batches pushed to one consumer on one connection, never more than `claims_max` at a time."""

    command: Consume
    log_id: int
    claims_max: int
    deliver: Callable[[GroupBatch], None]
    """Gets a batch when its claim is as safe as it has to be."""
    ended: Callable[[TopicsError], None]
    """Told once when nothing will come any more, and why."""
    close: Callable[[], None] = lambda: None
    """The connection is gone: what it holds can be had by others at once."""
    pause: Callable[[], None] = lambda: None
    resume: Callable[[], None] = lambda: None
    """The connection takes nothing for now, and does again."""
    claims: list[GroupBatch] = field(default_factory=list)
    """What was pushed and may still be held, without its records."""
    place: Waiter | None = None
    is_open: bool = True
    is_paused: bool = False
    is_served: bool = False
    """A batch is on its way to it."""


@dataclass(slots=True, eq=False)
class Waiter:
    """One consume of any of several partitions, or the place of a stream."""

    commands: tuple[Consume, ...]
    keys: tuple[Key, ...]
    until_ms: int
    answered: Callable[[Batches], None]
    failed: Callable[[TopicsError], None]
    ticket: Ticket | None = None
    stream: Stream | None = None
    batches_max: int = 1


class Lines:
    def __init__(self) -> None:
        self._waiters: dict[Key, dict[Waiter, None]] = {}
        self._streams: dict[Key, dict[Stream, None]] = {}
        self._groups_of: dict[int, dict[str, None]] = {}
        """Log -> the groups that somebody waits for there, or has a stream of."""
        self._deadlines: list[tuple[int, int, Key | None, Waiter | None]] = []
        """Time, a number that makes each unique, and which line to look at or whose wait is over then."""
        self._deadlines_max = DEADLINES_SLACK
        self._wakes_ms: dict[Key, int] = {}
        self._numbers = 0

    # ---- who is there

    def first(self, key: Key) -> Waiter | None:
        line = self._waiters.get(key)
        return next(iter(line)) if line else None

    def waiters(self, key: Key) -> list[Waiter]:
        return list(self._waiters.get(key, ()))

    def all_waiters(self) -> list[Waiter]:
        """Each once, however many lines it stands in."""
        return list(dict.fromkeys(waiter for line in self._waiters.values() for waiter in line))

    def count(self, key: Key) -> int:
        return len(self._waiters.get(key, ()))

    def streams(self, key: Key) -> list[Stream]:
        return list(self._streams.get(key, ()))

    def stream_count(self) -> int:
        return sum(map(len, self._streams.values()))

    def groups_of(self, log_id: int) -> list[str]:
        return list(self._groups_of.get(log_id, ()))

    def is_followed(self, key: Key) -> bool:
        return key[1] in self._groups_of.get(key[0], ())

    def is_waiting(self, waiter: Waiter) -> bool:
        return waiter in self._waiters.get(waiter.keys[0], ())

    # ---- coming and going

    def join(self, waiter: Waiter) -> None:
        for key in waiter.keys:
            self._waiters.setdefault(key, {})[waiter] = None
            self._follow(key)
        if waiter.stream is None:
            self._plan(waiter.until_ms, None, waiter)

    def leave(self, waiter: Waiter) -> None:
        for key in waiter.keys:
            line = self._waiters.get(key, {})
            line.pop(waiter, None)
            self._tidy(key)
        if waiter.stream is not None:
            waiter.stream.place = None

    def add_stream(self, key: Key, stream: Stream) -> None:
        self._streams.setdefault(key, {})[stream] = None
        self._follow(key)

    def remove_stream(self, key: Key, stream: Stream) -> None:
        if stream.place is not None:
            self.leave(stream.place)
        self._streams.get(key, {}).pop(stream, None)
        self._tidy(key)

    def _follow(self, key: Key) -> None:
        self._groups_of.setdefault(key[0], {})[key[1]] = None

    def _tidy(self, key: Key) -> None:
        if not self._waiters.get(key):
            self._waiters.pop(key, None)
        if not self._streams.get(key):
            self._streams.pop(key, None)
        groups = self._groups_of.get(key[0], {})
        if key not in self._waiters and key not in self._streams:
            groups.pop(key[1], None)
        if not groups:
            self._groups_of.pop(key[0], None)

    # ---- time

    def next_deadline_ms(self) -> int | None:
        return self._deadlines[0][0] if self._deadlines else None

    def take_due(self, now_ms: int) -> tuple[Key | None, Waiter | None] | None:
        """A line to look at, or a waiter whose time is over; None when nothing is due any more."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            when_ms, _, key, waiter = heappop(self._deadlines)
            # What was planned before an earlier time came up stands for nothing: the line plans anew at each.
            if key is not None and self._wakes_ms.get(key) == when_ms:
                del self._wakes_ms[key]
                return key, None
            if waiter is not None and self.is_waiting(waiter):
                return None, waiter
        return None

    def wake_at(self, key: Key, when_ms: int) -> None:
        if when_ms < self._wakes_ms.get(key, FOREVER_MS):
            self._wakes_ms[key] = when_ms
            self._plan(when_ms, key, None)

    def _plan(self, when_ms: int, key: Key | None, waiter: Waiter | None) -> None:
        self._numbers += 1
        heappush(self._deadlines, (when_ms, self._numbers, key, waiter))
        if len(self._deadlines) > self._deadlines_max:
            self._forget_served()

    def _forget_served(self) -> None:
        """Drop the deadlines of consumes that were answered before, when they are many."""
        self._deadlines = [
            planned
            for planned in self._deadlines
            if (planned[3] is None or self.is_waiting(planned[3]))
            and (planned[2] is None or self._wakes_ms.get(planned[2]) == planned[0])
        ]
        heapify(self._deadlines)
        self._deadlines_max = 2 * len(self._deadlines) + DEADLINES_SLACK
