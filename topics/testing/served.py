"""A server for tests: in this process, on a free port, ready when you get it and gone without a trace behind it.

    async with topics.testing.server() as server, server.client() as client:
        await client.topic("orders").write(1)
        server.pass_time(60_000)

Without a directory everything is in memory, and gone with the block. Time is the test's own: it stands still until
`pass_time`, so a TTL or a window ends when the test says so. `running_server` is the same for tests without asyncio.
Settings are keywords as in `topics.open`; variables of the environment do not count, so that a test is the same
everywhere.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from topics import settings as setting_table
from topics import sync
from topics.client.blocking import Portal
from topics.client.client import Client
from topics.client.connector import connect
from topics.engine.engine import Engine
from topics.engine.host import Opener
from topics.engine.opening import SALT_BITS, options
from topics.engine.recovery import Progress, recover
from topics.limits import MIB
from topics.savefile import PathLike
from topics.secret import Secret
from topics.server.app import Server
from topics.settings import Settings
from topics.storage.committer import Post
from topics.storage.fs import FileSystem, RealFs
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk

MEMORY_DIR: Final = "/data"
DEFAULTS: Final[dict[str, Any]] = {
    "host": "127.0.0.1",
    "port": 0,
    "grpc_port": 0,
    "no_grpc": True,
    "wal_shards": 1,
    "wal_file_bytes": 1 * MIB,
    "throttle_lag_ms": 0,
}
"""Small files, and no throttle: a test machine is slow for reasons of its own. gRPC is for those who ask for it with
`no_grpc=False`; `grpc_address` then is where."""


class TestServer:
    """A server that listens at `url`. Its time is `clock`, its disk `disk`."""

    __test__ = False

    def __init__(self, settings: Settings, disk: FileSystem, clock: SimClock) -> None:
        self._settings = settings
        self._server: Server | None = None
        self._chance = random.Random(0)
        self.disk = disk
        self.clock = clock
        self.url = ""
        self.grpc_address = ""

    def client(self, key: str | None = None, **how: Any) -> Client:
        """A client of this server; `how` are keywords of `topics.connect`."""
        return connect(self.url, key, **how)

    def pass_time(self, ms: int) -> None:
        """Let time pass, and what is due by then happen. Call it where the server runs."""
        self.clock.advance(ms)
        host = None if self._server is None else self._server._context.host
        if host is not None:
            host.engine.tick()

    async def start(self) -> None:
        """Listen, at the same port as before if it was stopped, and be ready."""
        assert self._server is None, "it runs already"
        server = self._server = Server(self._settings, self.clock, self._make_opener)
        await server.start()
        await server.ready()
        self.url = server.url
        self.grpc_address = server.grpc_address
        ports = {"port": int(server.url.rpartition(":")[2])}
        if self.grpc_address:
            ports["grpc_port"] = int(self.grpc_address.rpartition(":")[2])
        self._settings = setting_table.build({**_values(self._settings), **ports})

    async def stop(self) -> None:
        """Drain and close. What was written is still there for the next `start`."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    def _make_opener(self, settings: Settings, on_progress: Progress) -> Opener:
        def open_engine(post: Post) -> Engine:
            return recover(self.disk, settings.data_dir, self.clock, self._salt, options(settings), post, on_progress)

        return open_engine

    def _salt(self) -> int:
        return self._chance.getrandbits(SALT_BITS)


class RunningServer:
    """A test server on a thread of its own, for tests without asyncio."""

    def __init__(self, server: TestServer, portal: Portal) -> None:
        self._server = server
        self._portal = portal
        self.clock = server.clock

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def grpc_address(self) -> str:
        return self._server.grpc_address

    def client(self, key: str | None = None, **how: Any) -> sync.Client:
        """A plain client of this server; `how` are keywords of `topics.sync.connect`."""
        return sync.connect(self.url, key, **how)

    def pass_time(self, ms: int) -> None:
        """Let time pass, and what is due by then happen."""

        async def there() -> None:
            self._server.pass_time(ms)

        self._portal.run(there())

    def stop(self) -> None:
        """Drain and close. What was written is still there for the next `start`."""
        self._portal.run(self._server.stop())

    def start(self) -> None:
        """Listen again, at the same port."""
        self._portal.run(self._server.start())


@asynccontextmanager
async def server(
    directory: str | PathLike | None = None, *, clock: SimClock | None = None, **settings: Any
) -> AsyncIterator[TestServer]:
    """A server on the running loop: in memory, or in a directory that is kept."""
    made = _make(directory, clock, settings)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@contextmanager
def running_server(
    directory: str | PathLike | None = None, *, clock: SimClock | None = None, **settings: Any
) -> Iterator[RunningServer]:
    """The same server on a thread of its own."""
    made = _make(directory, clock, settings)
    portal = Portal()
    try:
        portal.run(made.start())
        try:
            yield RunningServer(made, portal)
        finally:
            portal.run(made.stop())
    finally:
        portal.close()


def _make(directory: str | PathLike | None, clock: SimClock | None, settings: dict[str, Any]) -> TestServer:
    time = clock or SimClock()
    path = MEMORY_DIR if directory is None else directory if isinstance(directory, str) else directory.__fspath__()
    disk: FileSystem = FakeDisk() if directory is None else RealFs(time)
    if isinstance(settings.get("api_keys"), str):
        settings["api_keys"] = Secret(settings["api_keys"])
    return TestServer(setting_table.build({**DEFAULTS, **settings, "data_dir": path}), disk, time)


def _values(settings: Settings) -> dict[str, Any]:
    return {row.key: getattr(settings, row.key) for row in setting_table.TABLE}
