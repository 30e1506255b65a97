"""What a log knows of moves: those that leave it and are not finished, and the last that came from each other log.

See `core/move.py` for what a move is.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from topics.core.facts import MoveDecided, MoveId


@dataclass(slots=True)
class Transit:
    leaving: dict[int, MoveDecided] = field(default_factory=dict)
    """Moves out of this log, by their numbers, ascending."""
    received: dict[int, int] = field(default_factory=dict)
    """Source log -> the number of the last move that came from it."""
    next_number: int = 1

    def decided(self, fact: MoveDecided) -> None:
        self.leaving[fact.number] = fact
        self.next_number = max(self.next_number, fact.number + 1)

    def finished(self, number: int) -> MoveDecided | None:
        """The move that is over; None when it is not known, as after a repair."""
        self.next_number = max(self.next_number, number + 1)
        return self.leaving.pop(number, None)

    def came(self, move: MoveId) -> None:
        self.received[move.source_log_id] = max(self.received.get(move.source_log_id, 0), move.number)

    def has(self, move: MoveId) -> bool:
        return self.received.get(move.source_log_id, 0) >= move.number

    def forget_sources(self, existing: Container[int]) -> None:
        """Logs that are gone move nothing any more."""
        self.received = {source: number for source, number in self.received.items() if source in existing}
