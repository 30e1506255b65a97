"""Who reads without end, and a server that was never there, or goes away: an error, or patience that is told of."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

import topics
from tests.client.rig import closed_port, on_loop, soon
from topics import errors, sync, testing
from topics.client import backoff
from topics.client.outage import Outage

READERS: dict[str, Callable[[Any], Any]] = {
    "follow": lambda client: client.topic("orders").follow(),
    "consume": lambda client: client.topic("orders").group("billing").consume(),
    "pop": lambda client: client.heap("jobs").pop(),
}
WAYS = [("follow", False), ("consume", False), ("pop", False), ("pop", True)]
each_reader = pytest.mark.parametrize(("reader", "over_grpc"), WAYS)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 1)
    monkeypatch.setattr(backoff, "LONGEST_MS", 1)


# ---- a server that was never there


@each_reader
@on_loop
async def test_a_server_that_was_never_there_is_an_error(reader: str, over_grpc: bool) -> None:
    nobody = closed_port()
    how: dict[str, Any] = {"grpc": nobody} if over_grpc else {}
    told: list[object] = []
    async with topics.connect(f"http://{nobody}", on_outage=told.append, **how) as client:
        with pytest.raises(errors.ConnectionFailed, match=rf"cannot connect to .*{nobody}: .*there\?") as failed:
            await soon(anext(READERS[reader](client)))
        assert failed.value.detail["sent"] is False
    assert told == [], "what was never there cannot go away"


@each_reader
def test_plain_code_is_told_the_same(reader: str, over_grpc: bool) -> None:
    nobody = closed_port()
    how: dict[str, Any] = {"grpc": nobody} if over_grpc else {}
    with sync.connect(f"http://{nobody}", attempts_max=1, **how) as client, pytest.raises(errors.ConnectionFailed):
        next(iter(READERS[reader](client)))


@on_loop
async def test_somebody_who_does_not_speak_grpc_is_an_error_as_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with topics.connect(grpc=address, attempts_max=2, connect_timeout_ms=50) as client:
            with pytest.raises(errors.ConnectionFailed, match="is gRPC served there"):
                await soon(anext(client.heap("jobs").pop()))


# ---- one that goes away


@each_reader
@on_loop
async def test_a_server_that_went_away_is_waited_for_and_told_of(reader: str, over_grpc: bool) -> None:
    told: list[errors.TopicsError | None] = []
    away = asyncio.Event()

    def tell(error: errors.TopicsError | None) -> None:
        told.append(error)
        away.set()

    async with testing.server(no_grpc=not over_grpc, drain_ms=1) as server:
        how: dict[str, Any] = {"grpc": server.grpc_address} if over_grpc else {}
        async with topics.connect(server.url, attempts_max=1, on_outage=tell, **how) as client:
            await client.topic("orders").write(1)
            await client.heap("jobs").create()
            await client.heap("jobs").enqueue(1)
            async with aclosing(READERS[reader](client)) as events:
                await _read_one(events)
                more = asyncio.ensure_future(anext(events))
                await server.stop()
                await soon(away.wait())
                await server.start()
                async with server.client() as other:
                    await other.topic("orders").write(2)
                    await other.heap("jobs").enqueue(2)
                await soon(more)
                assert told[0] is not None and told[-1] is None


async def _read_one(events: AsyncIterator[Any]) -> None:
    event = await soon(anext(events))
    if isinstance(event, topics.Message):
        await event.ack()


# ---- how it is decided


def tried(outage: Outage, error: errors.TopicsError) -> bool:
    """Whether there is another try."""
    try:
        asyncio.run(outage.wait(error))
    except errors.TopicsError as raised:
        assert raised is error
        return False
    return True


def test_somebody_who_was_never_there_has_as_many_tries_as_a_call() -> None:
    outage = Outage(lambda error: True, lambda: False, attempts_max=3)
    gone = errors.ConnectionFailed("gone", sent=False)
    assert [tried(outage, gone) for _ in range(3)] == [True, True, False]


def test_a_refusal_ends_it_however_often_it_was_tried() -> None:
    told: list[object] = []
    outage = Outage(lambda error: isinstance(error, errors.Unavailable), on_outage=told.append)
    assert not tried(outage, errors.Forbidden("not for you"))
    assert told == []
    gone = errors.ConnectionFailed("gone", sent=False)
    assert all(tried(outage, gone) for _ in range(9))
    outage.answered()
    outage.over()
    assert told == [gone, None], "each once"
    assert not tried(outage, errors.Forbidden("not for you"))
