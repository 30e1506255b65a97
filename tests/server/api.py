"""A whole server on a free port, and a client that knows nothing of it but HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.client.rig import soon
from topics import settings
from topics.clock import SystemClock
from topics.server.app import Server

JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        found = json.loads(self.raw)
        assert isinstance(found, dict)
        return found

    @property
    def error(self) -> dict[str, Any]:
        found = self.body["error"]
        assert isinstance(found, dict)
        return found

    @property
    def refusal(self) -> tuple[int, str]:
        return self.status, self.error["code"]

    def without_performance(self) -> dict[str, Any]:
        return {name: value for name, value in self.body.items() if name != "performance"}


class Api:
    def __init__(self, url: str) -> None:
        self.address = urlsplit(url)
        self.key: str | None = None

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own. `bytes` are sent as they are, everything else as JSON."""
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Host": "localhost", "Connection": "close"}
        if body is not None:
            sent |= {"Content-Type": JSON, "Content-Length": str(len(content))}
        if self.key is not None:
            sent["Authorization"] = f"Bearer {self.key}"
        sent |= headers or {}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value)
        reader, writer = await asyncio.open_connection(self.address.hostname, self.address.port)
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content)
            return _parse(await soon(reader.read()))
        finally:
            writer.close()
            await writer.wait_closed()

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, headers=headers)

    async def put(self, path: str, body: object = None) -> Answer:
        return await self.call("PUT", path, body)

    async def patch(self, path: str, body: object = None) -> Answer:
        return await self.call("PATCH", path, body)

    async def post(self, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.call("POST", path, body, headers)

    async def delete(self, path: str) -> Answer:
        return await self.call("DELETE", path)

    async def write(self, topic: str, *datas: object, **options: object) -> dict[str, Any]:
        records = [{"data": data} for data in datas]
        answer = await self.post(f"/v0/topics/{topic}", {"records": records, **options})
        assert answer.status in (200, 201), answer.body
        return answer.body

    async def diff(self, topic: str, **wanted: object) -> dict[str, Any]:
        answer = await self.post(f"/v0/topics/{topic}/diff", wanted)
        assert answer.status == 200, answer.body
        return answer.body


def _parse(data: bytes) -> Answer:
    head, _, raw = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        # Cookies come a header each; their values have no line breaks.
        headers[name.lower()] = f"{headers[name.lower()]}\n{value}" if name.lower() in headers else value
    return Answer(int(status.split()[1]), headers, raw)


@asynccontextmanager
async def serving(directory: Path, **values: settings.Value) -> AsyncIterator[Api]:
    """A server that is ready, closed behind the block."""
    # A machine that is busy with something else looks like a loop that is late, which would be throttled.
    values = {"throttle_lag_ms": 0} | values
    variables = {f"TOPICS_{name.upper()}": str(value) for name, value in values.items()}
    variables |= {"TOPICS_DATA_DIR": str(directory / "data"), "TOPICS_PORT": "0", "TOPICS_NO_GRPC": "1"}
    async with Server(settings.load(variables), SystemClock()) as server:
        await soon(server.ready())
        yield Api(server.url)
