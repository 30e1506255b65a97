"""Those who wait for the jobs of one queue, in the order they came: claims that may wait, and streams with room.

A claim is answered once. A stream stays: it is in line while it holds fewer jobs than it may, and gets in line again
when it has become lighter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from topics.core.commands import Claimer
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.model import ClaimedJobs

FOREVER_MS = 2**63
"""A time that does not come."""


@dataclass(slots=True, eq=False)
class Waiter:
    """One claim, or the place of one stream."""

    claimer: Claimer
    until_ms: int
    answered: Callable[[ClaimedJobs], None]
    failed: Callable[[TopicsError], None]


@dataclass(slots=True, eq=False)
class Stream:
    """Jobs pushed to one worker on one connection, never more than `max` at a time."""

    topic: str
    partition: int
    log_id: int
    claimer: Claimer
    deliver: Callable[[ClaimedJobs], None]
    """Gets jobs when their leases are as safe as they have to be."""
    ended: Callable[[TopicsError], None]
    """Told once when nothing will come any more, and why."""
    paced: Callable[[int], None] = lambda retry_after_ms: None
    """Told now and then while nothing comes because the server is behind, and when it tries again."""
    close: Callable[[], None] = lambda: None
    """The connection is gone: what it holds can be claimed by others at once."""
    pause: Callable[[], None] = lambda: None
    resume: Callable[[], None] = lambda: None
    """The connection takes nothing for now, and does again."""
    is_open: bool = True
    is_paused: bool = False

    def end(self, error: TopicsError) -> None:
        if self.is_open:
            self.is_open = False
            self.ended(error)


@dataclass(slots=True, eq=False)
class Line:
    topic: str
    partition: int
    log_id: int
    waiters: dict[Waiter, None] = field(default_factory=dict)
    hasty: list[Waiter] = field(default_factory=list)
    """Those who came in this turn and do not wait for another."""
    streams: dict[int, Stream] = field(default_factory=dict)
    """By connection."""
    places: dict[int, Waiter] = field(default_factory=dict)
    """Where streams wait, by connection."""
    window_ends_ms: int = 0
    """Nobody is served before this: others may join until then."""
    behind_since_ms: int = FOREVER_MS
    """Since when nobody is served because the disk is behind, or since those in line were last told so."""
    wakes_ms: int = FOREVER_MS
    """When this line is looked at next because of time."""

    def join(self, waiter: Waiter) -> None:
        self.waiters[waiter] = None

    def leave(self, waiter: Waiter) -> bool:
        """Whether it was in line."""
        if waiter not in self.waiters:
            return False
        del self.waiters[waiter]
        if waiter.claimer.connection:
            self.places.pop(waiter.claimer.connection, None)
        return True

    @property
    def is_empty(self) -> bool:
        return not self.waiters and not self.streams


def ticket_waiter(claimer: Claimer, until_ms: int) -> tuple[Waiter, Ticket]:
    """A claim in line, and the ticket that its answer comes on."""
    ticket = Ticket()
    return Waiter(claimer, until_ms, ticket.resolve, ticket.fail), ticket
