"""A mutant: one change that breaks a promise, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    breaks: str
    """The promise that is broken, in words."""
    file: str
    old: str
    """Stands in the file exactly once."""
    new: str
    tests: tuple[str, ...]
    """A short selection for pytest: one of them has to fail."""

    def applied(self, text: str) -> str:
        """The text of its file with the change in it; `ValueError` when the code is not as it was any more."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f'mutant "{self.name}": its old text is in {self.file} {found} times, not once')
        return text.replace(self.old, self.new)


class Applied:
    """A block in which the mutant is in a copy of the tree. Its compiled form is forgotten with it."""

    def __init__(self, mutant: Mutant, root: Path) -> None:
        self._path = root / mutant.file
        self._text = self._path.read_text()
        self._changed = mutant.applied(self._text)

    def __enter__(self) -> None:
        self._write(self._changed)

    def __exit__(self, *error: object) -> None:
        self._write(self._text)

    def _write(self, text: str) -> None:
        self._path.write_text(text)
        # Python compares whole seconds and sizes, and a mutant may have the size of what it replaces.
        for compiled in (self._path.parent / "__pycache__").glob(f"{self._path.stem}.*.pyc"):
            compiled.unlink()
