"""A server that does what a test tells it: every connection is handed to the next script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from topics.client.address import Address
from topics.client.caller import Caller, CallOptions

Script = Callable[["Side"], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Side:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The next whole request; raises when the client ends the connection instead."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return head + await self.reader.readexactly(length)

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)

    async def ended(self) -> bool:
        """Waits for the client to end the connection."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    def cut(self) -> None:
        self.writer.transport.abort()


class Scripted:
    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self._scripts = list(scripts)
        self._last = scripts[-1]
        self._open: set[asyncio.Task[None]] = set()
        self.connection_count = 0
        self.address = Address("127.0.0.1", 0, tls=False)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.connection_count += 1
        script = self._scripts.pop(0) if self._scripts else self._last
        try:
            await script(Side(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The end of the test, or of the client's patience. The protocol of the stream does not like it told.
            pass
        finally:
            writer.transport.abort()
            self._open.discard(task)

    async def close(self) -> None:
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


@asynccontextmanager
async def scripted(*scripts: Script) -> AsyncIterator[Scripted]:
    """Connections get the scripts in turn, further ones the last."""
    server = Scripted(scripts)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.address = Address("127.0.0.1", listener.sockets[0].getsockname()[1], tls=False)
    try:
        yield server
    finally:
        listener.close()
        await server.close()


@asynccontextmanager
async def calling(server: Scripted, key: str | None = None, **changed: int) -> AsyncIterator[Caller]:
    """A caller of the server, which has let go of everything at the end."""
    values = {
        "timeout_ms": 5_000,
        "connect_timeout_ms": 5_000,
        "read_timeout_ms": 5_000,
        "attempts_max": 3,
        "connections_max": 4,
    }
    options = CallOptions(**{"compress": False, **values, **changed})  # type: ignore[arg-type]
    caller = Caller(server.address, key, options, None)
    caller.open()
    try:
        yield caller
    finally:
        await caller.close()


async def keep_answering(side: Side) -> None:
    while True:
        await side.request()
        side.send(OK)


async def never_answer(side: Side) -> None:
    await side.request()
    await side.ended()


async def end_at_once(side: Side) -> None:
    side.cut()


async def end_unanswered(side: Side) -> None:
    await side.request()


async def answer_once(side: Side) -> None:
    await side.request()
    side.send(OK)


def answering(*answers: bytes) -> Script:
    """One answer a request, then the end."""

    async def script(side: Side) -> None:
        for answer in answers:
            await side.request()
            side.send(answer)
        await side.writer.drain()

    return script


def refusing(status: str, code: str, *headers: str, detail: str = "{}") -> bytes:
    body = f'{{"error":{{"code":"{code}","message":"no","detail":{detail}}}}}'
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "X-Request-Id: r-1", *headers, "", body]
    return "\r\n".join(lines).encode()
