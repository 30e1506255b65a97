"""What has passed already: kept in `soak.json`, and good for the tree that it was tried with."""

from __future__ import annotations

from pathlib import Path

from proof.results import RESULTS, Result, load, save, today

NAME = "soak"
COMMAND = "make soak"


class State:
    def __init__(self, tree: str, minutes: float, results: Path = RESULTS) -> None:
        """`minutes` is what this soak is asked for; 0 is the full size, which counts for every other."""
        self._tree = tree
        self._minutes = minutes
        self._results = results

    @property
    def _parts(self) -> dict[str, Result]:
        """Read each time: another soak may run other parts beside this one."""
        stored = load(NAME, self._results)
        return {} if stored is None else dict(stored["parts"])

    def passed(self, name: str) -> bool:
        """Whether a part has passed with this very tree, in its full size or for as long as is asked for."""
        found = self._parts.get(name)
        if found is None or not found["passed"] or found["tree"] != self._tree:
            return False
        return not found["minutes"] or 0 < self._minutes <= found["minutes"]

    def note(self, name: str, passed: bool, seconds: float, why: str = "") -> None:
        ran = {
            "passed": passed,
            "tree": self._tree,
            "date": today(),
            "minutes": self._minutes,
            "seconds": round(seconds, 1),
            "why": why,
        }
        save(NAME, COMMAND, {"parts": self._parts | {name: ran}}, self._results)
