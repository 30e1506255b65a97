"""The times in which a place has to keep what it was given, one after the other.

Most places have one, from their beginning on. One that forgets when the process dies begins anew there, and one that is
dropped begins anew behind that. `drop` asks for nothing; of a drop that got no answer nobody can say when it happened,
so the next time begins behind the next one that did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topics.testing.checkers.events import Call, History


@dataclass(frozen=True, slots=True)
class Span:
    """Between two moments; `until` is None for the last one."""

    since: int = 0
    until: int | None = None
    dropped_at: int = 0
    """When the drop that it lies behind was asked for: what was written before that is gone. 0 for none."""

    def holds(self, call: Call) -> bool:
        """Whether a call lies wholly in it."""
        return call.sent > self.since and (self.until is None or (call.done is not None and call.done < self.until))

    def may_have(self, write: Call) -> bool:
        """Whether something written by a call may be there."""
        over = write.done is not None and write.copies == 1 and write.done < self.dropped_at
        return write.possible and not over


def spans(history: History, place: str) -> Iterator[Span]:
    breaks: list[tuple[int, int | None, bool]] = []
    if history.topic(place).forgets:
        breaks += [(fault.at, fault.at, False) for fault in history.faults]
    for call in history.of(place, "drop"):
        if call.possible:
            breaks.append((call.sent, call.done if call.copies == 1 else None, True))
    since: int | None = 0
    dropped_at = 0
    for begins, ends, dropped in sorted(breaks, key=lambda found: found[0]):
        if since is not None:
            yield Span(since, begins, dropped_at)
        since = ends
        if dropped:
            dropped_at = begins if ends is not None else dropped_at
    if since is not None:
        yield Span(since, None, dropped_at)
