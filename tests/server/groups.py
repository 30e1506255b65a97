"""A consumer group behind a server, for the tests of its routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.server import api as apis
from tests.server.api import Answer, Api
from topics.settings import Value


@asynccontextmanager
async def serving(directory: Path, **values: Value) -> AsyncIterator[Api]:
    """A server that refuses nothing because the machine is busy with something else."""
    async with apis.serving(directory, throttle_lag_ms=0, **values) as api:
        yield api


class Consumers:
    """The verbs of one group over HTTP."""

    def __init__(self, api: Api, topic: str = "t", group: str = "g") -> None:
        self.api = api
        self.topic = topic
        self.path = f"/v0/topics/{topic}/groups/{group}"

    async def post(self, verb: str, **body: Any) -> Answer:
        return await self.api.post(f"{self.path}/{verb}", body)

    async def did(self, verb: str, **body: Any) -> dict[str, Any]:
        answer = await self.post(verb, **body)
        assert answer.status == 200, answer.body
        return answer.without_performance()

    async def consume(self, limit: Any = 10, **body: Any) -> list[int]:
        batch = await self.did("consume", limit=limit, **body)
        return [record["$seq"] for record in batch["records"]]

    async def committed(self) -> int:
        return int((await self.state())["committed_seq"])

    async def state(self, query: str = "") -> dict[str, Any]:
        answer = await self.api.get(self.path + query)
        assert answer.status == 200, answer.body
        return answer.without_performance()
