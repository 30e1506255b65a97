"""A view: what a watcher is shown of a log, and in which portions. Watchers with equal views share what they get."""

from __future__ import annotations

from dataclasses import dataclass

from topics.core.cut import PLAIN, Shape
from topics.core.match import Match


@dataclass(frozen=True, slots=True)
class View:
    limit: int
    """Records in one batch at most, at least 1."""
    byte_budget: int
    """Payload bytes in one batch, beyond its first record; at least 1."""
    nodes: tuple[bytes, ...] = ()
    """Records of these nodes are left out, where the topic's config allows it."""
    match: Match | None = None
    """Only records whose tag matches."""
    shape: Shape = PLAIN
    strong: bool = False
    """Show only what is synced, whatever the topic's durability class lets other readers see."""

    @property
    def is_plain(self) -> bool:
        """Whether everything is shown, as it is stored."""
        return self.match is None and not self.nodes and self.shape == PLAIN
