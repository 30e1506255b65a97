"""What the tests of a committer with a thread of its own share: the loop it reports to, and ways to meet the thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path

from tests.storage.walrig import SMALL, Rig
from topics.clock import SystemClock
from topics.storage.committer import ThreadCommitter
from topics.storage.fs import RealFs
from topics.testing import Call, FaultFs, SimClock


class Loop:
    """Runs on the test's thread what the committers post, as an event loop would."""

    def __init__(self, fs: RealFs | FaultFs, directory: Path) -> None:
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.posts = 0
        self.rig = Rig(fs, str(directory / "wal"), SMALL, SystemClock(), self.post)

    def post(self, report: Callable[[], None]) -> None:
        self.posts += 1
        self.posted.put(report)

    def until(self, event: str, group: int) -> None:
        while not self.rig.heard.knows(event, 0, group):
            self.posted.get(timeout=30)()


def asleep(loop: Loop) -> ThreadCommitter:
    """The committer of a WAL whose thread has nothing to do."""
    loop.rig.start()
    committer = loop.rig.wal._committers[0]
    assert isinstance(committer, ThreadCommitter)
    sleeping(committer)
    return committer


def sleeping(committer: ThreadCommitter) -> None:
    while True:
        with committer._lock:
            if committer._idle:
                return


def threads_that_write(fs: FaultFs) -> list[str]:
    """From now on, the names of those that write to WAL files."""
    names: list[str] = []

    def note(call: Call) -> None:
        if call.name == "write_at" and call.path.endswith(".wal"):
            names.append(threading.current_thread().name)

    fs.on_call = note
    return names


class WatchedClock(SimClock):
    """Tells how often the thread has looked at it."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = threading.Semaphore(0)

    def ticks_ns(self) -> int:
        if threading.current_thread().name == "wal-0":
            self.looks.release()
        return super().ticks_ns()


class LateLock:
    """The lock of a committer, which the test's thread comes to late once it has been told to."""

    def __init__(self, committer: ThreadCommitter, meanwhile: Callable[[], None]) -> None:
        self._lock = committer._lock
        self._meanwhile = meanwhile
        self.late = False
        committer._lock = self  # type: ignore[assignment]

    def __enter__(self) -> None:
        if self.late and threading.current_thread().name == "MainThread":
            self.late = False
            self._meanwhile()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
