"""What a figure depends on: the machine it was measured on, and the memory of this process."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from pathlib import Path


def facts() -> dict[str, str]:
    """The machine in a few words, without anything that names it."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores, one of them used",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": f"{platform.python_implementation()} {'.'.join(map(str, sys.version_info[:3]))}",
        "peer": f"SQLite {sqlite3.sqlite_version}, WAL mode",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def resident_bytes() -> tuple[int, int]:
    """This process's resident memory: all of it, and without mapped files."""
    sizes = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            sizes[name] = int(value.split()[0]) * 1024
    return sizes["VmRSS"], sizes["RssAnon"]
