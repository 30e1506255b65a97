"""A dispatcher with the routes of operation, and writes, on an engine that is driven by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from tests.engine.rig import Rig
from topics.core.records import RecordLimits
from topics.engine.host import Host
from topics.secret import Secret
from topics.server.context import Context
from topics.server.dispatch import Dispatcher
from topics.server.message import Request, Response
from topics.server.routes import health, metrics, records
from topics.server.table import Table
from topics.settings import Settings


class Probe:
    def __init__(self, rig: Rig, api_keys: str = "", **settings: Any) -> None:
        self.rig = rig
        values = Settings(api_keys=Secret(api_keys) if api_keys else None, **settings)
        self.context = Context(values, RecordLimits(), rig.clock, rig.clock.now_ms())
        table = Table((*health.ROUTES, *metrics.ROUTES, *records.ROUTES))
        self.dispatch = Dispatcher(self.context, table, self.context.authenticator, self.context.quota)

    def get(self, path: str, key: str = "", **headers: str) -> Response:
        if key:
            headers["authorization"] = f"Bearer {key}"
        return self._ask("GET", path, headers, b"")

    def post(self, path: str, body: bytes) -> Response:
        return self._ask("POST", path, {"content-type": "application/json"}, body)

    def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        answers: list[Response] = []
        self.dispatch(Request(method, path, "", headers, body, self.rig.clock.ticks_ns()), answers.append)
        self.rig.work()
        assert len(answers) == 1, "each request is answered once"
        return answers[0]

    def json(self, path: str, key: str = "") -> Any:
        return msgspec.json.decode(self.get(path, key, accept="application/json").body)

    def lines(self, key: str = "") -> dict[str, str]:
        """The samples of a scrape, by name and labels."""
        text = self.get("/v0/metrics", key).body.decode()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


@contextmanager
def serving(rig: Rig, **settings: Any) -> Iterator[Probe]:
    """With the engine in place, on a loop of its own."""
    loop = asyncio.new_event_loop()
    try:
        probe = Probe(rig, **settings)
        probe.context.host = Host(rig.engine, loop)
        yield probe
    finally:
        loop.close()
