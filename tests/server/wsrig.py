"""A whole server whose connections live in simulated time, and clients of its WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop
from websockets.asyncio.client import ClientConnection, connect

from tests.client.rig import soon
from tests.server.api import Api
from topics import settings
from topics.server.app import Server
from topics.server.ws import WebSocket
from topics.testing import SimClock

PATH = "/v0/ws"
GUARD_S = 60.0
HANDSHAKE = (
    b"GET /v0/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Talker:
    """A client: objects out, objects in."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, op: str, **fields: object) -> None:
        await self.socket.send(json.dumps({"op": op, **fields}))

    async def hear(self) -> dict[str, Any]:
        message = await soon(self.socket.recv())
        assert isinstance(message, str), "the server speaks text"
        found = json.loads(message)
        assert isinstance(found, dict)
        return found

    async def ask(self, op: str, **fields: object) -> dict[str, Any]:
        await self.say(op, **fields)
        return await self.hear()

    async def hear_ops(self, *ops: str) -> list[dict[str, Any]]:
        heard = [await self.hear() for _ in ops]
        assert [each["op"] for each in heard] == list(ops), heard
        return heard

    async def closed(self) -> int | None:
        await soon(self.socket.wait_closed())
        return self.socket.close_code


class Rig:
    def __init__(self, server: Server, clock: SimClock) -> None:
        self.server = server
        self.clock = clock
        self.api = Api(server.url)

    @property
    def stream_count(self) -> int:
        return self.server._context.quota.stream_count

    @property
    def watched_count(self) -> int:
        host = self.server._context.host
        assert host is not None
        return len(host.engine.watch)

    @property
    def socket(self) -> WebSocket:
        """The server's end of the one that is open."""
        (protocol,) = [each for each in self.server._connections._open if getattr(each, "_attached", None)]
        outlet = protocol._attached.duplex  # type: ignore[attr-defined]
        assert isinstance(outlet, WebSocket)
        return outlet

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(int(seconds * 1000))
        self.server._connections.tick()

    async def until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            await asyncio.sleep(0)

    @asynccontextmanager
    async def talk(self, key: str | None = None, **options: Any) -> AsyncIterator[Talker]:
        url = self.server.url.replace("http", "ws", 1) + PATH
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        options = {"compression": None, "ping_interval": None, "max_size": None} | options
        async with connect(url, additional_headers=headers, **options) as socket:
            yield Talker(socket)

    async def call(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Bytes in, bytes out, behind the handshake."""
        reader, writer = await asyncio.open_connection(self.api.address.hostname, self.api.address.port)
        writer.write(HANDSHAKE)
        head = await soon(reader.readuntil(b"\r\n\r\n"))
        assert head.startswith(b"HTTP/1.1 101 "), head
        return reader, writer


def run(directory: Path, scenario: Callable[[Rig], Awaitable[None]], **values: settings.Value) -> None:
    """A server, a scenario, and nothing left behind."""

    async def guarded() -> None:
        # Time that jumps looks like a loop that is late, which would be throttled.
        chosen = {"throttle_lag_ms": 0} | values
        variables = {f"TOPICS_{name.upper()}": str(value) for name, value in chosen.items()}
        variables |= {"TOPICS_DATA_DIR": str(directory / "data"), "TOPICS_PORT": "0", "TOPICS_NO_GRPC": "1"}
        clock = SimClock()
        async with asyncio.timeout(GUARD_S), Server(settings.load(variables), clock) as server:
            await server.ready()
            rig = Rig(server, clock)
            await scenario(rig)
            await rig.until(lambda: rig.stream_count == 0)
            assert rig.watched_count == 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(guarded())
