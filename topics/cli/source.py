"""Where lines to write come from: a file, which can be read twice, or stdin, which cannot.

Lines are cut out of chunks as they arrive, so that a slow producer behind a pipe is not waited for, and gathered into
batches that one write takes. A batch knows the number of each of its lines, for whoever has to name a bad one.
"""

from __future__ import annotations

import asyncio
import errno
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from topics.cli.streams import naming
from topics.errors import InvalidRequest, NotFound
from topics.limits import MIB, RECORD_BYTES_MAX
from topics.storage.fs import File, RealFs

CHUNK_BYTES = 1 * MIB
BATCH_LINES_MAX = 1000
BATCH_BYTES_MAX = 1 * MIB
LINE_BYTES_MAX = 2 * RECORD_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines for one write, each with its number in its source, counted from 1."""

    source: str
    lines: list[tuple[int, bytes]]
    read_bytes: int
    """Of the source up to the end of this batch."""


@dataclass(slots=True)
class _Cutter:
    """Cuts chunks into lines and lines into batches; blank lines count and are left out."""

    source: str
    _rest: bytes = b""
    _number: int = 0
    _read_bytes: int = 0
    _lines: list[tuple[int, bytes]] = field(default_factory=list)
    _batch_bytes: int = 0

    def cut(self, chunk: bytes) -> Iterator[Batch]:
        """The batches that this chunk completes: everything up to its last line break."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise InvalidRequest(
                f"{self.source} line {self._number + len(lines) + 1} has more than {LINE_BYTES_MAX} bytes; "
                "expected a record on each line"
            )
        for line in lines:
            yield from self._add(line, len(line) + 1)
        yield from self._flush()

    def end(self) -> Iterator[Batch]:
        """The last line, if no line break ended it."""
        rest, self._rest = self._rest, b""
        yield from self._add(rest, len(rest))
        yield from self._flush()

    def _add(self, line: bytes, size_bytes: int) -> Iterator[Batch]:
        self._number += 1
        self._read_bytes += size_bytes
        if line.strip():
            self._lines.append((self._number, line))
            self._batch_bytes += size_bytes
        if len(self._lines) == BATCH_LINES_MAX or self._batch_bytes >= BATCH_BYTES_MAX:
            yield from self._flush()

    def _flush(self) -> Iterator[Batch]:
        if self._lines:
            yield Batch(self.source, self._lines, self._read_bytes)
        self._lines, self._batch_bytes = [], 0


class FileSource:
    """A file of lines; `batches` begins at the start each time."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file: File = RealFs().open(path, "read")
            self.size_bytes = self._file.size()
            self._file.read_at(0, 1)
        except FileNotFoundError:
            raise NotFound(f"{path} does not exist; expected a file of JSON lines") from None
        except OSError as error:
            hint = "; a pipe is read from stdin" if error.errno == errno.ESPIPE else ""
            raise InvalidRequest(f"{path}: {error.strerror}; expected a file of JSON lines{hint}") from None

    def batches(self) -> Iterator[Batch]:
        cutter = _Cutter(self.path)
        offset = 0
        while chunk := self._file.read_at(offset, CHUNK_BYTES):
            offset += len(chunk)
            yield from cutter.cut(chunk)
        yield from cutter.end()

    def close(self) -> None:
        self._file.close()


async def stdin_batches(name: str = "stdin") -> AsyncIterator[Batch]:
    """What comes through stdin, as it comes."""
    cutter = _Cutter(name)
    async for chunk in stdin_chunks():
        for batch in cutter.cut(chunk):
            yield batch
    for batch in cutter.end():
        yield batch


async def stdin_chunks() -> AsyncGenerator[bytes, None]:
    """What stdin has, as it comes; at a terminal, a line at a time. Nothing is read before it is asked for.

    A thread reads, because stdin may be a file, a pipe or a terminal, and a loop cannot wait for all of them. Nobody
    can wake a thread that waits for a key, so it is a daemon, and it reads past the buffer of `sys.stdin`, whose lock
    would keep the interpreter from ending.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    wanted = threading.Semaphore(0)
    read: Callable[[int], bytes | None] = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer).read

    def pump() -> None:
        chunk: bytes | OSError = b"."
        while isinstance(chunk, bytes) and chunk:
            wanted.acquire()
            try:
                with naming("stdin"):
                    chunk = read(CHUNK_BYTES) or b""
            except OSError as error:
                chunk = error
            with suppress(RuntimeError):  # nobody waits any more: the loop is closed
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)

    threading.Thread(target=pump, name="stdin", daemon=True).start()
    wanted.release()
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise chunk
        yield chunk
        wanted.release()
