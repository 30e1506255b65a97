"""The tree that a result is about: a hash of every file that a run depends on."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("topics", "disheap", "tests", "proof", "reference", "bench", "examples", "docs", "deploy")
LONE = ("pyproject.toml", "pyspark_topics.py", "pyspark_topics_changes.py", "Makefile", "mkdocs.yml", "README.md")
"""What a test may read beside the rooms."""
HASHED = ("topics", "disheap", "tests", "proof", "pyproject.toml", "pyspark_topics.py", "pyspark_topics_changes.py")
SHOWN_DIGITS = 12


def files(root: Path, *names: str) -> Iterator[Path]:
    """All files below these names, in order, without what Python leaves behind."""
    for name in names:
        place = root / name
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        yield from (path for path in found if path.is_file() and "__pycache__" not in path.parts)


def tree_hash(root: Path = ROOT) -> str:
    """What a result is good for: another one after any change to code or tests, the same after one to documents."""
    digest = sha256()
    for path in files(root, *HASHED):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:SHOWN_DIGITS]
