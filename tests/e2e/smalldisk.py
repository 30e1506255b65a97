"""A disk of a few megabytes, really mounted, with a ballast that can be taken away to make room."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

MIB = 1 << 20
DISK_BYTES = 24 * MIB
BALLAST_BYTES = 18 * MIB
"""Without it there is room for all that was in the write-ahead log once more, as segments."""


@dataclass(frozen=True, slots=True)
class SmallDisk:
    directory: Path

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.directory).free

    def make_room(self) -> None:
        (self.directory / "ballast").unlink()


def _run(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")


@contextmanager
def small_disk(kind: str, place: Path) -> Iterator[SmallDisk]:
    """In memory (`tmpfs`), or a file system on a file (`ext4`). Skips the test where nothing may be mounted."""
    if os.geteuid():
        pytest.skip("only root may mount a small disk")
    if kind == "ext4" and shutil.which("mkfs.ext4") is None:
        pytest.skip("no mkfs.ext4")
    directory = place / kind
    directory.mkdir()
    if kind == "tmpfs":
        _run("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", directory)
    else:
        image = place / "image"
        image.write_bytes(b"")
        os.truncate(image, DISK_BYTES)
        _run("mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", image)
        _run("mount", "-o", "loop", image, directory)
    try:
        (directory / "ballast").write_bytes(bytes(BALLAST_BYTES))
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)
