from __future__ import annotations

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tests.server.httprig import KERNEL_BYTES, asked, both_loops, chunked, echo, get, post, run, serving
from topics.server.http import SLICE_BYTES
from topics.server.message import Request, Response

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
    size, looks_at_least = 8_000_000, 3
    assert size > 2 * (looks_at_least + 1) * KERNEL_BYTES, "the kernel cannot take it all between two looks"

    async def scenario() -> None:
        async with serving(write_buffer_high_bytes=1000) as rig:

            def answer(request: Request) -> Response:
                rig.protocols[0].keep_little()
                return Response(200, b"x" * size)

            rig.answers = answer
            caller = await rig.call()
            caller.keep_little()
            caller.send(get("/", *headers))
            await caller.reader.readuntil(b"\r\n\r\n")
            looks = 0
            for _ in range(size // 250_000):
                await caller.reader.readexactly(250_000)
                # Time passes only when the server can see that something was read since it last looked.
                if 0 < rig.protocols[0].unsent_bytes < rig.protocols[0].seen_unsent_bytes:
                    rig.pass_time(rig.options.write_timeout_s + 1)
                    looks += 1
            assert looks >= looks_at_least

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
            assert rig.requests[0].method == "HEAD"
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
                chunked(b"xy").replace(b"Host: localhost", b"Host: localhost\r\n" + "\r\n".join(offer).encode())
            )
            assert asked(await caller.answer())["body"] == "xy"

    run(scenario)


# ---- work beside the loop


@both_loops
def test_what_is_large_and_compressed_is_inflated_aside_and_nothing_overtakes_it(loop: str) -> None:
    async def scenario() -> None:
        large = [bytes([65 + number]) * 3_000_000 for number in range(3)]
        async with serving() as rig:
            caller = await rig.call()
            packed = [post(gzip.compress(body, 1), "Content-Encoding: gzip", path="/large") for body in large]
            caller.send(b"".join(message + post(b"small", path="/small") for message in packed))
            await rig.until_requests(1)
            assert rig.requests[0].path == "/large"
            for body in large:
                assert asked(await caller.answer())["body"] == body.decode()
                assert asked(await caller.answer())["body"] == "small"
            assert [request.path for request in rig.requests] == ["/large", "/small"] * 3

    run(scenario, loop)


@both_loops
def test_the_loop_goes_on_while_a_body_is_inflated(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            busy, running = Event(), asyncio.get_running_loop()
            running.set_default_executor(ThreadPoolExecutor(1))
            blocker = running.run_in_executor(None, busy.wait)
            slow, quick = await rig.call(), await rig.call()
            slow.send(post(gzip.compress(b"x" * 100_000), "Content-Encoding: gzip", path="/slow") + get("/behind"))
            while not any(protocol._inflating for protocol in rig.protocols):
                await asyncio.sleep(0)
            quick.send(get("/quick"))
            assert asked(await quick.answer())["path"] == "/quick"
            busy.set()
            await blocker
            assert len(asked(await slow.answer())["body"]) == 100_000
            assert asked(await slow.answer())["path"] == "/behind"
            assert [request.path for request in rig.requests] == ["/quick", "/slow", "/behind"]

    run(scenario, loop)


def test_who_was_cut_off_meanwhile_is_not_served() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            # The one thread is busy until the connection has gone.
            busy, loop = Event(), asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(1))
            blocker = loop.run_in_executor(None, busy.wait)
            caller = await rig.call()
            caller.send(post(gzip.compress(b"x" * 100_000), "Content-Encoding: gzip"))
            while not rig.protocols or not rig.protocols[0]._inflating:
                await asyncio.sleep(0)
            rig.protocols[0].abort()
            await rig.until_connections(0)
            busy.set()
            await blocker
            while rig.protocols[0]._inflating:
                await asyncio.sleep(0)
            assert rig.requests == []

    run(scenario)


def test_a_bomb_is_refused_aside_and_the_connection_goes_on() -> None:
    async def scenario() -> None:
        async with serving(body_bytes_max=1_000_000) as rig:
            caller = await rig.call()
            caller.send(post(gzip.compress(b"\0" * 50_000_000), "Content-Encoding: gzip") + get("/next"))
            assert (await caller.answer()).status == 413
            assert asked(await caller.answer())["path"] == "/next"

    run(scenario)


@both_loops
def test_a_large_answer_is_compressed_aside_in_its_turn(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            large = b"x" * 2_000_000
            for last in (False, True):
                more = ("Connection: close",) if last else ()
                caller.send(
                    post(large, "Accept-Encoding: gzip", path="/1")
                    + get("/2")
                    + post(large, "Accept-Encoding: gzip", *more, path="/3")
                )
                first = await caller.answer()
                assert first.headers["content-encoding"] == "gzip" and len(first.body) < 100_000
                assert asked(first)["path"] == "/1"
                assert asked(await caller.answer())["path"] == "/2"
                third = await caller.answer()
                assert asked(third)["body"] == large.decode()
                assert third.headers.get("connection") == ("close" if last else None)
            assert await caller.ended()

    run(scenario, loop)
