from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from tests.server.httprig import Answer, Caller, Rig, chunked, echo, get, post, run, serving
from topics.server.cors import Cors
from topics.server.http import SLICE_BYTES
from topics.server.message import Request, Response

both_loops = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


def asked(answer: Answer) -> dict[str, str]:
    assert answer.status == 200
    asked: dict[str, str] = json.loads(answer.text)
    return asked


# ---- requests and answers


@both_loops
def test_requests_on_one_connection_are_answered_one_after_the_other(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            for number in range(50):
                caller.send(post(b"%d" % number, path=f"/v0/a%20b/{number}?x=%20y"))
                answer = await caller.answer()
                assert asked(answer) == {
                    "method": "POST",
                    "path": f"/v0/a b/{number}",
                    "query": "x=%20y",
                    "body": str(number),
                }
                assert answer.headers["content-type"] == "application/json"
                assert "connection" not in answer.headers

    run(scenario, loop)


def test_the_same_head_again_and_again_is_read_the_same() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            bodies = [f"{number:05}" for number in range(200)]
            for body in bodies[:100]:
                caller.send(post(body.encode(), "X-Thing: 1"))
                assert asked(await caller.answer())["body"] == body
            caller.send(b"".join(post(body.encode(), "X-Thing: 1") for body in bodies[100:]))
            for body in bodies[100:]:
                assert asked(await caller.answer())["body"] == body
            assert {request.headers["x-thing"] for request in rig.requests} == {"1"}
            assert len({request.request_id for request in rig.requests}) == 200

    run(scenario)


def test_a_remembered_head_does_not_swallow_what_only_looks_like_it() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            for message, body in [
                (post(b"aaa"), "aaa"),
                (post(b"bbb"), "bbb"),
                (post(b"cccc"), "cccc"),
                (post(b"ddd", "X: y"), "ddd"),
                (post(b"ddd"), "ddd"),
                (get(), ""),
                (chunked(b"xx", b"yy"), "xxyy"),
                (chunked(b"zz"), "zz"),
                (get(), ""),
            ]:
                caller.send(message)
                assert asked(await caller.answer())["body"] == body
            split = post(b"eee")
            for at in range(1, len(split)):
                caller.send(split[:at])
                await caller.writer.drain()
                await asyncio.sleep(0)
                caller.send(split[at:])
                assert asked(await caller.answer())["body"] == "eee"

    run(scenario)


@both_loops
@pytest.mark.parametrize(
    "message",
    [
        post(b"hello"),
        chunked(b"hel", b"lo"),
        chunked(b"hello", trailer=b"X-Sum: 1\r\n"),
        b"\r\n" + post(b"hello"),
        post(gzip.compress(b"hello"), "Content-Encoding: gzip"),
    ],
    ids=["length", "chunked", "trailer", "blank line before", "gzip"],
)
def test_a_request_may_come_in_any_pieces(loop: str, message: bytes) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            await caller.send_bytes_apart(message)
            assert asked(await caller.answer())["body"] == "hello"
            for at in range(1, len(message)):
                caller.send(message[:at])
                await caller.writer.drain()
                await asyncio.sleep(0)
                caller.send(message[at:])
                assert asked(await caller.answer())["body"] == "hello"

    run(scenario, loop)


@both_loops
def test_pipelined_requests_are_answered_in_their_order(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(b"".join(get(f"/{number}") for number in range(20)))
            await rig.until_requests(20)
            for number in reversed(range(20)):
                rig.replies[number](echo(rig.requests[number]))
            for number in range(20):
                assert asked(await caller.answer())["path"] == f"/{number}"

    run(scenario, loop)


def test_no_more_than_so_many_pipelined_requests_are_taken_at_once() -> None:
    async def scenario() -> None:
        async with serving(pipeline_max=4) as rig:
            rig.answers = None
            caller = await rig.call()
            # More than a slice, so that some are parsed already and some are not.
            count = 3 * SLICE_BYTES // len(get("/000"))
            caller.send(b"".join(get(f"/{number}") for number in range(count)) + get("/last", "Connection: close"))
            done = 0
            while done <= count:
                await rig.until_requests(done + 1)
                assert len(rig.requests) - done <= 4
                rig.replies[done](echo(rig.requests[done]))
                expected = f"/{done}" if done < count else "/last"
                assert asked(await caller.answer())["path"] == expected
                done += 1
            assert await caller.ended()

    run(scenario)


@both_loops
def test_a_client_that_does_not_read_is_not_asked_for_more(loop: str) -> None:
    async def scenario() -> None:
        big = Response(200, b"x" * 500_000)
        async with serving(write_buffer_high_bytes=1000) as rig:
            rig.answers = lambda request: big
            caller = await rig.call()
            caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
            caller.send(get() * 150)
            await rig.until_requests(1)
            for _ in range(1000):
                await asyncio.sleep(0)
            assert len(rig.requests) < 75
            rig.pass_time(rig.options.write_timeout_s / 2)
            caller.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(150):
                assert len((await caller.answer()).body) == 500_000

    run(scenario, loop)


@both_loops
@pytest.mark.parametrize("headers", [(), ("Connection: close",)], ids=["stays", "closes"])
def test_a_client_that_reads_slowly_but_reads_is_let_be(loop: str, headers: tuple[str, ...]) -> None:
    size = 30_000_000

    async def scenario() -> None:
        async with serving(write_buffer_high_bytes=1000) as rig:
            rig.answers = lambda request: Response(200, b"x" * size)
            caller = await rig.call()
            caller.send(get("/", *headers))
            await caller.reader.readuntil(b"\r\n\r\n")
            looks = 0
            unsent_bytes = size
            for _ in range(size // 1_000_000):
                await caller.reader.readexactly(1_000_000)
                # Time passes whenever the server could see that something was read.
                if 0 < rig.protocols[0].unsent_bytes < unsent_bytes:
                    unsent_bytes = rig.protocols[0].unsent_bytes
                    rig.pass_time(rig.options.write_timeout_s + 1)
                    looks += 1
            assert looks > 1

    run(scenario, loop)


def test_a_client_that_never_reads_is_cut_off() -> None:
    async def scenario() -> None:
        async with serving(write_buffer_high_bytes=1000) as rig:
            rig.answers = lambda request: Response(200, b"x" * 20_000_000)
            caller = await rig.call()
            caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
            caller.send(get())
            await rig.until_requests(1)
            rig.pass_time(rig.options.write_timeout_s + 1)
            await rig.until_connections(0)

    run(scenario)


def test_head_is_get_without_the_body() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            caller.send(get("/x").replace(b"GET", b"HEAD"))
            answer = await caller.answer(head_only=True)
            assert rig.requests[0].method == "GET"
            assert int(answer.headers["content-length"]) == len(echo(rig.requests[0]).body)
            caller.send(get("/y"))
            assert asked(await caller.answer())["path"] == "/y"

    run(scenario)


def test_absolute_addresses_and_escaped_slashes() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            caller.send(get("http://elsewhere:80/a/b%2Fc?q"))
            assert asked(await caller.answer()) == {"method": "GET", "path": "/a/b%2Fc", "query": "q", "body": ""}

    run(scenario)


def test_request_ids_are_repeated_when_they_are_sane_and_made_otherwise() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            for given, kept in [("abc-1.2", True), ("a b", False), ("x" * 129, False), ("<script>", False)]:
                caller.send(get("/", f"X-Request-Id: {given}"))
                answer = await caller.answer()
                assert (answer.headers["x-request-id"] == given) is kept
                assert answer.headers["x-request-id"] == rig.requests[-1].request_id

    run(scenario)


def test_headers_of_a_response_and_the_header_that_comes_first_counts() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = lambda request: Response(429, b"{}", b"text/plain", ((b"Retry-After", b"1"),))
            answer = await rig.ask(get("/", "X-A:  one ", "x-a: two"))
            assert (answer.status, answer.headers["retry-after"], answer.headers["content-type"]) == (
                429,
                "1",
                "text/plain",
            )
            assert rig.requests[0].headers["x-a"] == "one"

    run(scenario)


# ---- the life of a connection


@both_loops
@pytest.mark.parametrize(
    ("message", "stays"),
    [
        (get("/", "Connection: close"), False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
    ],
    ids=["close", "1.0", "1.0 kept alive"],
)
def test_how_long_a_connection_lives(loop: str, message: bytes, stays: bool) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            caller.send(message)
            answer = await caller.answer()
            assert answer.headers["connection"] == ("keep-alive" if stays else "close")
            if stays:
                caller.send(message)
                assert (await caller.answer()).status == 200
            else:
                assert await caller.ended()

    run(scenario, loop)


def test_what_follows_the_last_request_is_not_looked_at() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            caller.send(get("/1") + get("/2", "Connection: close") + get("/3") + b"\0garbage")
            assert asked(await caller.answer())["path"] == "/1"
            assert asked(await caller.answer())["path"] == "/2"
            assert await caller.ended()
            assert len(rig.requests) == 2

    run(scenario)


@both_loops
def test_a_client_that_ended_its_side_still_gets_its_answers(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + get("/2"))
            caller.end_sending()
            await rig.until_requests(2)
            await asyncio.sleep(0)
            rig.replies[1](echo(rig.requests[1]))
            rig.replies[0](echo(rig.requests[0]))
            assert asked(await caller.answer())["path"] == "/1"
            assert asked(await caller.answer())["path"] == "/2"
            assert await caller.ended()

    run(scenario, loop)


@both_loops
def test_an_end_in_the_middle_of_a_request_is_told(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            caller.send(post(b"hello")[:-1])
            caller.end_sending()
            answer = await caller.answer()
            assert (answer.status, answer.error) == (400, "invalid_request")
            assert await caller.ended()
            assert rig.requests == []

    run(scenario, loop)


@both_loops
def test_a_reset_releases_everything_and_late_replies_go_nowhere(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            caller = await rig.call()
            caller.send(get("/1") + get("/2") + b"GET /3")
            await rig.until_requests(2)
            caller.reset()
            await rig.until_connections(0)
            for request, reply in zip(rig.requests, rig.replies, strict=True):
                reply(echo(request))

    run(scenario, loop)


def test_an_upgrade_that_is_offered_is_ignored() -> None:
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")

    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            for _ in range(3):
                caller.send(get("/a", *offer) + post(b"body", *offer) + get("/b"))
                assert asked(await caller.answer())["path"] == "/a"
                assert asked(await caller.answer())["body"] == "body"
                assert asked(await caller.answer())["path"] == "/b"
            await caller.send_bytes_apart(
                chunked(b"xy").replace(b"Host: here", b"Host: here\r\n" + "\r\n".join(offer).encode())
            )
            assert asked(await caller.answer())["body"] == "xy"

    run(scenario)


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
    ("body", "status"), [(b"no gzip", 400), (gzip.compress(b"x")[:-1], 400), (gzip.compress(b"x" * 10_001), 413)]
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
