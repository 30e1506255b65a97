"""A query process as the engine sees it: started when first needed, asked one query at a time, killed when need be.

The process gets two sockets, nothing of the environment that could be a secret, and no other open file. All calls block
but `stop` and `kill`, which any thread may make at any moment.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from os import environ
from os.path import abspath
from threading import Lock
from typing import Final

import msgspec

from topics.errors import Unavailable
from topics.sqlengine.channel import STOP, Buffer, Channel, ChannelClosed, Head, Kind
from topics.sqlengine.querymessages import MESSAGE_BYTES_MAX, Confinement, Failure, Open, Query, encode

_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from topics.sqlengine.lean import do_without_pandas; do_without_pandas(); "
    "from topics.sqlengine.queryprogram import main; main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)
_ENVIRONMENT: Final = {
    # Few arenas and the plain allocator: memory that is given up goes back, and no address space is set aside.
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
}
_INHERITED: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT")
"""Where the interpreter may need libraries from."""

Batches = Generator[tuple[Buffer, bool], None, None]
Scans = Callable[[Open], Batches]
"""The batches of a scan as Arrow streams, and whether they are the last ones."""


class QueryRefused(Exception):
    """The process says why there is no result."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


class ProcessEnded(Exception):
    """The process is gone, killed or crashed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
        """The exit status, or minus the number of a signal."""


class QueryProcess:
    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._starting = Lock()
        self._changing = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._control: socket.socket | None = None
        self._started = False
        self._killed = False
        self._worn = False

    @property
    def usable(self) -> bool:
        """Whether it can take another query: it lives, or has not been started."""
        return not self._worn and not self._killed and (self._process is None or self._process.poll() is None)

    @property
    def started(self) -> bool:
        return self._started

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Wait until it is ready. More than once does no harm."""
        with self._starting:
            if self._started:
                return
            if self._channel is None:
                self._spawn()
            channel = self._channel
            assert channel is not None
            head = self._head(channel)
            assert head.kind is Kind.READY, head
            self._started = True

    def ask(self, query: Query, scans: Scans) -> bytearray:
        """The answer to a query. What `scans` raises ends its scan, and is for the caller to remember."""
        self.start()
        channel = self._channel
        assert channel is not None
        running: dict[int, Batches] = {}
        try:
            channel.send(Kind.QUERY, 0, encode(query))
            while True:
                head = self._head(channel)
                match head.kind:
                    case Kind.OPEN:
                        opening = msgspec.json.decode(self._message(channel, head), type=Open)
                        running[head.number] = scans(opening)
                        _send_next(channel, head.number, running[head.number])
                    case Kind.NEXT:
                        _send_next(channel, head.number, running[head.number])
                    case Kind.ANSWER:
                        self._worn = bool(head.number)
                        # The names of columns are beside what is bounded.
                        return self._bounded(channel, head, query.answer_bytes_max + MESSAGE_BYTES_MAX)
                    case Kind.REFUSED:
                        self._worn = bool(head.number)
                        raise QueryRefused(msgspec.json.decode(self._message(channel, head), type=Failure))
                    case _:
                        raise AssertionError(f"a query process sent {head}")
        except ChannelClosed as closed:
            raise self._ended() from closed
        finally:
            for scan in running.values():
                scan.close()

    def stop(self, number: int) -> None:
        """Ask it to stop a query soon."""
        with self._changing:
            if self._control is None:
                return
            try:
                self._control.send(STOP.pack(number), socket.MSG_DONTWAIT)
            except OSError:
                # It is gone, or it has been asked often enough.
                return

    def kill(self) -> None:
        """End it now."""
        with self._changing:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """End it, and give back what it took here. Nothing else may use it."""
        self.kill()
        # A start that is under way ends first: there is nobody left to say READY.
        with self._starting, self._changing:
            if self._process is not None:
                self._process.wait()
            if self._channel is not None:
                self._channel.close()
            if self._control is not None:
                self._control.close()
                self._control = None

    # ---- inside

    def _spawn(self) -> None:
        data, theirs = socket.socketpair()
        control, their_control = socket.socketpair()
        self._channel, self._control = Channel(data), control
        paths = msgspec.json.encode([abspath(path) for path in sys.path]).decode()
        about = encode(Confinement(self._memory_bytes)).decode()
        fds = (theirs.fileno(), their_control.fileno())
        command = [sys.executable, "-I", "-c", _BOOT, paths, *map(str, fds), about]
        kept = {name: environ[name] for name in _INHERITED if name in environ}
        with theirs, their_control, self._changing:
            if self._killed:
                raise ProcessEnded(0)
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=fds,
                    env={**_ENVIRONMENT, **kept},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise Unavailable(f"cannot start a process for the query: {error}; try again later") from error

    def _head(self, channel: Channel) -> Head:
        try:
            return channel.head()
        except ChannelClosed as closed:
            raise self._ended() from closed

    def _message(self, channel: Channel, head: Head) -> bytearray:
        return self._bounded(channel, head, MESSAGE_BYTES_MAX)

    def _bounded(self, channel: Channel, head: Head, length_max: int) -> bytearray:
        """The body of a frame. A process that breaks a bound is not the one that was started."""
        if head.length > length_max:
            self.kill()
            raise self._ended()
        return channel.read(head.length)

    def _ended(self) -> ProcessEnded:
        if self._process is None:
            return ProcessEnded(0)
        # It closed its end, so it is about to exit, if a signal has not ended it already.
        return ProcessEnded(self._process.wait())


def _send_next(channel: Channel, number: int, scan: Batches) -> None:
    try:
        batches, last = next(scan, (b"", True))
    except Exception:
        channel.send(Kind.FAILED, number)
        return
    channel.send(Kind.LAST if last else Kind.BATCHES, number, batches)
