"""What all logs together hold, kept as they change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Totals:
    count: int = 0
    bytes: int = 0
    overrun_count: int = 0
    """Records that retention took although a holder needed them, since the process started."""
    overrun_topic: str = ""
    """Where it did so last."""
