"""A process gives up what a query does not need: files, sockets, core dumps, signals, and memory beyond a bound.

The limits are the kernel's, so code inside the process cannot take them back.
"""

from __future__ import annotations

import resource
import signal

from topics.limits import QUERY_SLACK_BYTES
from topics.storage.fs import ProcessMemory

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
"""A terminal or a service manager sends these to whole groups. A query process ends when its engine does."""


def ignore_signals() -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)


def confine(memory: ProcessMemory, memory_bytes: int) -> None:
    """Limit this process for good. Everything it needs has to be loaded and open."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, 0)
    used = memory.data_bytes()
    if used:
        _limit(resource.RLIMIT_DATA, used + memory_bytes + QUERY_SLACK_BYTES)


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bounded, bounded))
