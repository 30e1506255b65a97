from __future__ import annotations

import asyncio
import gzip

import pytest

from tests.client.rig import on_loop, settle, soon
from tests.client.scripted import OK, Script, Side, answer_once, answering, never_answer, scripted
from topics.client.connection import UNREAD_BYTES_MAX, Answer, Connection
from topics.errors import ConnectionFailed, TimedOut, TopicsError

QUESTION = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LONG_S = 60.0


async def connected(port: int) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection("server"), "127.0.0.1", port)
    return connection


async def ask(connection: Connection, silence_s: float = LONG_S, timeout_s: float = LONG_S) -> Answer:
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    return await soon(connection.exchange(QUESTION, silence_s, deadline_s))


async def answer_to(*answers: bytes) -> tuple[Answer, bool]:
    """What a connection makes of the bytes of an answer, and whether it can be used again."""

    async def script(side: Side) -> None:
        await side.request()
        for piece in answers:
            side.send(piece)
            await side.writer.drain()
            await settle()

    async with scripted(script) as server:
        connection = await connected(server.address.port)
        answer = await ask(connection)
        usable = connection.usable
        connection.cut()
        await connection.closed()
        return answer, usable


def pieces(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        ([OK], 200, b"{}"),
        (pieces(OK), 200, b"{}"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n"], 200, b"abc"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", OK], 200, b"{}"),
        ([b"HTTP/1.1 503 No\r\nContent-Length: 1\r\n\r\nx"], 503, b"x"),
    ],
    ids=["whole", "byte by byte", "no content", "chunked", "interim", "error"],
)
@on_loop
async def test_an_answer_however_it_comes(sent: list[bytes], status: int, body: bytes) -> None:
    answer, usable = await answer_to(*sent)
    assert (answer.status, answer.body, usable) == (status, body, True)


@on_loop
async def test_an_answer_that_ends_with_its_connection() -> None:
    answer, usable = await answer_to(b"HTTP/1.1 502 Bad Gateway\r\nX: y\r\n\r\n<html>", b"</html>")
    assert (answer.body, answer.headers["x"], usable) == (b"<html></html>", "y", False)
    _, usable = await answer_to(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    assert not usable


@on_loop
async def test_a_compressed_answer() -> None:
    packed = gzip.compress(b"x" * 5000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    answer, _ = await answer_to(head % len(packed) + packed)
    assert answer.body == b"x" * 5000
    for wrong in (packed[:-9], b"plain"):
        with pytest.raises(ConnectionFailed, match="gzip"):
            await answer_to(head % len(wrong) + wrong)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (answering(b""), "ended before it answered"),
        (answering(OK[:-1]), "ended in the middle of an answer"),
        (answering(OK[:10]), "ended in the middle of an answer"),
        (answering(b"SSH-2.0-OpenSSH\r\n"), "does not speak HTTP"),
    ],
    ids=["nothing", "truncated body", "truncated head", "not HTTP"],
)
@on_loop
async def test_what_is_no_answer(script: Script, said: str) -> None:
    async with scripted(script) as server:
        connection = await connected(server.address.port)
        with pytest.raises(ConnectionFailed, match=said) as failed:
            await ask(connection)
        assert failed.value.detail == {"sent": True}
        assert not connection.usable
        await connection.closed()


@on_loop
async def test_one_request_after_the_other() -> None:
    async with scripted(answering(OK, OK, OK)) as server:
        connection = await connected(server.address.port)
        for before in (False, True, True):
            assert connection.used is before
            assert (await ask(connection)).body == b"{}"
        await soon(connection.closed())
        assert not connection.usable


@on_loop
async def test_silence_ends_a_call_and_so_does_its_deadline() -> None:
    async with scripted(never_answer) as server:
        connection = await connected(server.address.port)
        with pytest.raises(TimedOut, match=r"silent for 0\.01 s") as late:
            await ask(connection, silence_s=0.01)
        assert late.value.detail == {"sent": True}
        await connection.closed()

    async with scripted(never_answer) as server:
        connection = await connected(server.address.port)
        with pytest.raises(TimedOut, match="has not answered in time"):
            await ask(connection, timeout_s=0.01)
        await connection.closed()


@on_loop
async def test_a_cancelled_call_ends_its_connection() -> None:
    async with scripted(never_answer) as server:
        connection = await connected(server.address.port)
        call = asyncio.create_task(ask(connection))
        await settle()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not connection.usable
        await soon(connection.closed())


@on_loop
async def test_the_answer_to_a_cancelled_call_reaches_whoever_wants_to_know() -> None:
    """Its sender ends, so that the server knows; what it has sent by then comes."""

    async def script(side: Side) -> None:
        await side.request()
        asked.set()
        assert await side.ended()
        side.send(OK[:20])
        side.send(OK[20:])

    asked = asyncio.Event()
    late: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    async with scripted(script) as server:
        connection = await connected(server.address.port)
        deadline_s = asyncio.get_running_loop().time() + LONG_S
        call = asyncio.create_task(connection.exchange(QUESTION, LONG_S, deadline_s, late.set_result))
        await soon(asked.wait())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not connection.usable and connection.lingers
        assert (await soon(late)).body == b"{}"
        await soon(connection.closed())


@on_loop
async def test_an_answer_that_came_with_the_cancellation_is_not_lost() -> None:
    async with scripted(never_answer) as server:
        connection = await connected(server.address.port)
        late: list[Answer] = []
        deadline_s = asyncio.get_running_loop().time() + LONG_S
        call = asyncio.create_task(connection.exchange(QUESTION, LONG_S, deadline_s, late.append))
        await settle()
        connection.data_received(OK)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert [answer.body for answer in late] == [b"{}"] and connection.usable
        connection.cut()


@on_loop
async def test_a_server_that_does_not_answer_a_cancelled_call_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.client.connection.LINGER_S_MAX", 0.01)
    async with scripted(never_answer) as server:
        connection = await connected(server.address.port)
        late: list[Answer] = []
        deadline_s = asyncio.get_running_loop().time() + LONG_S
        call = asyncio.create_task(connection.exchange(QUESTION, LONG_S, deadline_s, late.append))
        await settle()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await soon(connection.closed())
        assert late == []


@on_loop
async def test_what_nobody_asked_for_ends_the_connection() -> None:
    async def babble(side: Side) -> None:
        await answer_once(side)
        side.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await side.ended()

    async with scripted(babble) as server:
        connection = await connected(server.address.port)
        await ask(connection)
        await soon(connection.closed())
        assert not connection.usable


@on_loop
async def test_the_timer_goes_by_the_last_byte() -> None:
    async with scripted(never_answer) as server:
        connection = await connected(server.address.port)
        call = asyncio.create_task(ask(connection, silence_s=LONG_S))
        await settle()
        # The timer fires when the silence would be over if nothing had been heard since.
        connection._timer.cancel()
        connection._time_over(LONG_S, asyncio.get_running_loop().time() + LONG_S)
        assert not call.done() and not connection._timer.cancelled()
        connection._heard_s -= LONG_S
        connection._time_over(LONG_S, asyncio.get_running_loop().time() + LONG_S)
        with pytest.raises(TimedOut):
            await call


@on_loop
async def test_two_answers_in_one_breath_are_one_too_many() -> None:
    answer, usable = await answer_to(OK + OK)
    assert (answer.body, usable) == (b"{}", False)


# ---- streams


async def open_stream(connection: Connection) -> Answer:
    return await soon(connection.stream(QUESTION, LONG_S, asyncio.get_running_loop().time() + LONG_S))


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@on_loop
async def test_a_stream_gives_its_parts_as_they_come() -> None:
    more = asyncio.Event()

    async def script(side: Side) -> None:
        await side.request()
        side.send(HEAD, b"2\r\nab\r\n")
        await more.wait()
        side.send(b"1\r\nc\r\n0\r\n\r\n")
        await side.ended()

    async with scripted(script) as server:
        connection = await connected(server.address.port)
        assert (await open_stream(connection)).status == 200
        parts = connection.parts(LONG_S)
        assert await soon(anext(parts)) == b"ab"
        more.set()
        assert [part async for part in parts] == [b"c"]
        await soon(connection.closed())


@pytest.mark.parametrize("end", ["cut", "silence"])
@on_loop
async def test_a_stream_that_breaks_off_says_so(end: str) -> None:
    async def script(side: Side) -> None:
        await side.request()
        side.send(HEAD, b"2\r\nab\r\n")
        if end == "silence":
            await side.ended()

    async with scripted(script) as server:
        connection = await connected(server.address.port)
        await open_stream(connection)
        parts = connection.parts(0.01 if end == "silence" else LONG_S)
        assert await soon(anext(parts)) == b"ab"
        kind: type[TopicsError] = TimedOut if end == "silence" else ConnectionFailed
        with pytest.raises(kind):
            await soon(anext(parts))
        await connection.closed()


@on_loop
async def test_a_stream_nobody_reads_holds_its_sender_up() -> None:
    sent = 0
    blocked = asyncio.Event()

    async def script(side: Side) -> None:
        nonlocal sent
        await side.request()
        side.send(HEAD)
        side.writer.transport.set_write_buffer_limits(high=0)
        for _ in range(1000):
            side.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            sent += 65536
            draining = asyncio.ensure_future(side.writer.drain())
            done, _ = await asyncio.wait([draining], timeout=0.5)
            if not done:
                blocked.set()
            await draining
        side.send(b"0\r\n\r\n")
        await side.ended()

    async with scripted(script) as server:
        connection = await connected(server.address.port)
        await open_stream(connection)
        await soon(blocked.wait())
        assert connection._part_bytes <= UNREAD_BYTES_MAX + 65536 * 8
        received = 0
        async for part in connection.parts(LONG_S):
            received += len(part)
        assert received == sent == 1000 * 65536


@on_loop
async def test_a_refused_stream_has_a_whole_answer() -> None:
    async with scripted(answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone")) as server:
        connection = await connected(server.address.port)
        answer = await open_stream(connection)
        assert (answer.status, answer.body) == (404, b"gone")
        connection.cut()
        await connection.closed()


@on_loop
async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.client.connection.BODY_BYTES_MAX", 1000)

    async def flood(side: Side) -> None:
        await side.request()
        side.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x" * 600, b"x" * 600)
        await side.ended()

    async with scripted(flood) as server:
        connection = await connected(server.address.port)
        with pytest.raises(ConnectionFailed, match="server sends more than 1000 bytes in one answer") as failed:
            await ask(connection)
        assert failed.value.detail == {"sent": True} and not connection.usable
        await soon(connection.closed())
