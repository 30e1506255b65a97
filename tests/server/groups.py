"""A consumer group behind a server, for the tests of its routes."""

from __future__ import annotations

from typing import Any

from tests.server.api import Answer, Api


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
