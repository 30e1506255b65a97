"""A client that protoc makes of the contract, not ours, against a server over a real socket: all it may rely on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc.aio import AioRpcError

from tests.contract.disheapwire import MESSAGES, generated
from topics import testing
from topics.limits import SECOND_MS
from topics.proto.messages import DISHEAP, POOL

GUARD_S = 30

pytestmark = pytest.mark.xdist_group("disheap_wire")


@cache
def client() -> tuple[Any, Any]:
    with TemporaryDirectory() as directory:
        return generated(Path(directory))


class Rig:
    def __init__(self, server: testing.TestServer, channel: Any) -> None:
        self.server = server
        self.channel = channel
        self.pb, stubs = client()
        self.stub = stubs.DisheapStub(channel)

    async def make(self, topic: str = "jobs", **fields: Any) -> Any:
        """With what the existing SDK sends."""
        asked = {
            "partitions": 1,
            "replication_factor": 2,
            "top_k_bound": 100,
            "visibility_timeout_default": seconds(300),
            "max_retries_default": 3,
            "dlq_policy": self.pb.DLQPolicy(enabled=True),
        }
        return await self.stub.MakeHeap(self.pb.MakeHeapReq(topic=topic, **(asked | fields)))

    async def put(self, payload: bytes = b"x", priority: int = 0, topic: str = "jobs", **fields: Any) -> Any:
        return await self.stub.Enqueue(self.pb.EnqueueReq(topic=topic, payload=payload, priority=priority, **fields))

    @asynccontextmanager
    async def popping(self, credits: int, topic: str = "jobs", **fields: Any) -> AsyncIterator[Any]:
        call = self.stub.PopStream()
        await call.write(self.pb.PopOpen(filter=self.pb.PopFilter(topic=topic, **fields)))
        if credits:
            await self.grant(call, credits)
        try:
            yield call
        finally:
            call.cancel()

    async def grant(self, call: Any, credits: int) -> None:
        await call.write(self.pb.PopOpen(flow_control=self.pb.FlowControl(credits=credits)))

    async def pop(self, count: int = 1, topic: str = "jobs") -> list[Any]:
        """Take messages and settle nothing; they go back at the end of the stream, so ack before."""
        async with self.popping(count, topic) as call:
            return [await call.read() for _ in range(count)]

    async def ack(self, item: Any) -> None:
        await self.stub.Ack(self.pb.AckReq(topic=item.topic, message_id=item.message_id, lease_token=item.lease_token))

    async def nack(self, item: Any, **fields: Any) -> None:
        await self.stub.Nack(
            self.pb.NackReq(topic=item.topic, message_id=item.message_id, lease_token=item.lease_token, **fields)
        )

    async def stats(self, topic: str = "jobs") -> Any:
        return (await self.stub.Stats(self.pb.StatsReq(topic=topic))).topic_stats[topic]


def seconds(count: float) -> Duration:
    return Duration(seconds=int(count), nanos=round(count % 1 * 1e9))


def on_wire(scenario: Callable[[Rig], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        async def run() -> None:
            async with (
                asyncio.timeout(GUARD_S),
                testing.server(no_grpc=False) as server,
                grpc.aio.insecure_channel(server.grpc_address) as channel,
            ):
                await scenario(Rig(server, channel))

        asyncio.run(run())

    test.__name__ = scenario.__name__
    return test


@asynccontextmanager
async def refused(code: grpc.StatusCode, *words: str) -> AsyncIterator[None]:
    with pytest.raises(AioRpcError) as failure:
        yield
    assert failure.value.code() is code, failure.value.details()
    said = failure.value.details() or ""
    assert [word for word in words if word not in said] == [], said


def test_our_contract_is_theirs_to_the_last_number() -> None:
    theirs, _ = client()
    for name in MESSAGES:
        expected = getattr(theirs, name).DESCRIPTOR
        found = POOL.FindMessageTypeByName(f"disheap.v1.{name}")
        assert [described(field) for field in found.fields] == [described(field) for field in expected.fields], name
    service = POOL.FindServiceByName(DISHEAP)
    expected_service = theirs.DESCRIPTOR.services_by_name["Disheap"]
    for found_rpc, expected_rpc in zip(service.methods, expected_service.methods, strict=True):
        for part in ("name", "client_streaming", "server_streaming"):
            assert getattr(found_rpc, part) == getattr(expected_rpc, part)
        assert found_rpc.input_type.full_name == expected_rpc.input_type.full_name
        assert found_rpc.output_type.full_name == expected_rpc.output_type.full_name


def described(field: Any) -> tuple[Any, ...]:
    kind = field.message_type.full_name if field.message_type is not None else None
    oneof = field.containing_oneof.name if field.containing_oneof is not None else None
    return field.name, field.number, field.type, field.is_repeated, field.has_presence, kind, oneof


# ---- heaps


@on_wire
async def test_heaps_are_made_listed_changed_and_deleted(rig: Rig) -> None:
    pb, stub = rig.pb, rig.stub
    made = await rig.make("jobs", mode=pb.MAX, partitions=4)
    assert made.topic == "jobs" and made.heap_id
    await rig.make("more")
    async with refused(grpc.StatusCode.ALREADY_EXISTS, "topic", "already exists"):
        await rig.make("jobs")
    first = await stub.ListHeaps(pb.ListHeapsReq(page_size=1))
    assert [info.topic for info in first.heaps] == ["jobs"] and first.next_page_token
    info = first.heaps[0]
    assert (info.mode, info.partitions, info.replication_factor, info.top_k_bound) == (pb.MAX, 4, 2, 100)
    assert (info.visibility_timeout_default.seconds, info.max_retries_default, info.dlq_policy.enabled) == (
        300,
        3,
        True,
    )
    assert info.created_at.seconds == info.updated_at.seconds == rig.server.clock.now_ms() // SECOND_MS
    assert not info.HasField("retention_time")
    second = await stub.ListHeaps(pb.ListHeapsReq(page_size=1, page_token=first.next_page_token))
    assert [info.topic for info in second.heaps] == ["more"]
    await stub.UpdateHeapConfig(
        pb.UpdateHeapConfigReq(topic="jobs", max_retries_default=0, visibility_timeout_default=seconds(1.5))
    )
    (changed, _) = (await stub.ListHeaps(pb.ListHeapsReq())).heaps
    assert changed.max_retries_default == 0 and changed.visibility_timeout_default == seconds(1.5)
    assert changed.max_payload_bytes == info.max_payload_bytes, "what is not named stays"
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "force"):
        await stub.DeleteHeap(pb.DeleteHeapReq(topic="jobs"))
    await stub.DeleteHeap(pb.DeleteHeapReq(topic="jobs", force=True))
    for call in (
        stub.DeleteHeap(pb.DeleteHeapReq(topic="jobs", force=True)),
        stub.Enqueue(pb.EnqueueReq(topic="jobs")),
        stub.Peek(pb.PeekReq(topic="jobs")),
        stub.Stats(pb.StatsReq(topic="jobs")),
    ):
        async with refused(grpc.StatusCode.NOT_FOUND, "topic", "does not exist"):
            await call


@on_wire
async def test_what_makes_no_sense_is_an_invalid_argument(rig: Rig) -> None:
    pb = rig.pb
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "topic"):
        await rig.make("no spaces")
    await rig.make("jobs", max_payload_bytes=10)
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "payload size"):
        await rig.put(b"x" * 11)
    await rig.put(b"x" * 10)
    await rig.put(b"")
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "lease_token"):
        await rig.stub.Ack(pb.AckReq(topic="jobs", message_id="x"))
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "not_before"):
        await rig.put(not_before=Duration(seconds=-1))
    async with rig.popping(0) as call:
        await call.write(pb.PopOpen(filter=pb.PopFilter(topic="jobs")))
        async with refused(grpc.StatusCode.INVALID_ARGUMENT, "filter"):
            await call.read()
    early = rig.stub.PopStream()
    await early.write(pb.PopOpen(flow_control=pb.FlowControl(credits=1)))
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "filter"):
        await early.read()


# ---- messages


@on_wire
async def test_messages_come_best_first_over_all_partitions(rig: Rig) -> None:
    await rig.make("jobs", partitions=5)
    await rig.make("highest", mode=rig.pb.MAX, partitions=3)
    for priority in (5, -3, 9, 0, 2**63 - 1, -(2**63), 7):
        for topic in ("jobs", "highest"):
            await rig.put(b"%d" % priority, priority, topic, partition_key=f"k{priority}")
    found = [item.priority for item in await rig.pop(7)]
    assert found == sorted(found) and len(found) == 7
    assert [item.priority for item in await rig.pop(7, "highest")] == found[::-1]


@on_wire
async def test_among_equals_the_oldest_comes_first(rig: Rig) -> None:
    await rig.make()
    for number in range(5):
        await rig.put(b"%d" % number, 1)
    assert [item.payload for item in await rig.pop(5)] == [b"0", b"1", b"2", b"3", b"4"]


@on_wire
async def test_an_item_says_all_there_is_to_say(rig: Rig) -> None:
    await rig.make(partitions=3)
    put = await rig.put(b"\x00\xff", 4, partition_key="k", producer_id="p", epoch=2, sequence=8, max_retries=6)
    (item,) = await rig.pop()
    assert (item.message_id, item.topic, item.partition_id) == (put.message_id, "jobs", put.partition_id)
    assert (item.payload, item.priority, item.attempts, item.max_retries) == (b"\x00\xff", 4, 0, 6)
    assert (item.producer_id, item.epoch, item.sequence) == ("p", 2, 8)
    now_s = rig.server.clock.now_ms() // SECOND_MS
    assert item.enqueued_time.seconds == now_s and item.lease_deadline.seconds == now_s + 300
    await rig.put(b"plain", 5)
    (_, plain) = await rig.pop(2)
    assert not any(plain.HasField(name) for name in ("producer_id", "epoch", "sequence"))


@on_wire
async def test_credits_are_exact_and_add_up(rig: Rig) -> None:
    await rig.make()
    for number in range(10):
        await rig.put(b"%d" % number, number)
    async with rig.popping(2) as call:
        assert [(await call.read()).priority for _ in range(2)] == [0, 1]
        assert (await rig.stats()).inflight_messages == 2, "no credit, no message"
        await rig.grant(call, 1)
        await rig.grant(call, 3)
        items = [await call.read() for _ in range(4)]
        assert [item.priority for item in items] == [2, 3, 4, 5]
        await rig.ack(items[0])
        stats = await rig.stats()
        assert (stats.inflight_messages, stats.total_messages) == (5, 9), "an ack gives no credit back"


@on_wire
async def test_a_stream_may_be_narrowed_to_partitions_and_have_its_own_time(rig: Rig) -> None:
    await rig.make(partitions=4)
    places = {
        number: (await rig.put(b"%d" % number, number, partition_key=str(number))).partition_id for number in range(40)
    }
    chosen = [number for number, place in places.items() if place in (1, 3)]
    async with rig.popping(len(chosen), partition_ids=[1, 3], visibility_timeout=seconds(7)) as call:
        items = [await call.read() for _ in chosen]
        assert [item.priority for item in items] == chosen
        assert {item.lease_deadline.seconds for item in items} == {rig.server.clock.now_ms() // SECOND_MS + 7}


@on_wire
async def test_what_a_closed_stream_held_goes_back_at_once_without_an_attempt(rig: Rig) -> None:
    await rig.make()
    for number in range(3):
        await rig.put(b"%d" % number, number)
    async with rig.popping(3) as call:
        items = [await call.read() for _ in range(3)]
        await rig.ack(items[1])
    again = await rig.pop(2)
    assert [(item.payload, item.attempts) for item in again] == [(b"0", 0), (b"2", 0)]
    assert again[0].lease_token != items[0].lease_token
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "lease"):
        await rig.ack(items[0])


@on_wire
async def test_a_message_that_is_not_there_yet_is_delivered_when_it_comes(rig: Rig) -> None:
    await rig.make()
    async with rig.popping(2) as call:
        reading = asyncio.ensure_future(call.read())
        await rig.put(b"late", not_before=seconds(10))
        await rig.put(b"now", 5)
        assert (await reading).payload == b"now"
        reading = asyncio.ensure_future(call.read())
        rig.server.pass_time(9_999)
        await rig.stats()
        assert not reading.done(), "not a millisecond early"
        rig.server.pass_time(1)
        assert (await reading).payload == b"late"


@on_wire
async def test_acks_are_once_and_need_the_token(rig: Rig) -> None:
    await rig.make()
    await rig.put(b"one")
    async with rig.popping(1) as call:
        item = await call.read()
        wrong = rig.pb.AckReq(topic="jobs", message_id=item.message_id, lease_token="nonsense")
        async with refused(grpc.StatusCode.FAILED_PRECONDITION, "lease"):
            await rig.stub.Ack(wrong)
        await rig.ack(item)
        async with refused(grpc.StatusCode.FAILED_PRECONDITION, "lease"):
            await rig.ack(item)
    assert (await rig.stats()).total_messages == 0


@on_wire
async def test_a_nacked_message_rests_and_counts(rig: Rig) -> None:
    await rig.make()
    await rig.put(b"one")
    async with rig.popping(1) as call:
        item = await call.read()
        await rig.nack(item, backoff_override=seconds(20), reason="not today")
        await rig.grant(call, 1)
        reading = asyncio.ensure_future(call.read())
        rig.server.pass_time(19_999)
        await rig.stats()
        assert not reading.done()
        rig.server.pass_time(1)
        again = await reading
        assert (again.message_id, again.attempts) == (item.message_id, 1)


@on_wire
async def test_extend_finds_the_lease_by_its_token_alone(rig: Rig) -> None:
    await rig.make()
    await rig.put(b"one")
    async with rig.popping(1) as call:
        item = await call.read()
        rig.server.pass_time(299_000)
        await rig.stub.Extend(rig.pb.ExtendReq(topic="jobs", lease_token=item.lease_token, extension=seconds(60)))
        rig.server.pass_time(59_000)
        assert (await rig.stats()).inflight_messages == 1, "from now on, not from the old deadline"
        await rig.ack(item)
        async with refused(grpc.StatusCode.FAILED_PRECONDITION, "lease"):
            await rig.stub.Extend(rig.pb.ExtendReq(topic="jobs", lease_token=item.lease_token, extension=seconds(60)))


@on_wire
async def test_a_lease_that_runs_out_costs_an_attempt(rig: Rig) -> None:
    await rig.make(visibility_timeout_default=seconds(1))
    await rig.put(b"one")
    async with rig.popping(2) as call:
        item = await call.read()
        reading = asyncio.ensure_future(call.read())
        # The lease, and the longest that the first rest may be.
        rig.server.pass_time(1_001)
        rig.server.pass_time(1_000)
        again = await reading
        assert (again.message_id, again.attempts) == (item.message_id, 1)
        async with refused(grpc.StatusCode.FAILED_PRECONDITION, "lease"):
            await rig.ack(item)
        assert (await rig.stats()).total_timeouts == 1


@on_wire
async def test_a_message_that_fails_too_often_is_a_dead_letter(rig: Rig) -> None:
    await rig.make(max_retries_default=1)
    put = await rig.put(b"poison", 3)
    await rig.put(b"fine", 9)
    async with rig.popping(1) as call:
        for attempts in (0, 1):
            item = await call.read()
            assert (item.payload, item.attempts, item.max_retries) == (b"poison", attempts, 1)
            await rig.nack(item, backoff_override=seconds(0), reason="no")
            await rig.grant(call, 1)
        assert (await call.read()).payload == b"fine", "two deliveries, and no third"
    stats = await until(rig, lambda stats: stats.dlq_messages == 1)
    assert stats.total_nacks == 2
    without = await rig.stub.Peek(rig.pb.PeekReq(topic="jobs"))
    assert [item.payload for item in without.items] == [b"fine"]
    shown = await rig.stub.Peek(rig.pb.PeekReq(topic="jobs", include_dlq=True))
    (dead,) = [item for item in shown.items if item.in_dlq]
    assert (dead.payload, dead.message_id, dead.priority) == (b"poison", put.message_id, 3)


async def until(rig: Rig, holds: Callable[[Any], bool]) -> Any:
    while not holds(stats := await rig.stats()):
        await asyncio.sleep(0)
    return stats


@on_wire
async def test_a_message_is_moved_to_the_dead_letters_by_hand(rig: Rig) -> None:
    await rig.make()
    put = await rig.put(b"bad")
    await rig.stub.MoveToDLQ(rig.pb.MoveToDlqReq(topic="jobs", message_id=put.message_id, reason="by hand"))
    assert (await until(rig, lambda stats: stats.dlq_messages == 1)).total_messages == 0
    async with refused(grpc.StatusCode.NOT_FOUND, "does not exist"):
        await rig.stub.MoveToDLQ(rig.pb.MoveToDlqReq(topic="jobs", message_id=put.message_id))


# ---- once, together


@on_wire
async def test_a_message_is_enqueued_once(rig: Rig) -> None:
    await rig.make(partitions=4)
    first = await rig.put(b"one", producer_id="p", epoch=1, sequence=7)
    again = await rig.put(b"one", producer_id="p", epoch=1, sequence=7)
    assert (first.duplicate, again.duplicate) == (False, True)
    assert (again.message_id, again.partition_id) == (first.message_id, first.partition_id)
    assert not (await rig.put(b"two", producer_id="p", epoch=1, sequence=8)).duplicate
    assert not (await rig.put(b"three", producer_id="p", epoch=2, sequence=7)).duplicate
    async with refused(grpc.StatusCode.FAILED_PRECONDITION):
        await rig.put(b"late", producer_id="p", epoch=1, sequence=9)
    assert (await rig.stats()).total_messages == 3


@on_wire
async def test_a_batch_is_all_or_nothing_and_once(rig: Rig) -> None:
    pb = rig.pb
    await rig.make("jobs", partitions=3)
    await rig.make("more")
    requests = [
        pb.EnqueueReq(topic="jobs", payload=b"%d" % number, priority=number, partition_key=str(number))
        for number in range(9)
    ]
    bad = pb.EnqueueBatchReq(requests=[*requests, pb.EnqueueReq(topic="nowhere")])
    async with refused(grpc.StatusCode.NOT_FOUND, "topic", "does not exist"):
        await rig.stub.EnqueueBatch(bad)
    assert (await rig.stats()).total_messages == 0
    good = pb.EnqueueBatchReq(requests=[*requests, pb.EnqueueReq(topic="more", payload=b"m")], transaction_id="t1")
    done = await rig.stub.EnqueueBatch(good)
    assert done.transaction_id == "t1" and not done.all_duplicates and len(done.responses) == 10
    again = await rig.stub.EnqueueBatch(good)
    assert [each.message_id for each in again.responses] == [each.message_id for each in done.responses]
    assert again.transaction_id == "t1"
    assert ((await rig.stats()).total_messages, (await rig.stats("more")).total_messages) == (9, 1)
    assert [item.priority for item in await rig.pop(9)] == list(range(9))


# ---- looking, emptying


@on_wire
async def test_peeking_takes_nothing(rig: Rig) -> None:
    await rig.make(partitions=2)
    for number in (3, 1, 2):
        await rig.put(b"%d" % number, number)
    async with rig.popping(1) as call:
        await call.read()
        shown = await rig.stub.Peek(rig.pb.PeekReq(topic="jobs", limit=2))
        assert [item.priority for item in shown.items] == [2, 3] and shown.has_more
        everything = (await rig.stub.Peek(rig.pb.PeekReq(topic="jobs", limit=10))).items
        leased = [item for item in everything if item.is_leased]
        assert [item.priority for item in leased] == [1] and leased[0].HasField("lease_deadline")
    assert (await rig.stats()).inflight_messages == 0


@on_wire
async def test_numbers_are_told_for_each_heap_and_partition_and_for_all(rig: Rig) -> None:
    pb = rig.pb
    await rig.make("jobs", partitions=2)
    await rig.make("more")
    for number in range(4):
        await rig.put(b"%d" % number, partition_key=str(number))
    await rig.put(topic="more")
    async with rig.popping(2) as call:
        for item in [await call.read() for _ in range(2)]:
            await rig.ack(item)
    everything = await rig.stub.Stats(pb.StatsReq())
    assert set(everything.topic_stats) == {"jobs", "more"}
    assert everything.global_stats.total_messages == 3 and everything.global_stats.total_enqueues == 5
    stats = everything.topic_stats["jobs"]
    assert (stats.total_messages, stats.total_pops, stats.total_acks) == (2, 2, 2)
    assert set(stats.partition_stats) == {0, 1}
    assert all(part.is_healthy and part.partition_id == number for number, part in stats.partition_stats.items())
    assert sum(part.messages for part in stats.partition_stats.values()) == 2
    one = await rig.stub.Stats(pb.StatsReq(topic="jobs", partition_id=1))
    assert set(one.topic_stats["jobs"].partition_stats) == {1}


@on_wire
async def test_purging_needs_force_and_takes_leased_messages_too(rig: Rig) -> None:
    pb = rig.pb
    await rig.make()
    for _ in range(3):
        await rig.put()
    async with rig.popping(1) as call:
        item = await call.read()
        async with refused(grpc.StatusCode.FAILED_PRECONDITION, "force"):
            await rig.stub.Purge(pb.PurgeReq(topic="jobs"))
        await rig.stub.Purge(pb.PurgeReq(topic="jobs", force=True))
        async with refused(grpc.StatusCode.FAILED_PRECONDITION, "lease"):
            await rig.ack(item)
    assert (await rig.stats()).total_messages == 0
