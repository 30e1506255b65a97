"""The contract of heaps over gRPC: numbers of one, of a part, and of all that a key may see."""

from __future__ import annotations

import grpc

from tests.client.rig import on_loop
from tests.server.grpc.test_calls import refusal
from tests.server.grpc.test_listener import calling
from topics import testing
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP


@on_loop
async def test_numbers_of_all_are_of_those_that_a_key_may_see() -> None:
    async with (
        testing.server(no_grpc=False, api_keys="boss,reader:read:a.") as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        boss, reader = (("x-api-key", "boss"),), (("x-api-key", "reader"),)
        for topic in ("a.jobs", "b.jobs"):
            await calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic=topic), metadata=boss)
            await calling(channel, DISHEAP, "Enqueue")(proto.EnqueueReq(topic=topic), metadata=boss)
        stats = calling(channel, DISHEAP, "Stats")
        everything = await stats(proto.StatsReq(), metadata=boss)
        assert set(everything.topic_stats) == {"a.jobs", "b.jobs"} and everything.global_stats.total_messages == 2
        own = await stats(proto.StatsReq(), metadata=reader)
        assert set(own.topic_stats) == {"a.jobs"} and own.global_stats.total_messages == 1
        code, ours, words = await refusal(stats(proto.StatsReq(partition_id=0), metadata=boss))
        assert (code, ours) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_request")
        assert words == "partition_id takes a topic to be of"
