"""Those who wait for the messages of one heap, in the order they came: pops that may wait, and streams with credits.

A pop is answered once. A stream stays, and is in line while it has credits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from topics.core.heapcommands import Popper
from topics.core.heapplace import Part
from topics.engine.line import FOREVER_MS
from topics.errors import InvalidRequest, TopicsError
from topics.heapmodel import PoppedMessages
from topics.limits import U32_MAX

Partitions = tuple[int, ...]


@dataclass(slots=True, eq=False)
class HeapWaiter:
    """One pop, or the place of one stream."""

    popper: Popper
    partitions: Partitions
    until_ms: int
    answered: Callable[[PoppedMessages], None]
    failed: Callable[[TopicsError], None]
    stream: PopStream | None = None


@dataclass(slots=True, eq=False)
class PopStream:
    """Messages pushed to one consumer on one connection, as many as it gave credits for."""

    topic: str
    popper: Popper
    partitions: Partitions
    deliver: Callable[[PoppedMessages], None]
    """Gets messages when their leases are as safe as they have to be."""
    ended: Callable[[TopicsError], None]
    """Told once when nothing will come any more, and why."""
    granted: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None
    """The connection is gone: what it holds is ready at once, and no attempt counts."""
    credits: int = 0
    is_open: bool = True

    def grant(self, credits: int) -> None:
        """Let so many messages more come."""
        if not 0 <= credits <= U32_MAX:
            expected = f"a whole number from 0 to {U32_MAX}"
            raise InvalidRequest(f"credits must be {expected}, not {credits}", field="credits", expected=expected)
        self.credits += credits
        if self.is_open and self.credits:
            self.granted()

    def end(self, error: TopicsError) -> None:
        if self.is_open:
            self.is_open = False
            self.ended(error)


@dataclass(slots=True, eq=False)
class HeapLine:
    topic: str
    first_log_id: int
    parts: list[Part]
    """All partitions of the heap."""
    waiters: dict[HeapWaiter, None] = field(default_factory=dict)
    hasty: list[HeapWaiter] = field(default_factory=list)
    """Those who came in this turn and do not wait for another."""
    streams: dict[int, PopStream] = field(default_factory=dict)
    """By connection."""
    places: dict[int, HeapWaiter] = field(default_factory=dict)
    """Where streams wait, by connection."""
    wakes_ms: int = FOREVER_MS
    """When this line is looked at next because of time."""
    stirred: set[int] = field(default_factory=set)
    """Partitions that may have something to hand out. In all others, nothing can be ready before `wakes_ms`."""

    def __post_init__(self) -> None:
        self.stir()

    def stir(self) -> None:
        """Anything may have happened in any partition."""
        self.stirred = set(range(len(self.parts)))

    def join(self, waiter: HeapWaiter) -> None:
        if not self.waiters:
            # While nobody waits, nobody looks at when a delay ends.
            self.stir()
        self.waiters[waiter] = None
        if waiter.stream is not None:
            self.places[waiter.popper.connection] = waiter

    def leave(self, waiter: HeapWaiter) -> bool:
        """Whether it was in line."""
        if waiter not in self.waiters:
            return False
        del self.waiters[waiter]
        if waiter.stream is not None:
            self.places.pop(waiter.popper.connection, None)
        return True

    def go_last(self, waiter: HeapWaiter) -> None:
        """It was served, and waits for more."""
        del self.waiters[waiter]
        self.waiters[waiter] = None

    @property
    def is_idle(self) -> bool:
        return not self.waiters and not self.streams
