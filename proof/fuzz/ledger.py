"""What was done: for each decoder how many inputs from how many seeds, what they reached and what they broke.

Every input counts that was made and run; `traced` are those of them whose arcs were looked at (`search.py`).

It is in `build/proof/fuzz.json`, so that a search goes on where it left off, and the page can say how far it is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from proof.results import RESULTS, load, save

NAME: Final = "fuzz"
COMMAND: Final = "python -m proof fuzz"


@dataclass(slots=True)
class Entry:
    inputs: int = 0
    traced: int = 0
    seeds: int = 0
    """Searches begun, each from a seed of its own: 1, 2, 3 …"""
    arcs: int = 0
    crashes: int = 0
    """Found and not fixed yet: those that the last search came upon."""
    seconds: float = 0.0
    date: str = ""
    """Of the last search."""
    code: str = ""
    """What was searched last, see `Target.code`."""
    command: str = ""


class Ledger:
    def __init__(self, directory: Path = RESULTS) -> None:
        self._directory = directory
        found = load(NAME, directory) or {}
        self.entries = {name: Entry(**entry) for name, entry in found.get("decoders", {}).items()}

    def of(self, decoder: str) -> Entry:
        return self.entries.setdefault(decoder, Entry(command=f"{COMMAND} {decoder}"))

    def save(self) -> None:
        decoders = {name: asdict(entry) for name, entry in sorted(self.entries.items())}
        totals = {
            "inputs": sum(entry.inputs for entry in self.entries.values()),
            "traced": sum(entry.traced for entry in self.entries.values()),
        }
        save(NAME, COMMAND, {**totals, "decoders": decoders}, self._directory)
