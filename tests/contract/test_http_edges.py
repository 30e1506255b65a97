"""What the HTTP edge does with clients that wait, err, dawdle or come from elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from tests.server.httprig import Caller, Rig, asked, both_loops, chunked, echo, get, post, run, serving
from topics.server.cors import Cors
from topics.server.message import Request, Response

# ---- continue


@both_loops
def test_a_client_that_waits_for_a_word_gets_it(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            message = post(b"hello", "Expect: 100-continue")
            caller.send(message[:-5])
            assert (await caller.answer()).status == 100
            caller.send(message[-5:])
            assert asked(await caller.answer())["body"] == "hello"

    run(scenario, loop)


def test_the_word_comes_behind_the_answers_before_it() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            message = post(b"hello", "Expect: 100-continue")
            caller.send(get("/1") + message[:-5])
            await rig.until_requests(1)
            rig.replies[0](echo(rig.requests[0]))
            assert asked(await caller.answer())["path"] == "/1"
            assert (await caller.answer()).status == 100
            rig.answers = echo
            caller.send(message[-5:])
            assert asked(await caller.answer())["body"] == "hello"

    run(scenario)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (post(b"hello", "Expect: 200-ok"), 417),
        (post(b"hello" * 100, "Expect: 100-continue"), 413),
        (post(b"hello", "Expect: 100-continue", "Host: again"), 400),
    ],
)
def test_the_word_is_not_given_to_a_head_that_is_refused(message: bytes, status: int) -> None:
    async def scenario() -> None:
        async with serving(body_bytes_max=100) as rig:
            caller = await rig.call()
            caller.send(message.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
            assert (await caller.answer()).status == status
            assert await caller.ended()

    run(scenario)


# ---- refusals

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
REFUSED = {
    "no http": (b"hello there, server\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (GET + b"Host: b\r\n\r\n", 400),
    "unknown method": (b"FETCH / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "connect": (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "version": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400),
    "bare newlines": (b"GET / HTTP/1.1\nHost: a\n\n", 400),
    "folded header": (GET + b"X: a\r\n b\r\n\r\n", 400),
    "space before colon": (GET + b"X : a\r\n\r\n", 400),
    "bad escape": (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "bad utf-8": (b"GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "length and chunked": (GET + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunked and length": (GET + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (GET + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    "list of lengths": (GET + b"Content-Length: 3, 3\r\n\r\nabc", 400),
    "negative length": (GET + b"Content-Length: -3\r\n\r\nabc", 400),
    "chunked twice": (GET + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "other coding": (GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    "coding in 1.0": (b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "bad chunk size": (GET + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n", 400),
    "bad chunk end": (GET + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", 400),
    "unknown encoding": (GET + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx", 415),
    "long body": (GET + b"Content-Length: 1001\r\n\r\n", 413),
    "endless body": (GET + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
    "long chunked body": (GET + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n", 413),
    "long header": (GET + b"X: " + b"x" * 5000, 431),
    "many headers": (GET + b"".join(b"X-%d: y\r\n" % number for number in range(1000)), 431),
    "long address": (b"GET /" + b"x" * 5000, 431),
    "long trailer": (GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 5000, 431),
    "long extension": (GET + b"Transfer-Encoding: chunked\r\n\r\n3;" + b"x" * 5000, 431),
    "whole long head": (GET + b"X: " + b"x" * 2500 + b"\r\n\r\n", 431),
}


@both_loops
@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_has_the_envelope_and_ends_the_connection(loop: str, name: str) -> None:
    message, status = REFUSED[name]

    async def scenario() -> None:
        async with serving(header_bytes_max=2000, body_bytes_max=1000) as rig:
            caller = await rig.call()
            caller.send(get("/before") + message)
            assert asked(await caller.answer())["path"] == "/before"
            answer = await caller.answer()
            assert answer.status == status, answer.body
            assert answer.headers["connection"] == "close"
            assert set(json.loads(answer.body)["error"]) >= {"code", "message"}
            assert await caller.ended()
            # Ours is ended, and what the client still sends is thrown away until it ends too.
            caller.send(get("/after"))
            await caller.close()
            await rig.until_connections(0)
            assert [request.path for request in rig.requests] == ["/before"]

    run(scenario, loop)


def test_a_refusal_waits_for_the_answers_before_it() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + b"nonsense\r\n\r\n")
            await rig.until_requests(1)
            rig.replies[0](echo(rig.requests[0]))
            assert asked(await caller.answer())["path"] == "/1"
            assert (await caller.answer()).status == 400
            assert await caller.ended()

    run(scenario)


def test_a_refused_client_that_goes_on_sending_can_read_why() -> None:
    async def scenario() -> None:
        async with serving(body_bytes_max=1000) as rig:
            caller = await rig.call()
            message = post(b"x" * 3_000_000)
            caller.send(message)
            answer = await caller.answer()
            assert (answer.status, answer.error) == (413, "payload_too_large")
            await caller.writer.drain()
            assert await caller.ended()
            # A client that never ends its side is cut off all the same.
            rig.pass_time(rig.options.linger_timeout_s + 1)
            await rig.until_connections(0)

    run(scenario)


# ---- compression


def test_gzip_both_ways() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            large = b"x" * 5000
            caller.send(post(gzip.compress(large), "Content-Encoding: gzip", "Accept-Encoding: br, gzip"))
            answer = await caller.answer()
            assert answer.headers["content-encoding"] == "gzip"
            assert answer.headers["vary"] == "Accept-Encoding"
            assert asked(answer)["body"] == large.decode()
            caller.send(post(b"small", "Accept-Encoding: gzip"))
            assert "content-encoding" not in (await caller.answer()).headers
            caller.send(post(large, "Accept-Encoding: gzip;q=0"))
            assert "content-encoding" not in (await caller.answer()).headers

    run(scenario)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"no gzip", 400), (gzip.compress(b"x")[:-1], 400), (gzip.compress(b"x" * 10_001), 413)],
    ids=["none", "cut off", "too large"],
)
def test_a_bad_gzip_body_is_refused_and_the_connection_goes_on(body: bytes, status: int) -> None:
    async def scenario() -> None:
        async with serving(body_bytes_max=10_000) as rig:
            caller = await rig.call()
            caller.send(post(body, "Content-Encoding: gzip"))
            assert (await caller.answer()).status == status
            caller.send(post(gzip.compress(b"x" * 10_000), "Content-Encoding: gzip"))
            assert len(asked(await caller.answer())["body"]) == 10_000

    run(scenario)


# ---- slow clients


async def _trickle(rig: Rig, caller: Caller, message: bytes, count: int) -> None:
    caller.send(message)
    while len(rig.connections) < count or not rig.protocols[-1].receiving:
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("message", "timeout"),
    [
        (b"GET / HTTP/1.1\r\nHo", "header_timeout_s"),
        (post(b"hello")[:-1], "body_timeout_s"),
        (chunked(b"hello")[:-3], "body_timeout_s"),
    ],
    ids=["head", "body", "chunk"],
)
def test_a_request_that_does_not_come_to_its_end(message: bytes, timeout: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            await _trickle(rig, caller, message, 1)
            rig.pass_time(getattr(rig.options, timeout) - 1)
            assert len(rig.connections) == 1
            rig.pass_time(2)
            answer = await caller.answer()
            assert (answer.status, answer.error) == (408, "request_timeout")
            assert await caller.ended()
            assert rig.requests == []

    run(scenario)


def test_an_idle_connection_is_closed_without_a_word() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            caller.send(get())
            await caller.answer()
            rig.pass_time(rig.options.idle_timeout_s - 1)
            caller.send(get())
            assert (await caller.answer()).status == 200
            rig.pass_time(rig.options.idle_timeout_s - 1)
            assert len(rig.connections) == 1
            rig.pass_time(2)
            assert await caller.ended()

    run(scenario)


def test_our_own_slowness_is_not_the_clients() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get())
            await rig.until_requests(1)
            rig.pass_time(10_000)
            rig.replies[0](Response(200, b"{}"))
            assert (await caller.answer()).status == 200

    run(scenario)


# ---- other origins


def test_other_origins_are_not_spoken_to_unless_they_are_named() -> None:
    preflight = get("/", "Origin: https://app", "Access-Control-Request-Method: POST").replace(b"GET", b"OPTIONS")

    async def scenario() -> None:
        async with serving() as rig:
            answer = await rig.ask(preflight)
            assert answer.status == 200 and rig.requests[0].method == "OPTIONS"
            assert not [name for name in answer.headers if name.startswith("access-control")]
        async with serving(cors=Cors(frozenset({"https://app"}))) as rig:
            answer = await rig.ask(preflight)
            assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, "https://app")
            assert "POST" in answer.headers["access-control-allow-methods"]
            answer = await rig.ask(get("/", "Origin: https://app"))
            assert answer.headers["access-control-allow-origin"] == "https://app"
            for answer in (
                await rig.ask(get("/", "Origin: https://other")),
                await rig.ask(preflight.replace(b"app", b"other")),
            ):
                assert not [name for name in answer.headers if name.startswith("access-control")]

    run(scenario)


def test_a_dispatch_that_raises_ends_only_its_connection() -> None:
    def broken(request: Request) -> Response:
        raise ZeroDivisionError

    async def scenario() -> None:
        problems: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        async with serving() as rig:
            rig.answers = broken
            caller = await rig.call()
            caller.send(get())
            assert await caller.ended()
            await rig.until_connections(0)
            rig.answers = echo
            assert (await rig.ask(get())).status == 200
        assert len(problems) == 1

    run(scenario)
