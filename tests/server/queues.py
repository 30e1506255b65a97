"""A queue behind a server, for the tests of its routes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.server.api import Answer, Api
from tests.server.sserig import Listening, listening

QUEUE = "jobs"


class Jobs:
    """The verbs of one queue over HTTP, as one worker or several."""

    def __init__(self, api: Api, name: str = QUEUE) -> None:
        self.api = api
        self.name = name

    async def create(self, **config: Any) -> None:
        answer = await self.api.put(f"/v0/topics/{self.name}", {"type": "queue", **config})
        assert answer.status == 201, answer.body

    async def post(self, verb: str, **body: Any) -> Answer:
        return await self.api.post(f"/v0/topics/{self.name}/{verb}", body)

    async def put(self, *datas: object, **options: object) -> list[int]:
        return list((await self.api.write(self.name, *datas, **options))["seqs"])

    async def claim(self, node: str = "w", max: int = 1, **options: object) -> list[dict[str, Any]]:
        answer = await self.post("claim", node=node, max=max, **options)
        assert answer.status == 200, answer.body
        return list(answer.body["claimed"])

    async def ack(self, seqs: Sequence[int], node: str = "w", **options: object) -> dict[str, Any]:
        answer = await self.post("ack", node=node, seqs=list(seqs), **options)
        assert answer.status == 200, answer.body
        return answer.without_performance()

    async def counts(self) -> tuple[int, int, int, int]:
        """Ready, in flight, delayed, dead-lettered."""
        state = (await self.api.get(f"/v0/topics/{self.name}")).body
        queue = state["queue"]
        assert queue["ready"] + queue["in_flight"] + queue["delayed"] == state["count"]
        return queue["ready"], queue["in_flight"], queue["delayed"], queue["dead_lettered"]


async def now_ms(api: Api) -> int:
    """The server's time, as it stamps it."""
    await api.write("clock", 0)
    return int((await api.diff("clock", limit=10_000))["records"][-1]["$ts"])


async def bury(api: Api, count: int, queue: str = QUEUE, dead: str = "dead") -> Jobs:
    """A queue whose jobs have become dead letters, tagged `t0`, `t1`, …"""
    jobs = Jobs(api, queue)
    await jobs.create(max_deliveries=1, dead_letter=dead)
    records = [{"data": n, "tag": f"t{n}", "meta": {"m": "1"}} for n in range(count)]
    await api.post(f"/v0/topics/{queue}", {"records": records})
    claimed = await jobs.claim(max=count)
    await jobs.post("nack", node="w", seqs=[job["$seq"] for job in claimed])
    while (await jobs.counts())[3] < count:
        assert await jobs.claim(max=count) == []
    return jobs


def seqs_of(jobs: Sequence[dict[str, Any]]) -> list[int]:
    return [job["$seq"] for job in jobs]


@asynccontextmanager
async def working(api: Api, node: str = "w", queue: str = "jobs", **options: object) -> AsyncIterator[Listening]:
    """A worker's stream, its beginning read."""
    query = "&".join(f"{name}={value}" for name, value in options.items())
    async with listening(api, f"/v0/topics/{queue}/work?node={node}&{query}") as stream:
        assert stream.status == 200
        first = await stream.next(beats=True)
        assert first.retry == 2000
        assert (await stream.next(beats=True)).comment.startswith("hb ")
        yield stream


async def pushed(stream: Listening, count: int) -> list[dict[str, Any]]:
    jobs = []
    for _ in range(count):
        frame = await stream.next()
        assert frame.event == "job", frame
        jobs.append(frame.fields)
        assert frame.id == str(jobs[-1]["$seq"])
    return jobs
