"""What a recovery found: said once at the start, and kept for whoever asks."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class RecoveryReport:
    last_stop: str = "never ran"
    snapshot_no: int = 0
    facts: int = 0
    """Facts replayed from the WAL."""
    orphans: int = 0
    """Facts of logs that never came to exist: their creation was not acked and not kept."""
    notes: list[str] = field(default_factory=list)
    """What was mended or cleaned up, in words: torn tails, rebuilt indexes, swept files."""
