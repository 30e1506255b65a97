"""Results of runs: one JSON object a file, in `build/proof`, from where the page takes them.

Each has at least `name`, `date` and `command`; whatever else it counts is its own. A file appears whole or not at all,
so that a run that is broken off leaves the one before it.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proof.tree import ROOT

RESULTS = ROOT / "build" / "proof"

Result = dict[str, Any]


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def load(name: str, directory: Path = RESULTS) -> Result | None:
    """The result of this name; None when there is none, or none that can be read."""
    try:
        found = json.loads((directory / f"{name}.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def save(name: str, command: str, counts: Result, directory: Path = RESULTS) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path, draft = directory / f"{name}.json", directory / f"{name}.json.tmp"
    draft.write_text(json.dumps({"name": name, "date": today(), "command": command, **counts}, indent=2) + "\n")
    os.replace(draft, path)
    return path
