"""Seqs of a log that will never be delivered, as ranges in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from topics.limits import HOLES_MAX
from topics.model import Reason

NO_ENTRIES: Final[Mapping[Any, Any]] = {}
"""What a log lost when it lost nothing: one object for all logs, as there may be very many. Nobody changes it."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Seqs that were assigned, or may have been, and will never be delivered."""

    gap_from: int
    gap_to: int
    reason: Reason


def add_last(holes: list[Hole], gap_from: int, gap_to: int, reason: Reason) -> None:
    """Add a range behind all others, or make the last one longer."""
    if holes and holes[-1].gap_to + 1 >= gap_from and holes[-1].reason == reason:
        holes[-1] = Hole(holes[-1].gap_from, gap_to, reason)
    else:
        holes.append(Hole(gap_from, gap_to, reason))
    if len(holes) > HOLES_MAX:
        # The two oldest become one: the range told to a reader grows, it never shrinks.
        first, second = holes[:2]
        holes[:2] = [Hole(first.gap_from, second.gap_to, Reason.MIXED)]
