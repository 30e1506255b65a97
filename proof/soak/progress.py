"""How far a part of the soak has come: it tells a file, which whoever started it looks at."""

from __future__ import annotations

import os
from os import environ
from pathlib import Path

VARIABLE = "SOAK_PROGRESS"
"""Names the file."""


def tell(done: float, total: float) -> None:
    """Say how much of all is done. Does nothing in a process that no soak has started."""
    name = environ.get(VARIABLE)
    if name:
        draft = Path(f"{name}.new")
        draft.write_text(f"{done} {total}")
        os.replace(draft, name)


def told(path: Path) -> tuple[float, float] | None:
    """What was said last, if anything was: how much is done, and of how much."""
    try:
        done, total = path.read_text().split()
    except FileNotFoundError:
        return None
    return float(done), float(total)
