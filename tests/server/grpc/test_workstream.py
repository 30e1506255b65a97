"""A `Work` stream over a real socket: credits, messages and settles on one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from tests.server.grpc.test_listener import calling, code_of
from topics import testing
from topics.limits import KIB
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP, HEAPS
from topics.server.grpc import workstream

GUARD_S = 30
COUNT = 40


class Rig:
    def __init__(self, server: testing.TestServer, channel: Any) -> None:
        self.server = server
        self.channel = channel

    async def put(self, *payloads: bytes, topic: str = "jobs") -> None:
        requests = [
            proto.EnqueueReq(topic=topic, payload=payload, priority=place) for place, payload in enumerate(payloads)
        ]
        await calling(self.channel, DISHEAP, "EnqueueBatch")(proto.EnqueueBatchReq(requests=requests))

    async def heap(self) -> Any:
        return await calling(self.channel, HEAPS, "GetHeap")(proto.GetHeapReq(topic="jobs"))

    @asynccontextmanager
    async def working(self, credits: int = 0, **opening: Any) -> AsyncIterator[Any]:
        call = calling(self.channel, HEAPS, "Work")()
        await call.write(proto.WorkRequest(open=proto.WorkOpen(topic="jobs", **opening)))
        assert (await call.read()).WhichOneof("kind") == "opened"
        if credits:
            await call.write(proto.WorkRequest(credits=credits))
        try:
            yield call
        finally:
            call.cancel()


def on_work(scenario: Callable[[Rig], Coroutine[Any, Any, None]], **settings: int) -> Callable[[], None]:
    def test() -> None:
        async def run() -> None:
            async with (
                asyncio.timeout(GUARD_S),
                testing.server(no_grpc=False, **settings) as server,
                grpc.aio.insecure_channel(server.grpc_address) as channel,
            ):
                request = proto.MakeHeapReq(topic="jobs", max_retries_default=0)
                await calling(channel, DISHEAP, "MakeHeap")(request)
                await scenario(Rig(server, channel))

        asyncio.run(run())

    test.__name__ = scenario.__name__
    return test


async def received(call: Any, count: int) -> list[Any]:
    items: list[Any] = []
    while len(items) < count:
        items += (await call.read()).items.items
    return items


def lease(item: Any) -> dict[str, str]:
    return {"message_id": item.message_id, "lease_token": item.lease_token}


@on_work
async def test_messages_come_and_what_becomes_of_them_goes_back(rig: Rig) -> None:
    await rig.put(b"0", b"1", b"2", b"3", b"4")
    async with rig.working(4) as call:
        done, failed, kept, undelivered = await received(call, 4)
        assert [item.payload for item in (done, failed, kept, undelivered)] == [b"0", b"1", b"2", b"3"]
        settle = proto.Settle(
            number=7,
            acks=[lease(done), {"message_id": "m", "lease_token": "nonsense"}],
            nacks=[lease(failed) | {"reason": "no"}, lease(undelivered) | {"undelivered": True}],
            extensions=[lease(kept) | {"extension": proto.Duration(seconds=900)}],
        )
        await call.write(proto.WorkRequest(settle=settle))
        answer = (await call.read()).settled
        assert (answer.number, answer.acked, answer.nacked, answer.extended, answer.dead_lettered) == (7, 1, 2, 1, 1)
        (refused,) = answer.refused
        assert (refused.message_id, refused.place, refused.code) == ("m", 1, "FAILED_PRECONDITION")
        assert answer.lease_deadline.seconds == rig.server.clock.now_ms() // 1000 + 900
        await call.write(proto.WorkRequest(credits=2))
        again = await received(call, 2)
        assert [(item.payload, item.attempts) for item in again] == [(b"3", 0), (b"4", 0)]


@on_work
async def test_settles_are_answered_in_the_order_they_came(rig: Rig) -> None:
    await rig.put(*(b"%d" % number for number in range(30)))
    async with rig.working(30) as call:
        items = await received(call, 30)
        for number, item in enumerate(items):
            await call.write(proto.WorkRequest(settle=proto.Settle(number=number, acks=[lease(item)])))
        answers = [(await call.read()).settled for _ in items]
        assert [(answer.number, answer.acked) for answer in answers] == [(number, 1) for number in range(30)]


def test_of_too_many_settles_under_way_the_next_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workstream, "SETTLES_MAX", 2)
    test_settles_are_answered_in_the_order_they_came()


@on_work
async def test_who_has_nothing_more_to_say_hears_what_came_of_it_and_the_rest_goes_back(rig: Rig) -> None:
    await rig.put(b"0", b"1")
    async with rig.working(2) as call:
        first, _ = await received(call, 2)
        await call.write(proto.WorkRequest(settle=proto.Settle(acks=[lease(first)])))
        await call.done_writing()
        assert (await call.read()).settled.acked == 1
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
    heap = await rig.heap()
    assert (heap.ready_messages, heap.info.stats.inflight_messages, heap.info.stats.total_nacks) == (1, 0, 0)


@on_work
async def test_who_does_not_read_holds_up_nobody_else(rig: Rig) -> None:
    for _ in range(4):
        await rig.put(*[b"x" * (256 * KIB)] * COUNT)
    async with rig.working(2**32 - 1) as slow, rig.working(1) as other:
        (item,) = await received(other, 1)
        assert len(item.payload) == 256 * KIB
        await other.write(proto.WorkRequest(settle=proto.Settle(acks=[lease(item)])))
        assert (await other.read()).settled.acked == 1
        heap = await rig.heap()
        assert heap.info.stats.inflight_messages < 3 * COUNT, "billions of credits, and no more leased than can be sent"
        held = await received(slow, 4 * COUNT - 1)
        assert len(held) == 4 * COUNT - 1


@on_work
async def test_what_is_no_work_is_refused(rig: Rig) -> None:
    early = calling(rig.channel, HEAPS, "Work")()
    await early.write(proto.WorkRequest(credits=1))
    assert await code_of(early.read()) is grpc.StatusCode.INVALID_ARGUMENT
    async with rig.working() as call:
        await call.write(proto.WorkRequest(open=proto.WorkOpen(topic="more")))
        assert await code_of(call.read()) is grpc.StatusCode.INVALID_ARGUMENT
    nowhere = calling(rig.channel, HEAPS, "Work")()
    await nowhere.write(proto.WorkRequest(open=proto.WorkOpen(topic="nowhere")))
    assert await code_of(nowhere.read()) is grpc.StatusCode.NOT_FOUND
    async with rig.working(1) as waiting:
        drop = proto.DeleteHeapReq(topic="jobs", force=True)
        await calling(rig.channel, DISHEAP, "DeleteHeap")(drop)
        assert await code_of(waiting.read()) is grpc.StatusCode.NOT_FOUND


async def settle_more_than_one_command_may_name(rig: Rig) -> None:
    await rig.put(*(b"%d" % number for number in range(15)))
    async with rig.working(15) as call:
        items = [lease(item) for item in await received(call, 15)]
        settle = proto.Settle(
            number=1,
            acks=[*items[:5], {"message_id": "m", "lease_token": "nonsense"}],
            nacks=[item | {"undelivered": True} for item in items[5:10]],
            extensions=[item | {"extension": proto.Duration(seconds=900)} for item in items[10:]],
        )
        await call.write(proto.WorkRequest(settle=settle))
        answer = (await call.read()).settled
        assert (answer.number, answer.acked, answer.nacked, answer.extended) == (1, 5, 5, 5)
        assert [(refused.message_id, refused.place) for refused in answer.refused] == [("m", 5)]


test_a_settle_takes_more_than_one_command_may_name = on_work(settle_more_than_one_command_may_name, max_claim=2)

BELOW_NOUGHT = proto.Duration(seconds=-1)
TOO_LONG = proto.Duration(seconds=366 * 24 * 60 * 60)


def refused_of(first: Any, second: Any) -> list[Any]:
    """Settles with an ack that could be done, and with a time that no message can have."""
    acks = [lease(first)]
    return [
        *(
            proto.Settle(acks=acks, nacks=[lease(second) | {"backoff_override": bad}])
            for bad in (BELOW_NOUGHT, TOO_LONG)
        ),
        *(proto.Settle(acks=acks, extensions=[lease(second) | {"extension": bad}]) for bad in (BELOW_NOUGHT, TOO_LONG)),
    ]


@on_work
async def test_a_settle_that_is_refused_ends_its_stream(rig: Rig) -> None:
    await rig.put(b"0", b"1")
    for number in range(4):
        async with rig.working(2) as call:
            settle = refused_of(*await received(call, 2))[number]
            await call.write(proto.WorkRequest(settle=settle))
            assert await code_of(call.read()) is grpc.StatusCode.INVALID_ARGUMENT


@on_work
async def test_a_settle_that_is_refused_changes_nothing(rig: Rig) -> None:
    await rig.put(b"0", b"1")
    async with rig.working(2) as call:
        for settle in refused_of(*await received(call, 2)):
            settled = calling(rig.channel, HEAPS, "SettleMany")(proto.SettleReq(topic="jobs", settle=settle))
            assert await code_of(settled) is grpc.StatusCode.INVALID_ARGUMENT
            assert (await rig.heap()).info.stats.inflight_messages == 2
