"""A connection that sends much waits for its turn, and one that sends little does not wait for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.server.httprig import both_loops, chunked, get, post, run, serving
from tests.server.lanerig import serving as serving_all
from topics.limits import KIB
from topics.server.intake.turns import REQUEST_BYTES, RESUMED_PER_TURN, TURN_BYTES, Budget, Turns

REQUESTS_PER_TURN = TURN_BYTES // REQUEST_BYTES


@both_loops
def test_pipelined_requests_take_so_many_of_a_turn(loop: str) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            flooding, quiet = await rig.call(), await rig.call()
            await rig.until_connections(2)
            count = 20 * REQUESTS_PER_TURN
            turns: list[list[str]] = [[]]
            rig.answers = lambda request: _noted(turns, request)
            first, second = rig.protocols[:2] if await _is_first(rig, flooding) else rig.protocols[1::-1]
            first.data_received(get("/flood") * count)
            second.data_received(get("/quiet"))
            while sum(map(len, turns)) < count + 1:
                turns.append([])
                await asyncio.sleep(0)
            assert turns[0] == ["/flood"] * REQUESTS_PER_TURN + ["/quiet"]
            assert max(map(len, turns[1:])) <= REQUESTS_PER_TURN
            for _ in range(count):
                assert (await flooding.answer()).status == 200
            assert (await quiet.answer()).status == 200

    run(scenario, loop)


async def _is_first(rig: Any, caller: Any) -> bool:
    port = caller.writer.get_extra_info("sockname")[1]
    return bool(rig.protocols[0]._transport.get_extra_info("peername")[1] == port)


def _noted(turns: list[list[str]], request: Any) -> Any:
    from topics.server.message import Response

    turns[-1].append(request.path)
    return Response(200, b"{}")


def test_requests_of_one_byte_chunks_wait_for_their_turn() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            await rig.until_connections(1)
            (connection,) = rig.protocols
            message = chunked(*[b"x"] * 30_000)
            connection.data_received(message)
            assert not rig.requests and connection._gate.is_closed
            answer = await caller.answer()
            assert answer.status == 200
            assert rig.requests[0].body == b"x" * 30_000

    run(scenario)


def test_large_body_waits_for_its_turn_between_its_reads() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            await rig.until_connections(1)
            (connection,) = rig.protocols
            message = post(b"x" * (TURN_BYTES + 100 * KIB))
            connection.data_received(message)
            assert not rig.requests and connection._gate.is_closed
            assert (await caller.answer()).status == 200

    run(scenario)


def test_connection_that_is_lost_while_it_waits_begins_nothing_more() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            caller = await rig.call()
            await rig.until_connections(1)
            rig.protocols[0].data_received(get() * 5 * REQUESTS_PER_TURN)
            begun = len(rig.requests)
            assert begun == REQUESTS_PER_TURN
            rig.protocols[0].abort()
            await rig.until_connections(0)
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(rig.requests) <= begun + REQUESTS_PER_TURN
            await caller.close()

    run(scenario)


def test_budget_starts_again_in_the_next_turn() -> None:
    async def scenario() -> None:
        resumed: list[str] = []
        budget = Budget(Turns(), lambda: resumed.append("now"))
        for _ in range(10):
            assert not budget.spend(TURN_BYTES - 1)
            await asyncio.sleep(0)
        assert budget.spend(TURN_BYTES)
        assert budget.spend(TURN_BYTES)
        await asyncio.sleep(0)
        assert resumed == ["now"] and not budget.is_spent

    run(scenario)


def test_few_of_the_line_are_resumed_in_each_turn() -> None:
    async def scenario() -> None:
        turns = Turns()
        resumed: list[int] = []
        for number in range(5):
            turns.wait(lambda number=number: resumed.append(number))  # type: ignore[misc]
        seen: list[list[int]] = []
        while len(turns):
            await asyncio.sleep(0)
            seen.append(list(resumed))
        assert [len(each) for each in seen] == [turn * RESUMED_PER_TURN for turn in range(1, 6)]
        assert resumed == list(range(5))

    run(scenario)


def test_pipelined_writes_beyond_a_turn_are_stored_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        from tests.server.intake.test_order import write

        async with serving_all(tmp_path) as rig:
            caller = await rig.call(known=False)
            count = 10 * REQUESTS_PER_TURN
            caller.send(b"".join(write(number) for number in range(count)))
            for _ in range(count):
                assert (await caller.answer()).status in (200, 201)
            assert await rig.stored() == list(range(count))

    run(scenario)
