"""Pins: what a running backup still has to read stays as it was when the backup began.

A snapshot names files that never change but for the flags of deleted records, so a pin has to do two things. While a
file is pinned,

    removing it    is put off: whoever wants it gone leaves it here (`defer`), and it goes once it is copied
    setting flags  goes on. Which bytes change is noted first (`note_flags`); a copier reads the file and only then
                   asks for the notes (`unset_flags`), so that it knows of every flag it may have read too new

Neither holds up a writer, a checkpoint or retention. What it costs is disk space, for files that nothing else needs any
more, and some memory for the notes; above either bound the backup is interrupted and everything let go.

Files are pinned on the loop, removed and marked by the checkpoint's thread, and copied on the backup's: a lock guards
all of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable

import numpy as np

from topics.core.run import U64
from topics.errors import BackupInterrupted
from topics.limits import BACKUP_FLAGS_MAX

NO_FLAGS: U64 = np.empty(0, np.uint64)


class Pins:
    def __init__(self, held_bytes_max: int) -> None:
        self.held_bytes = 0
        """The size of the segments that are here for the backup alone."""
        self._held_bytes_max = held_bytes_max
        self._segments: set[int] = set()
        self._flags: dict[int, list[U64]] = {}
        self._flags_count = 0
        self._deferred: dict[int, int] = {}
        self._reason: str | None = None
        self._lock = threading.Lock()

    def hold(self, segments: Iterable[int]) -> None:
        with self._lock:
            self._segments.update(segments)

    def segments(self) -> list[int]:
        """The segments that are pinned, ascending."""
        with self._lock:
            return sorted(self._segments)

    def holds(self, number: int) -> bool:
        with self._lock:
            return number in self._segments

    def defer(self, number: int, size_bytes: int) -> bool:
        """Whether a segment has to stay for now; it is then removed from here."""
        with self._lock:
            if number not in self._segments:
                return False
            self._deferred[number] = size_bytes
            self.held_bytes += size_bytes
            if self.held_bytes > self._held_bytes_max:
                self._interrupt(
                    f"it holds {self.held_bytes} bytes of files that nothing else needs any more, and at most "
                    f"{self._held_bytes_max} are allowed (TOPICS_BACKUP_HELD_BYTES): read it faster, or allow more"
                )
            return True

    def note_flags(self, number: int, offsets: U64) -> None:
        """Flags of a segment are about to be set; these, which are not set yet."""
        with self._lock:
            if number not in self._segments:
                return
            self._flags.setdefault(number, []).append(offsets)
            self._flags_count += len(offsets)
            if self._flags_count > BACKUP_FLAGS_MAX:
                self._interrupt(f"more than {BACKUP_FLAGS_MAX} records were deleted in segments that it had not read")

    def unset_flags(self, number: int) -> U64:
        """Offsets of all flags that may have been set since the segment was pinned."""
        with self._lock:
            noted = self._flags.get(number)
            return np.concatenate(noted) if noted else NO_FLAGS

    def copied(self, number: int, remove: Callable[[int], None]) -> None:
        """A segment need not stay any more; it is removed if somebody wanted that."""
        with self._lock:
            self._segments.discard(number)
            self._flags_count -= sum(map(len, self._flags.pop(number, ())))
            if number in self._deferred:
                remove(number)
                self.held_bytes -= self._deferred.pop(number)

    def interrupt(self, reason: str) -> None:
        """Let everything go: the backup fails at its next read, and `check` tells it why."""
        with self._lock:
            self._interrupt(reason)

    def _interrupt(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._segments.clear()
        self._flags.clear()
        self._flags_count = 0

    def check(self) -> None:
        """What was read before this is good; raises when the backup was interrupted."""
        if self._reason is not None:
            raise BackupInterrupted(f"the backup was interrupted: {self._reason}", reason=self._reason)

    def take_deferred(self) -> Collection[int]:
        """Segments that were to be removed and now may be: all of them once the backup is over, or interrupted."""
        with self._lock:
            free = [number for number in self._deferred if number not in self._segments]
            for number in free:
                self.held_bytes -= self._deferred.pop(number)
            return free
