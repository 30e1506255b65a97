from __future__ import annotations

import asyncio
import gzip

import pytest

from tests.client.rig import on_loop, settle, soon
from tests.client.scripted import (
    OK,
    Script,
    Side,
    answer_once,
    answering,
    calling,
    end_at_once,
    end_unanswered,
    keep_answering,
    never_answer,
    refusing,
    scripted,
)
from topics.client import backoff
from topics.errors import (
    ConnectionFailed,
    InvalidRequest,
    LogStopped,
    NotReady,
    ShuttingDown,
    Throttled,
    TimedOut,
    TopicNotFound,
    Unavailable,
)

BUSY = refusing("429 Too Many Requests", "throttled", detail='{"retry_after_ms":1}')
NOT_READY = refusing("503 Service Unavailable", "not_ready", "Retry-After: 0")
GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 0)
    monkeypatch.setattr(backoff, "LONGEST_MS", 0)


@pytest.mark.parametrize("repeatable", [False, True])
@pytest.mark.parametrize(
    "script",
    [
        answering(BUSY, NOT_READY, OK),
        answering(refusing("503 Service Unavailable", "shutting_down"), OK),
        answering(refusing("408 Request Timeout", "request_timeout"), OK),
        answering(refusing("429 Too Many", "throttled", detail='{"limit":"max_inflight_per_key"}'), OK),
    ],
    ids=["busy", "stopping", "slow", "in flight"],
)
@on_loop
async def test_what_was_refused_for_now_is_tried_again(script: Script, repeatable: bool) -> None:
    async with scripted(script) as server, calling(server) as caller:
        assert (await soon(caller.call("POST", "/", b"{}", repeatable=repeatable))).body == b"{}"


@on_loop
async def test_tries_are_counted() -> None:
    async with scripted(answering(NOT_READY, NOT_READY, NOT_READY, OK)) as server, calling(server) as caller:
        with pytest.raises(NotReady) as refused:
            await soon(caller.call("GET", "/", repeatable=True))
        assert refused.value.request_id == "r-1"
        assert (await caller.call("GET", "/", repeatable=True)).status == 200


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusing("404 Not Found", "topic_not_found"), TopicNotFound),
        (refusing("503 Service Unavailable", "log_stopped"), LogStopped),
        (refusing("429 Too Many", "throttled", detail='{"limit":"max_topics"}'), Throttled),
    ],
    ids=["refused for good", "stopped", "a cap"],
)
@on_loop
async def test_what_waiting_does_not_help_is_not_tried_again(answer: bytes, kind: type[Exception]) -> None:
    async with scripted(answering(answer, OK)) as server, calling(server) as caller:
        with pytest.raises(kind):
            await soon(caller.call("GET", "/", repeatable=True))
        assert (await caller.call("GET", "/", repeatable=True)).status == 200


@pytest.mark.parametrize(
    ("script", "kind"),
    [(end_unanswered, ConnectionFailed), (answering(OK[:-1]), ConnectionFailed), (answering(GATEWAY), Unavailable)],
    ids=["lost", "truncated", "gateway"],
)
@on_loop
async def test_what_may_have_been_done_is_repeated_only_if_that_is_the_same(
    script: Script, kind: type[Exception]
) -> None:
    async with scripted(script, keep_answering) as server, calling(server) as caller:
        assert (await soon(caller.call("POST", "/", repeatable=True))).status == 200
        assert server.connection_count == 2
    async with scripted(script, keep_answering) as server, calling(server) as caller:
        with pytest.raises(kind):
            await soon(caller.call("POST", "/", repeatable=False))
        assert server.connection_count == 1


@on_loop
async def test_a_stale_connection_costs_no_try() -> None:
    """Four idle connections that are dead when they are used again: one try, on a new one."""
    cut = asyncio.Event()

    async def stale(side: Side) -> None:
        await answer_once(side)
        await side.request()
        cut.set()

    async with scripted(stale, stale, stale, keep_answering) as server, calling(server, attempts_max=1) as caller:
        await asyncio.gather(*(caller.call("GET", "/", repeatable=True) for _ in range(3)))
        assert server.connection_count == 3
        assert (await soon(caller.call("GET", "/", repeatable=True))).status == 200
        assert cut.is_set() and server.connection_count == 4
    async with scripted(stale, keep_answering) as server, calling(server) as caller:
        await caller.call("GET", "/", repeatable=True)
        with pytest.raises(ConnectionFailed, match="before it answered"):
            await soon(caller.call("POST", "/", repeatable=False))
        assert server.connection_count == 1


@on_loop
async def test_a_connection_that_could_not_be_made_is_tried_again() -> None:
    async with scripted(keep_answering) as server:
        pass
    async with calling(server) as caller:
        with pytest.raises(ConnectionFailed, match="cannot connect"):
            await soon(caller.call("POST", "/", repeatable=False))
    async with scripted(end_at_once, keep_answering) as server, calling(server) as caller:
        assert (await soon(caller.call("GET", "/", repeatable=True))).status == 200


@on_loop
async def test_a_call_has_an_end() -> None:
    async with scripted(never_answer) as server:
        async with calling(server, timeout_ms=20) as caller:
            with pytest.raises(TimedOut, match="has not answered in time"):
                await soon(caller.call("GET", "/", repeatable=True))
        async with calling(server, read_timeout_ms=10, attempts_max=2) as caller:
            with pytest.raises(TimedOut, match="was silent"):
                await soon(caller.call("GET", "/", repeatable=True))
            assert server.connection_count == 3
        async with calling(server, read_timeout_ms=10) as caller:
            with pytest.raises(TimedOut, match="not known"):
                await soon(caller.call("POST", "/", repeatable=False))
            assert server.connection_count == 4


@on_loop
async def test_a_wait_the_server_asks_for_beyond_the_end_is_not_begun() -> None:
    answer = refusing("503 Service Unavailable", "not_ready", "Retry-After: 3600")
    async with scripted(answering(answer)) as server, calling(server) as caller:
        with pytest.raises(NotReady):
            await soon(caller.call("GET", "/", repeatable=True))


@on_loop
async def test_a_cancelled_call_leaves_the_pool_usable() -> None:
    async with (
        scripted(never_answer, never_answer, keep_answering) as server,
        calling(server, connections_max=2) as caller,
    ):
        before = asyncio.all_tasks()
        calls = [asyncio.create_task(caller.call("GET", "/", repeatable=True)) for _ in range(6)]
        await settle()
        while server.connection_count < 2:
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        assert all(
            isinstance(result, asyncio.CancelledError)
            for result in await asyncio.gather(*calls, return_exceptions=True)
        )
        assert (await soon(caller.call("GET", "/", repeatable=True))).status == 200
        assert caller.connection_count == 1
        assert {task for task in asyncio.all_tasks() - before if "serve" not in str(task)} == set()


@on_loop
async def test_closing_ends_calls_and_leaves_no_socket() -> None:
    async with scripted(never_answer) as server, calling(server) as caller:
        calls = [asyncio.create_task(caller.call("GET", "/", repeatable=True, wait_ms=wait)) for wait in (0, 1000)]
        while server.connection_count < 2:
            await asyncio.sleep(0)
        await soon(caller.close())
        for call in calls:
            with pytest.raises(ShuttingDown, match="closed"):
                await call
        assert caller.connection_count == 0
        with pytest.raises(NotReady, match="is not connected"):
            await caller.call("GET", "/", repeatable=True)


@on_loop
async def test_waiting_holds_no_call_up() -> None:
    async def wait(side: Side) -> None:
        await side.request()
        await side.ended()

    async with scripted(wait, keep_answering) as server, calling(server, connections_max=1) as caller:
        parked = asyncio.create_task(caller.call("GET", "/", repeatable=True, wait_ms=30_000))
        while server.connection_count < 1:
            await asyncio.sleep(0)
        assert (await soon(caller.call("GET", "/", repeatable=True))).status == 200
        assert not parked.done()
        parked.cancel()
        await asyncio.gather(parked, return_exceptions=True)


@on_loop
async def test_what_a_request_says() -> None:
    asked: list[bytes] = []

    async def note(side: Side) -> None:
        while True:
            asked.append(await side.request())
            side.send(OK)

    async with scripted(note) as server:
        async with calling(server, key="secret") as caller:
            await caller.call("POST", "/v0/x", b'{"a":1}', repeatable=False)
            await caller.call("DELETE", "/v0/x", repeatable=False)
        async with calling(server, compress=True) as caller:
            await caller.call("POST", "/v0/x", b" " * 5000, repeatable=False)
            await caller.call("POST", "/v0/x", b"{}", repeatable=False)
    head, _, body = asked[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /v0/x HTTP/1.1"
    assert {f"Host: {server.address.authority}", "Authorization: Bearer secret", "Content-Length: 7"} < set(lines)
    assert "Content-Type: application/json" in lines and body == b'{"a":1}'
    assert b"Content-Length: 0" in asked[1] and b"gzip" not in asked[1]
    packed_head, _, packed = asked[2].partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in packed_head and gzip.decompress(packed) == b" " * 5000
    assert b"Accept-Encoding: gzip" in asked[3] and b"Content-Encoding" not in asked[3]


@pytest.mark.parametrize("name", ["timeout_ms", "connect_timeout_ms", "read_timeout_ms", "attempts_max"])
@on_loop
async def test_an_option_that_is_none(name: str) -> None:
    async with scripted(keep_answering) as server:
        with pytest.raises(InvalidRequest, match=f"{name} must be a whole number, at least 1, not 0"):
            async with calling(server, **{name: 0}):
                pass
