"""A server with a protocol and a dispatch that writes down what it was asked, on a free port."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from socket import SO_LINGER, SO_RCVBUF, SO_SNDBUF, SOL_SOCKET
from typing import Any

import pytest
import uvloop

from topics.errors import TopicsError
from topics.server.connections import Connections
from topics.server.heading import Heading
from topics.server.http import HttpProtocol
from topics.server.httpoptions import HttpOptions
from topics.server.message import Reply, Request, Response
from topics.server.streamed import StreamedProtocol
from topics.testing.clock import SimClock

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
GUARD_S = 60.0
KERNEL_BYTES = 100_000
"""What a socket buffers when it keeps little; Linux doubles it."""
"""A test that waits this long hangs."""


def run(scenario: Callable[[], Awaitable[None]], loop: str = "uvloop") -> None:
    async def guarded() -> None:
        async with asyncio.timeout(GUARD_S):
            await scenario()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(guarded())


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        return str(json.loads(self.body)["error"]["code"])

    @property
    def text(self) -> bytes:
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body


class Caller:
    """The other end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def send_bytes_apart(self, data: bytes) -> None:
        """Each byte in a segment of its own, as far as the kernel lets us."""
        for at in range(len(data)):
            self.writer.write(data[at : at + 1])
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self, head_only: bool = False) -> Answer:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in head[1:] if line}
        size = 0 if head_only else int(headers.get("content-length", 0))
        return Answer(int(head[0].split()[1]), headers, await self.reader.readexactly(size))

    async def ended(self) -> bool:
        """Waits for the server to end the connection; False if it sent something else instead."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def end_sending(self) -> None:
        self.writer.write_eof()

    def reset(self) -> None:
        """Vanish without a word: a RST instead of a FIN."""
        connected = self.writer.get_extra_info("socket")
        connected.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def keep_little(self) -> None:
        """Have the kernel take little for this client."""
        self.writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_RCVBUF, KERNEL_BYTES)

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


class CountingProtocol(StreamedProtocol):
    received_bytes = 0

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    @property
    def seen_unsent_bytes(self) -> int:
        """What was unsent when the server last looked whether the client reads."""
        return self._unsent_bytes

    def keep_little(self) -> None:
        """Have the kernel take little, however much it could."""
        self._transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_SNDBUF, KERNEL_BYTES)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.received_bytes += len(data)


class Rig:
    def __init__(self, options: HttpOptions) -> None:
        self.clock = SimClock()
        self.connections = Connections(self.clock, Heading(self.clock.now_ms()), options.idle_timeout_s)
        self.options = options
        self.requests: list[Request] = []
        self.refusals: list[Request] = []
        self.replies: list[Reply] = []
        self.protocols: list[CountingProtocol] = []
        self.answers: Callable[[Request], Response] | None = echo
        """None holds the replies back, for the test to give."""
        self.port = 0
        self.arrived = asyncio.Event()
        self._callers: list[Caller] = []

    def dispatch(self, request: Request, reply: Reply) -> None:
        self.requests.append(request)
        self.arrived.set()
        if self.answers is None:
            self.replies.append(reply)
        else:
            reply(self.answers(request))

    def refuse(self, request: Request, error: TopicsError) -> Response:
        self.refusals.append(request)
        return Response(
            error.http_status, json.dumps({"error": {"code": error.code, "message": error.message}}).encode()
        )

    async def until_requests(self, count: int) -> None:
        while len(self.requests) < count:
            self.arrived.clear()
            await self.arrived.wait()

    async def until_connections(self, count: int) -> None:
        while len(self.connections) != count:
            await asyncio.sleep(0)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(int(seconds * 1000))
        self.connections.tick()

    async def call(self) -> Caller:
        caller = Caller(*await asyncio.open_connection("127.0.0.1", self.port))
        self._callers.append(caller)
        return caller

    async def ask(self, data: bytes) -> Answer:
        """One request on a connection of its own."""
        caller = await self.call()
        caller.send(data)
        return await caller.answer()

    async def cut_off(self) -> None:
        for caller in self._callers:
            caller.writer.transport.abort()
        for connection in list(self.connections._open):
            connection.abort()
        await self.until_connections(0)

    async def hang_up(self) -> None:
        for caller in self._callers:
            await caller.close()
        self._callers.clear()


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Rig]:
    """At the end, everybody hangs up and no connection may be left."""
    rig = Rig(HttpOptions(**options))

    def protocol() -> HttpProtocol:
        rig.protocols.append(CountingProtocol(rig.dispatch, rig.refuse, rig.options, rig.connections))
        return rig.protocols[-1]

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, backlog=4096)
    rig.port = server.sockets[0].getsockname()[1]
    try:
        yield rig
        await rig.hang_up()
        await rig.until_connections(0)
    finally:
        # After a test that failed, too: uvloop does not close over a connection that is still open.
        await rig.cut_off()
        server.close()


def echo(request: Request) -> Response:
    content = {"method": request.method, "path": request.path, "query": request.query, "body": request.body.decode()}
    return Response(200, json.dumps(content).encode())


def get(path: str = "/", *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def post(body: bytes, *headers: str, path: str = "/") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*pieces: bytes, trailer: bytes = b"") -> bytes:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailer + b"\r\n"


both_loops = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


def asked(answer: Answer) -> dict[str, str]:
    assert answer.status == 200
    asked: dict[str, str] = json.loads(answer.text)
    return asked
