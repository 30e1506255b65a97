"""MonitorFs: any file system, watched for calls made in an order that a power loss would punish.

It follows every file by what it is, not by what it is called: a `_Trace` goes along with a rename and stays
with the handles that were opened before. A trace keeps the file's length and three lists of byte ranges:

    dirty      changed since the last sync began. A shrink is an empty range at the new end.
    in flight  handed to a sync that has not returned.
    lost       handed to a sync that failed: no later sync makes them durable, only another file does.

A name is durable once a `sync_dir` of its directory that began after the name was given has returned. Bytes
are durable if no list touches them and the name that leads to them is durable.

Two rules are checked as the calls come in, before they reach the disk. A file is renamed only with all its
bytes synced. A file is unlinked only if a predicate registered with `allow_unlink` says so. A call that breaks
a rule is not made: it raises `AssertionError` with the file's history, and is kept in `violations` for a test
whose code under test handles exceptions. Everything else is for tests to ask: `is_durable`, `durable_length`,
`name_is_durable`, `assert_synced`.

Files that are there before the monitor first meets them count as durable, bytes and name.

With `FaultFs` inside, the monitor sees failures as the disk's; with `FaultFs` outside, it also sees through
calls that were skipped, as they never reach it.
"""

from __future__ import annotations

import posixpath
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from topics.storage.fs import Buffer, DirectoryLock, File, FileSystem, Mapping, OpenMode

HISTORY_LINES_MAX = 200
"""What a trace remembers of its file's past."""


@dataclass(frozen=True, slots=True)
class _Range:
    start: int
    end: int


@dataclass(slots=True, eq=False)
class _Trace:
    length: int = 0
    dirty: list[_Range] = field(default_factory=list)
    in_flight: list[list[_Range]] = field(default_factory=list)
    lost: list[_Range] = field(default_factory=list)
    history: deque[str] = field(default_factory=lambda: deque(maxlen=HISTORY_LINES_MAX))

    def unsynced(self) -> list[_Range]:
        return [*self.lost, *(gap for taken in self.in_flight for gap in taken), *self.dirty]

    def note_write(self, start: int, end: int) -> None:
        # What lies between the old end and the write is new too.
        start = min(start, self.length)
        self.length = max(self.length, end)
        if self.dirty and self.dirty[-1].start <= start <= self.dirty[-1].end:
            start, end = self.dirty[-1].start, max(end, self.dirty[-1].end)
            self.dirty.pop()
        self.dirty.append(_Range(start, end))

    def note_doubt(self, start: int, end: int) -> None:
        """A failed call may have changed any of these bytes; the length stays what is sure."""
        self.dirty.append(_Range(min(start, self.length), end))

    def note_length(self, length: int) -> None:
        if length != self.length:
            self.dirty.append(_Range(min(length, self.length), length))
        self.length = length

    def begin_sync(self) -> list[_Range]:
        taken, self.dirty = self.dirty, []
        self.in_flight.append(taken)
        return taken

    def end_sync(self, taken: list[_Range], *, failed: bool) -> None:
        self.in_flight = [other for other in self.in_flight if other is not taken]
        if failed:
            self.lost.extend(taken)

    def durable_length(self) -> int:
        return min([self.length, *(gap.start for gap in self.unsynced())])

    def covers(self, start: int, end: int) -> bool:
        return end <= self.length and not any(gap.start < end and start < gap.end for gap in self.unsynced())


class MonitorFs:
    def __init__(self, inner: FileSystem) -> None:
        self.inner = inner
        self.violations: list[str] = []
        self._names: dict[str, _Trace] = {}
        self._durable_names: dict[str, _Trace] = {}
        self._unlink_predicates: list[Callable[[str], bool]] = []
        self._step = 0
        self.mutex = threading.RLock()
        """Guards the traces; never held across a sync, so that writes may go on beside it."""

    # What tests ask.

    def allow_unlink(self, predicate: Callable[[str], bool]) -> None:
        """Allow the unlinks of which `predicate(path)` says so at the time; a path needs one that does."""
        self._unlink_predicates.append(predicate)

    def name_is_durable(self, path: str) -> bool:
        with self.mutex:
            trace = self._trace(path)
            return trace is not None and self._durable_names.get(posixpath.normpath(path)) is trace

    def is_durable(self, path: str, offset: int, length: int) -> bool:
        """Would these bytes be found under this name after a power loss now?"""
        with self.mutex:
            trace = self._trace(path)
            return trace is not None and self.name_is_durable(path) and trace.covers(offset, offset + length)

    def durable_length(self, path: str) -> int:
        """How long a prefix of the file a power loss now would leave under this name."""
        with self.mutex:
            trace = self._trace(path)
            return trace.durable_length() if trace is not None and self.name_is_durable(path) else 0

    def assert_synced(self, path: str, upto_offset: int) -> None:
        with self.mutex:
            durable = self.durable_length(path)
            if durable < upto_offset:
                name = "durable" if self.name_is_durable(path) else "not durable"
                self._refuse(
                    path, f"{path} must be durable up to {upto_offset}, is up to {durable}; its name is {name}"
                )

    def assert_clean(self) -> None:
        """No rule was broken, not even in code that caught the error."""
        assert not self.violations, "\n".join(self.violations)

    def history(self, path: str) -> list[str]:
        """What was done to the file that has this name now, numbered in the order of all calls."""
        with self.mutex:
            trace = self._trace(path)
            return [] if trace is None else list(trace.history)

    # What calls leave behind.

    @contextmanager
    def noting(self, trace: _Trace, event: str) -> Iterator[None]:
        """Change a trace, with a line in its history that says why."""
        with self.mutex:
            self._record(trace, event)
            yield

    def _record(self, trace: _Trace, event: str) -> None:
        self._step += 1
        trace.history.append(f"{self._step}: {event}")

    def _trace(self, path: str) -> _Trace | None:
        """The trace of the file with this name, made now if the file was there before the monitor came."""
        path = posixpath.normpath(path)
        if path not in self._names and path not in self._durable_names and self.inner.exists(path):
            self._adopt(path, self.inner.open(path, "read"))
        return self._names.get(path)

    def _adopt(self, path: str, file: File) -> None:
        trace = _Trace(length=file.size())
        file.close()
        self._names[path] = self._durable_names[path] = trace
        self._record(trace, f"found with {trace.length} bytes")

    def _refuse(self, path: str, broken_rule: str) -> None:
        violation = "\n  ".join([broken_rule, *self.history(path)])
        self.violations.append(violation)
        raise AssertionError(violation)

    # The file system.

    def open(self, path: str, mode: OpenMode) -> File:
        with self.mutex:
            if mode == "create":
                file = self.inner.open(path, mode)
                trace = self._names[posixpath.normpath(path)] = _Trace()
            else:
                known = self._trace(path)
                file = self.inner.open(path, mode)
                assert known is not None, f"{path} can be opened but was not found"
                trace = known
            self._record(trace, f"open {path} to {mode}")
            return MonitoredFile(self, trace, file)

    def map(self, path: str) -> Mapping:
        return self.inner.map(path)

    def rename(self, source: str, target: str) -> None:
        with self.mutex:
            trace = self._trace(source)
            if trace is not None and (unsynced := trace.unsynced()):
                self._refuse(source, f"rename of {source} to {target} with unsynced bytes: {unsynced}")
            self.inner.rename(source, target)
            assert trace is not None, f"{source} can be renamed but was not found"
            self._names.pop(posixpath.normpath(source))
            self._names[posixpath.normpath(target)] = trace
            self._record(trace, f"rename {source} to {target}")

    def unlink(self, path: str) -> None:
        with self.mutex:
            trace = self._trace(path)
            if not any(allows(path) for allows in self._unlink_predicates):
                self._refuse(path, f"unlink of {path}, which no registered predicate allows")
            self.inner.unlink(path)
            assert trace is not None, f"{path} can be unlinked but was not found"
            self._names.pop(posixpath.normpath(path))
            self._record(trace, f"unlink {path}")

    def list(self, directory: str) -> list[str]:
        return self.inner.list(directory)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def make_dir(self, path: str) -> None:
        self.inner.make_dir(path)

    def rename_dir(self, source: str, target: str) -> None:
        old, new = posixpath.normpath(source), posixpath.normpath(target)
        with self.mutex:
            inside = [name for name in self._names if name.startswith(f"{old}/")]
            for name in inside:
                if unsynced := self._names[name].unsynced():
                    self._refuse(name, f"rename of {source} to {target} with unsynced bytes in {name}: {unsynced}")
                if self._durable_names.get(name) is not self._names[name]:
                    self._refuse(name, f"rename of {source} to {target}, in which the name {name} is not durable")
            self.inner.rename_dir(source, target)
            for names in (self._names, self._durable_names):
                for name in [name for name in names if name.startswith(f"{old}/")]:
                    names[new + name.removeprefix(old)] = names.pop(name)
            for name in inside:
                self._record(self._names[new + name.removeprefix(old)], f"rename of its directory to {target}")

    def remove_dir(self, path: str) -> None:
        self.inner.remove_dir(path)

    def sync_dir(self, path: str) -> None:
        directory = posixpath.normpath(path)
        with self.mutex:
            given = {name: trace for name, trace in self._names.items() if posixpath.dirname(name) == directory}
            taken = [name for name in self._durable_names if posixpath.dirname(name) == directory and name not in given]
        self.inner.sync_dir(path)
        with self.mutex:
            self._durable_names.update(given)
            for name in taken:
                self._durable_names.pop(name, None)
            for trace in given.values():
                self._record(trace, f"sync_dir {path}")

    def lock(self, path: str) -> DirectoryLock:
        return self.inner.lock(path)

    def boot_id(self) -> str:
        return self.inner.boot_id()

    def recall(self, directory: str) -> Sequence[int]:
        return self.inner.recall(directory)

    def memorize(self, directory: str, count: int) -> memoryview | None:
        return self.inner.memorize(directory, count)

    def forget(self, directory: str) -> None:
        self.inner.forget(directory)

    def free_bytes(self, path: str) -> int:
        return self.inner.free_bytes(path)

    def restrict(self, path: str) -> None:
        self.inner.restrict(path)


class MonitoredFile:
    def __init__(self, monitor: MonitorFs, trace: _Trace, inner: File) -> None:
        self.path = inner.path
        self._monitor = monitor
        self._trace = trace
        self._inner = inner

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        end = offset + sum(memoryview(buffer).nbytes for buffer in buffers)
        # Noted after the write: a sync that began before it has returned does not cover it.
        try:
            self._inner.write_at(offset, buffers)
        except OSError as error:
            with self._monitor.noting(self._trace, f"write_at {offset} to {end} failed: {error}"):
                self._trace.note_doubt(offset, end)
            raise
        with self._monitor.noting(self._trace, f"write_at {offset} to {end}"):
            if end > offset:
                self._trace.note_write(offset, end)

    def read_at(self, offset: int, length: int) -> bytes:
        return self._inner.read_at(offset, length)

    def size(self) -> int:
        return self._inner.size()

    def truncate(self, length: int) -> None:
        try:
            self._inner.truncate(length)
        except OSError as error:
            with self._monitor.noting(self._trace, f"truncate to {length} failed: {error}"):
                self._trace.note_length(min(length, self._trace.length))
            raise
        with self._monitor.noting(self._trace, f"truncate to {length}"):
            self._trace.note_length(length)

    def allocate(self, length: int) -> None:
        try:
            self._inner.allocate(length)
        except OSError as error:
            with self._monitor.noting(self._trace, f"allocate {length} failed: {error}"):
                self._trace.note_doubt(self._trace.length, length)
            raise
        with self._monitor.noting(self._trace, f"allocate {length}"):
            self._trace.note_length(max(length, self._trace.length))

    def sync(self) -> None:
        with self._monitor.noting(self._trace, "sync begins"):
            taken = self._trace.begin_sync()
        try:
            self._inner.sync()
        except OSError as error:
            with self._monitor.noting(self._trace, f"sync failed: {error}"):
                self._trace.end_sync(taken, failed=True)
            raise
        with self._monitor.noting(self._trace, "sync done"):
            self._trace.end_sync(taken, failed=False)

    def close(self) -> None:
        self._inner.close()
