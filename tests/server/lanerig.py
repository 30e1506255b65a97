"""A whole server on a disk that a test can hold, and several clients whose plain writes come in one turn."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from tests.server.httprig import Answer, Caller
from topics import settings
from topics.clock import SystemClock
from topics.engine.engine import Engine
from topics.engine.opening import options
from topics.engine.recovery import Progress, recover
from topics.server.app import Server
from topics.settings import Settings
from topics.storage.committer import Post
from topics.storage.fs import RealFs
from topics.testing import Call, FaultFs

TOPIC = "orders"


def write(body: bytes, *headers: str, topic: str = TOPIC) -> bytes:
    lines = [f"POST /v0/topics/{topic} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def plain(data: bytes, *headers: str, topic: str = TOPIC) -> bytes:
    return write(b'{"records":[{"data":%b}]}' % data, *headers, topic=topic)


def body_of(answer: Answer) -> dict[str, Any]:
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    return found


class LaneRig:
    def __init__(self, server: Server, fs: FaultFs) -> None:
        self.server = server
        self.fs = fs
        self.callers: list[Caller] = []

    @property
    def context(self) -> Any:
        return self.server._context

    @property
    def engine(self) -> Engine:
        engine: Engine = self.context.host.engine
        return engine

    @property
    def frames(self) -> int:
        """Frames that the WAL got: as many as there were commands."""
        return sum(self.engine.wal.metrics(shard).frames for shard in range(self.engine.wal.shards))  # type: ignore[attr-defined]

    async def call(self, *headers: str, topic: str = TOPIC, known: bool = True) -> Caller:
        """A connection that has sent a plain write before, so that its next one is on a track."""
        parts = urlsplit(self.server.url)
        caller = Caller(*await asyncio.open_connection(parts.hostname, parts.port))
        self.callers.append(caller)
        if known:
            caller.send(plain(b"0", *headers, topic=topic))
            assert (await caller.answer()).status in (200, 201)
        return caller

    async def calls(self, count: int, *headers: str, topic: str = TOPIC) -> list[Caller]:
        return [await self.call(*headers, topic=topic) for _ in range(count)]

    def connection_of(self, caller: Caller) -> Any:
        """The server's end of a connection."""
        port = caller.writer.get_extra_info("sockname")[1]
        (found,) = [
            each
            for each in self.server._connections._open
            if cast(Any, each)._transport.get_extra_info("peername")[1] == port
        ]
        return found

    async def ask(self, method: str, path: str, body: object = None, *headers: str) -> Answer:
        caller = await self.call(known=False)
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
        caller.send("\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content)
        return await caller.answer()

    async def stored(self, topic: str = TOPIC) -> list[Any]:
        page = body_of(await self.ask("POST", f"/v0/topics/{topic}/diff", {"limit": 1000}))
        return [record["data"] for record in page["records"]]

    def hold_syncs(self) -> tuple[threading.Event, threading.Event]:
        """The next sync of a WAL file sets the first event and waits for the second."""
        entered, leave = threading.Event(), threading.Event()

        def hold(_call: Call) -> None:
            entered.set()
            assert leave.wait(30)

        self.fs.skip("sync", path="*.wal").on_fire = hold
        return entered, leave


async def reached(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 30)


async def answers(callers: Sequence[Caller]) -> list[Answer]:
    return [await caller.answer() for caller in callers]


async def fails_to_close(scenario: Callable[[], Awaitable[None]]) -> None:
    """A scenario with a disk that fails, so that its server cannot close in peace. What it asserts counts first."""
    with pytest.raises(Exception, match="Input/output error") as caught:
        await scenario()
    error: BaseException | None = caught.value.__context__
    while error is not None:
        if isinstance(error, AssertionError | pytest.fail.Exception):
            raise error
        error = error.__context__


@asynccontextmanager
async def serving(directory: Path, **values: settings.Value) -> AsyncIterator[LaneRig]:
    fs = FaultFs(RealFs())

    def make_opener(chosen: Settings, on_progress: Progress) -> Any:
        def open_engine(post: Post) -> Engine:
            salts = random.Random(1)
            return recover(
                fs, chosen.data_dir, SystemClock(), lambda: salts.getrandbits(64), options(chosen), post, on_progress
            )

        return open_engine

    # A machine that is busy with something else looks like a loop that is late, which would be throttled.
    values = {"throttle_lag_ms": 0} | values
    variables = {f"TOPICS_{name.upper()}": str(value) for name, value in values.items()}
    variables |= {"TOPICS_DATA_DIR": str(directory / "data"), "TOPICS_PORT": "0", "TOPICS_NO_GRPC": "1"}
    async with Server(settings.load(variables), SystemClock(), make_opener) as server:
        await server.ready()
        rig = LaneRig(server, fs)
        try:
            yield rig
        finally:
            for caller in rig.callers:
                await caller.close()
