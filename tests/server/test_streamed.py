"""A stream among other requests of its connection: in its turn, and when the connection is on its way out."""

from __future__ import annotations

from tests.client.rig import settle
from tests.server.httprig import both_loops, echo, get, run, serving
from tests.server.outlets import Tape, streamed
from topics.server.message import Response


@both_loops
def test_a_stream_waits_for_every_answer_before_it(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            tape = Tape({"opened": lambda stream: stream.end()})
            caller = await rig.call()
            caller.send(get("/1") + get("/2") + get("/stream"))
            await rig.until_requests(3)
            rig.replies[2](streamed(tape))
            rig.replies[0](echo(rig.requests[0]))
            assert (await caller.answer()).status == 200
            assert tape.heard == [], "the second answer is still to come"
            rig.replies[1](echo(rig.requests[1]))
            assert (await caller.answer()).status == 200
            await tape.until("closed")
            assert (await caller.reader.readuntil(b"0\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")

    run(scenario, loop)


@both_loops
def test_a_stream_on_a_connection_that_was_just_dropped_is_opened_and_closed(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            rig.answers = None
            tape = Tape()
            caller = await rig.call()
            caller.send(get())
            await rig.until_requests(1)
            rig.protocols[0].abort()
            rig.replies[0](streamed(tape))
            await tape.until("closed")
            assert tape.heard == ["opened", "closed"]
            assert await caller.ended()

    run(scenario, loop)


@both_loops
def test_a_stream_behind_more_than_it_may_have_waiting_is_opened_full(loop: str) -> None:
    async def scenario() -> None:
        async with serving(write_buffer_high_bytes=1 << 30) as rig:
            tape = Tape({"drained": lambda stream: stream.end()})
            large = Response(200, body=bytes(16 << 20))
            rig.answers = lambda request: large if request.path == "/large" else streamed(tape)
            caller = await rig.call()
            caller.send(get("/large") + get("/stream"))
            await tape.until("opened")
            assert tape.heard == ["opened"] and tape.open.full
            assert len((await caller.answer()).body) == 16 << 20
            await tape.until("closed")
            assert tape.heard == ["opened", "drained", "closed"]

    run(scenario, loop)


@both_loops
def test_an_end_behind_an_abort_closes_once(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            rig.answers = lambda request: streamed(tape)
            caller = await rig.call()
            caller.send(get())
            await tape.until("opened")
            tape.open.abort()
            tape.open.end()
            await rig.until_connections(0)
            assert tape.heard == ["opened", "closed"]

    run(scenario, loop)


@both_loops
def test_what_came_behind_a_stream_that_ends_its_connection_is_not_begun(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            rig.answers = lambda request: streamed(tape)
            caller = await rig.call()
            caller.send(get("/stream"))
            await tape.until("opened")
            caller.send(get("/behind"))
            while not rig.protocols[0]._unread:
                await settle()
            tape.open.end(close=True)
            assert (await caller.reader.read()).endswith(b"0\r\n\r\n")
            assert [request.path for request in rig.requests] == ["/stream"]

    run(scenario, loop)
