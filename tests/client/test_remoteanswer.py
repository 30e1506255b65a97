"""Answers that are JSON and not what a server of ours says, and names that lead nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.client.rig import on_loop, soon
from tests.client.scripted import Side, scripted
from topics import Client, connect, errors

STRANGE = b'{"topic":"t","name":7,"format":"stone","tables":[{"name":7}],"routers":[{"router":7}]}'

Call = Callable[[Client], Awaitable[Any]]


@asynccontextmanager
async def misled() -> AsyncIterator[Client]:
    async def script(side: Side) -> None:
        while await side.request():
            side.send(b"HTTP/1.1 200 OK\r\nX-Request-Id: r-9\r\nContent-Length: %d\r\n\r\n%b" % (len(STRANGE), STRANGE))

    async with scripted(script) as server, connect(str(server.address)) as client:
        yield client


async def first(items: AsyncIterator[Any]) -> Any:
    return await anext(items)


CALLS: list[Call] = [
    lambda client: client.topic("t").state(),
    lambda client: client.topic("t").diff(),
    lambda client: client.queue("t").claim(lease_ms=1000),
    lambda client: client.topic("t").group("g").take(),
    lambda client: client.heap("t").take(visibility_ms=1000),
    lambda client: client.table("t").state(),
    lambda client: first(client.tables()),
    lambda client: client.router("r").state(),
    lambda client: first(client.routers()),
    lambda client: client.pipeline("p").state(),
]


@pytest.mark.parametrize("call", CALLS)
@on_loop
async def test_a_strange_answer_is_told_with_its_request(call: Call) -> None:
    async with misled() as client:
        with pytest.raises(errors.Internal, match="not one that this client understands") as strange:
            await soon(call(client))
        assert strange.value.request_id == "r-9"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda client: client.topic("").state(), "topic"),
        (lambda client: client.table("").state(), "table"),
        (lambda client: client.pipeline(7).state(), "pipeline"),
        (lambda client: client.router("").state(), "router"),
        (lambda client: client.topic("t").group("").state(), "group"),
    ],
)
@on_loop
async def test_what_is_no_name_is_refused_before_anything_is_sent(call: Call, what: str) -> None:
    async with misled() as client:
        with pytest.raises(errors.InvalidRequest, match=f"{what} must be a name, not ") as refused:
            await soon(call(client))
        assert refused.value.detail["field"] == what
