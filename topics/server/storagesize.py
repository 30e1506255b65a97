"""How much disk the engine uses, by tier, and how much is left. Looking takes a call a file: for a thread, now and
then, and of very many segments only so many are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from topics.storage.fs import FileSystem

FILES_MAX: Final = 5000


@dataclass(frozen=True, slots=True)
class StorageSize:
    wal_bytes: int = 0
    hot_bytes: int = 0
    cold_bytes: int = 0
    free_bytes: int = 0


def measure(fs: FileSystem, directory: str, segment_dir: str, cold_dir: str | None) -> StorageSize:
    return StorageSize(
        _directory_bytes(fs, f"{directory}/wal"),
        _directory_bytes(fs, segment_dir),
        0 if cold_dir is None else _directory_bytes(fs, cold_dir),
        fs.free_bytes(directory),
    )


def _directory_bytes(fs: FileSystem, directory: str) -> int:
    """Of more files than are measured, what they would have if they were like those."""
    names = fs.list(directory)
    total_bytes = sum(_file_bytes(fs, f"{directory}/{name}") for name in names[:FILES_MAX])
    return total_bytes * len(names) // min(len(names), FILES_MAX) if names else 0


def _file_bytes(fs: FileSystem, path: str) -> int:
    try:
        file = fs.open(path, "read")
    except OSError:
        # A checkpoint may have taken it away meanwhile.
        return 0
    try:
        return file.size()
    finally:
        file.close()
