"""A whole server with accounts, a browser that keeps cookies, and what both need to be quick."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.client.rig import soon
from tests.server.api import Answer, Api
from topics import settings
from topics.clock import SystemClock
from topics.engine.engine import Engine
from topics.engine.opening import options
from topics.engine.recovery import Progress, recover
from topics.server.app import Server
from topics.server.hashing import Cost, Hashing
from topics.storage.committer import Post
from topics.storage.fs import RealFs

CHEAP = Cost(1, 8, 1)
PASSWORD = "correct horse battery"
ADMIN_KEY = "root-key-of-the-tests"


class Clock(SystemClock):
    """The real time, and then some; or only that, once it stands still."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        self.jumped_ms = 0
        """How far the wall clock alone is off."""
        self._stopped: tuple[int, int] | None = None

    def stand_still(self) -> None:
        """From here on only `ahead_ms` goes on, however slow the machine is."""
        self._stopped = (super().now_ms(), SystemClock.ticks_ns())

    def now_ms(self) -> int:
        return (super().now_ms() if self._stopped is None else self._stopped[0]) + self.ahead_ms + self.jumped_ms

    def ticks_ns(self) -> int:
        real_ns = SystemClock.ticks_ns() if self._stopped is None else self._stopped[1]
        return real_ns + self.ahead_ms * 1_000_000


@dataclass
class Served:
    server: Server
    api: Api
    clock: Clock
    directory: Path

    @property
    def context(self) -> Any:
        return self.server._context

    @property
    def accounts(self) -> Any:
        return self.context.host.engine.machine.accounts

    def browser(self) -> Browser:
        return Browser(Api(self.server.url))

    async def signed_up(self, email: str = "ada@example.org") -> Browser:
        """The first user, signed in."""
        browser = self.browser()
        token = self.server.set_up_link.partition("/set-up#")[2]
        answer = await browser.post("/v1/auth/setup", {"token": token, "email": email, "password": PASSWORD})
        assert answer.status == 201, answer.body
        return browser

    async def invited(self, admin: Browser, email: str, role: str) -> Browser:
        """Another user, signed in."""
        link = (await admin.post("/v1/users", {"email": email, "role": role})).body["link"]
        browser = self.browser()
        token = link.partition("/set-up#")[2]
        assert (await browser.post("/v1/auth/setup", {"token": token, "password": PASSWORD})).status == 201
        return browser


@dataclass
class Browser:
    """Keeps cookies as a browser does, and sends the CSRF token as our pages do."""

    api: Api
    cookies: dict[str, str] = field(default_factory=dict)
    set_cookies: list[str] = field(default_factory=list)
    csrf: str | None = None

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        token = self.csrf if self.csrf is not None else self.cookies.get("topics_csrf", "")
        if method != "GET" and token:
            sent["X-CSRF-Token"] = token
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.api.call(method, path, body, sent)
        self.set_cookies = answer.headers.get("set-cookie", "").split("\n") if answer.headers.get("set-cookie") else []
        for cookie in self.set_cookies:
            pair, *rest = cookie.split("; ")
            name, _, value = pair.partition("=")
            if "Max-Age=0" in rest:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, body: object = None, **headers: str) -> Answer:
        return await self.call("POST", path, {} if body is None else body, **headers)


@asynccontextmanager
async def accounts_served(directory: Path, **values: settings.Value) -> AsyncIterator[Served]:
    """A server that asks everybody who they are, and whose hashes cost next to nothing."""
    # Time that jumps looks like a loop that is late, which would be throttled.
    values = {"auth": "1", "port": "0", "no_grpc": "1", "throttle_lag_ms": "0"} | values
    variables = {f"TOPICS_{name.upper()}": str(value) for name, value in values.items() if value is not None}
    variables |= {"TOPICS_DATA_DIR": str(directory / "data")}
    clock = Clock()

    def make_opener(chosen: settings.Settings, on_progress: Progress) -> Any:
        def open_engine(post: Post) -> Engine:
            return recover(RealFs(clock), chosen.data_dir, clock, lambda: 7, options(chosen), post, on_progress)

        return open_engine

    server = Server(settings.load(variables), clock, make_opener, Hashing(CHEAP, CHEAP))
    async with server:
        await soon(server.ready())
        yield Served(server, Api(server.url), clock, directory)
