"""A draft: a file under a temporary name until it is whole and durable.

Write, `seal` (sync and close), `publish` (rename), then the caller syncs the directory, once for all the files
that belong together. A name without the temporary suffix therefore always stands for a whole file. A draft that
is left behind by a crash is swept at the next start; one that fails is discarded at once, so that a full disk
does not stay full of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from topics.storage.fs import Buffer, FileSystem

TEMP_SUFFIX = ".tmp"
WRITE_BYTES = 1 << 20
"""Buffers are gathered up to this size before they are written."""


class Draft:
    def __init__(self, fs: FileSystem, path: str) -> None:
        self.path = path
        self.temp_path = path + TEMP_SUFFIX
        self.length_bytes = 0
        self._fs = fs
        self._gathered: list[Buffer] = []
        self._gathered_bytes = 0
        if fs.exists(self.temp_path):
            fs.unlink(self.temp_path)
        self._file = fs.open(self.temp_path, "create")

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Add buffers to the file; the offset at which they begin."""
        start = self.length_bytes
        added = sum(map(len, buffers))
        self._gathered += buffers
        self._gathered_bytes += added
        self.length_bytes += added
        if self._gathered_bytes >= WRITE_BYTES:
            self._flush()
        return start

    def _flush(self) -> None:
        if self._gathered:
            self._file.write_at(self.length_bytes - self._gathered_bytes, self._gathered)
        self._gathered = []
        self._gathered_bytes = 0

    def seal(self) -> None:
        """Make the bytes durable; nothing can be added any more."""
        self._flush()
        self._file.sync()
        self._file.close()

    def publish(self) -> None:
        """Give the sealed file its name; durable after the caller's `sync_dir`."""
        self._fs.rename(self.temp_path, self.path)

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.discard()

    def discard(self) -> None:
        """Take it away, as something went wrong: that is what matters, and what cannot be cleaned up is swept later."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._fs.unlink(self.temp_path)
