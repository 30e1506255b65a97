"""A bad network in one object: a TCP proxy that cuts, delays, truncates and repeats what passes through it.

    async with chaos_proxy(server.url, seed=7) as proxy, topics.connect(proxy.url) as client:
        ...

Stands between HTTP clients that ask one thing at a time and a server. What is done to an exchange is drawn from the
seed when its request begins:

    PASS        nothing
    CUT         the connection is cut while the request passes, at any byte: the server may or may not have all of it
    LOSE        the request passes, and the connection is cut before the answer: it was carried out, nobody knows
    TRUNCATE    the connection is cut in the middle of the answer
    DELAY       the answer comes late
    REPEAT      the request reaches the server a second time, on a connection of its own, as a network in between may do

An answer without a known length, such as an event stream, passes as it comes, or is cut at some byte of it.

With `down` the proxy refuses connections, as a server that is away would.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from topics.server.listener import stop_listening

CHUNK_BYTES: Final = 64 * 1024
DELAY_S_MAX: Final = 0.01
STREAM_BYTES_MAX: Final = 64 * 1024
"""An event stream is cut before so many bytes."""


class Fault(StrEnum):
    PASS = "pass"
    CUT = "cut"
    LOSE = "lose"
    TRUNCATE = "truncate"
    DELAY = "delay"
    REPEAT = "repeat"


EVERYTHING: Final[Mapping[Fault, float]] = {
    Fault.PASS: 10,
    Fault.CUT: 1,
    Fault.LOSE: 1,
    Fault.TRUNCATE: 1,
    Fault.DELAY: 1,
    Fault.REPEAT: 1,
}
"""How often each is drawn, against the others."""


class ChaosProxy:
    """Made by `chaos_proxy`."""

    def __init__(self, host: str, port: int, chance: random.Random, weights: Mapping[Fault, float]) -> None:
        self._server_address = (host, port)
        self._chance = chance
        self._weights = weights
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.down = False
        self.url = ""
        self.faults: Counter[Fault] = Counter()
        """What was done so far, and how often."""

    def calm(self) -> None:
        """Let everything pass from now on."""
        self._weights = {Fault.PASS: 1}

    def cut_all(self) -> None:
        """Cut every connection that is open now."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if not self.down:
                await self._exchanges(reader, writer)
        except (ConnectionError, _Cut, asyncio.CancelledError):
            # However it ends, it ends here: the stream's protocol would log a cancellation as an error.
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def close(self) -> None:
        # Those who came last have not begun yet.
        await asyncio.sleep(0)
        self.cut_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _exchanges(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._server_address)
        try:
            while first := await reader.read(CHUNK_BYTES):
                await self._exchange(first, reader, writer, there_reader, there_writer)
        finally:
            there_writer.transport.abort()

    async def _exchange(
        self,
        first: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there_reader: asyncio.StreamReader,
        there_writer: asyncio.StreamWriter,
    ) -> None:
        """One request and its answer. Each side's end is where its Content-Length says."""
        fault = self._draw()
        request = await _whole(first, reader)
        if fault is Fault.CUT:
            there_writer.write(request[: self._chance.randrange(len(request) + 1)])
            with suppress(ConnectionError):
                await there_writer.drain()
                there_writer.write_eof()
                await there_reader.read(1)
            raise _Cut
        there_writer.write(request)
        await there_writer.drain()
        answer = await _whole(await there_reader.read(CHUNK_BYTES), there_reader)
        if _is_stream(answer):
            await self._stream(fault, answer, reader, writer, there_reader)
            raise _Cut
        if fault is Fault.REPEAT:
            await self._repeat(request)
        elif fault is Fault.DELAY:
            await asyncio.sleep(self._chance.uniform(0, DELAY_S_MAX))
        elif fault is Fault.LOSE:
            raise _Cut
        elif fault is Fault.TRUNCATE:
            writer.write(answer[: self._chance.randrange(len(answer))])
            await writer.drain()
            # An abort would also take back what the kernel has not sent yet.
            writer.write_eof()
            await reader.read(1)
            raise _Cut
        writer.write(answer)
        await writer.drain()

    async def _stream(
        self,
        fault: Fault,
        begun: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there_reader: asyncio.StreamReader,
    ) -> None:
        """An answer without a known length, as it comes; every fault is a cut at some byte of it."""
        left = None if fault is Fault.PASS else self._chance.randrange(STREAM_BYTES_MAX)
        piece = begun
        hung_up = asyncio.ensure_future(reader.read(1))
        try:
            while piece:
                writer.write(piece if left is None else piece[:left])
                await writer.drain()
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        return
                coming = asyncio.ensure_future(there_reader.read(CHUNK_BYTES))
                await asyncio.wait({coming, hung_up}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    return
                piece = coming.result()
        finally:
            hung_up.cancel()

    async def _repeat(self, request: bytes) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._server_address)
        try:
            there_writer.write(request)
            await _whole(await there_reader.read(CHUNK_BYTES), there_reader)
        finally:
            there_writer.transport.abort()

    def _draw(self) -> Fault:
        (fault,) = self._chance.choices(list(self._weights), list(self._weights.values()))
        self.faults[fault] += 1
        return fault


class _Cut(Exception):
    """The connection ends here."""


async def _whole(begun: bytes, reader: asyncio.StreamReader) -> bytes:
    """A whole message, of which the beginning has come."""
    message = begun
    while b"\r\n\r\n" not in message:
        message += await _more(reader)
    head, _, body = message.partition(b"\r\n\r\n")
    missing = _length(head) - len(body)
    while missing > 0:
        piece = await _more(reader)
        message += piece
        missing -= len(piece)
    return message


async def _more(reader: asyncio.StreamReader) -> bytes:
    piece = await reader.read(CHUNK_BYTES)
    if not piece:
        raise _Cut
    return piece


def _is_stream(answer: bytes) -> bool:
    return b"transfer-encoding: chunked" in answer.partition(b"\r\n\r\n")[0].lower()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


@asynccontextmanager
async def chaos_proxy(
    url: str, *, seed: int = 0, weights: Mapping[Fault, float] = EVERYTHING
) -> AsyncIterator[ChaosProxy]:
    """A proxy before the server at `url`, listening on a free port."""
    address = urlsplit(url)
    proxy = ChaosProxy(address.hostname or "", address.port or 80, random.Random(seed), weights)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        await stop_listening(listener)
        await proxy.close()
