"""How much memory a process has."""

from __future__ import annotations

from pathlib import Path


def resident_bytes(pid: int | None = None) -> tuple[int, int]:
    """A process's resident memory, this one's by itself: all of it, and without mapped files."""
    sizes = {}
    for line in Path(f"/proc/{'self' if pid is None else pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            sizes[name] = int(value.split()[0]) * 1024
    return sizes["VmRSS"], sizes["RssAnon"]
