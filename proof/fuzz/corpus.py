"""Inputs in files: a directory a decoder, a file an input, named by what is in it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "tests" / "fuzz" / "corpus"
"""What is replayed with the tests: a small corpus, and every crash there was."""
FOUND: Final = ROOT / "build" / "proof" / "fuzz"
"""What searches on this machine have found."""
CRASH_START: Final = "crash-"


def read(directory: Path) -> list[bytes]:
    """All inputs of a directory, always in the same order."""
    return [path.read_bytes() for path in sorted(directory.glob("*")) if path.is_file()]


def write(directory: Path, inputs: Iterable[bytes], start: str = "") -> None:
    """Add inputs to a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (directory / f"{start}{sha256(data).hexdigest()[:16]}").write_bytes(data)


def replace(directory: Path, inputs: Iterable[bytes]) -> None:
    """Make these all that a directory has, beside its crashes."""
    for path in directory.glob("*"):
        if not path.name.startswith(CRASH_START):
            path.unlink()
    write(directory, inputs)
