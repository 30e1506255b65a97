"""A client of several servers, some of them away: which calls go elsewhere, and how a consumer goes on."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import grpc
import pytest

import topics
from tests.client.rig import closed_port, on_loop
from topics import errors, testing
from topics.client.caller import CallOptions, may_pass
from topics.client.grpc.endpoints import Endpoints, error_of

OPTIONS = CallOptions(
    timeout_ms=1000, connect_timeout_ms=1000, read_timeout_ms=1000, attempts_max=1, connections_max=1, compress=False
)


@on_loop
async def test_a_call_goes_to_whoever_answers() -> None:
    async with testing.server(no_grpc=False) as server:
        how = {"grpc": [closed_port(), f"grpc://{server.grpc_address}", closed_port()]}
        async with server.client(**how) as client:
            heap = client.heap("jobs")
            await heap.create()
            await heap.enqueue("one")
            async for message in heap.pop():
                async with message:
                    assert message.data == "one"
                break
            assert (await heap.stats()).total_acks == 1


def test_who_fails_late_takes_nobody_back() -> None:
    endpoints = Endpoints(["one:1", "two:2", "three:3"], None, OPTIONS)
    for failed in (0, 1, 0):
        endpoints.go_on(failed)
    assert endpoints._place == 2
    endpoints.go_on(2)
    assert endpoints._place == 0, "behind the last one comes the first"


@on_loop
async def test_nobody_there_is_a_connection_that_failed() -> None:
    async with topics.connect(grpc=f"{closed_port()},{closed_port()}", attempts_max=2) as client:
        with pytest.raises(
            errors.ConnectionFailed, match=r"cannot connect to 127\..*; is gRPC served there\?"
        ) as failed:
            await client.heap("jobs").info()
        assert failed.value.detail["sent"] is False


@on_loop
async def test_a_consumer_goes_on_when_its_server_is_back() -> None:
    async with testing.server(no_grpc=False) as server, server.client(grpc=server.grpc_address) as client:
        heap = client.heap("jobs")
        await heap.create(partitions=2)
        await heap.enqueue_many([{"payload": number, "priority": number} for number in range(3)])
        async with aclosing(heap.pop(prefetch=2)) as messages:
            first, second = await anext(messages), await anext(messages)
            assert await first.ack()
            await server.stop()
            assert await second.ack() is False, "its stream is over, so somebody else gets it"
            await server.start()
            found = [(message.data, message.attempts) for message in (await anext(messages), await anext(messages))]
            assert found == [(1, 0), (2, 0)]
            assert second.lost


@on_loop
async def test_leases_are_kept_while_somebody_works() -> None:
    async with testing.server(no_grpc=False) as server, server.client(grpc=server.grpc_address) as client:
        heap = client.heap("jobs")
        await heap.create(lease_ms=100)
        await heap.enqueue("slow")
        async with aclosing(heap.pop()) as messages:
            message = await anext(messages)
            before_ms = message.deadline_ms
            server.clock.advance(30)
            async with message:
                while message.deadline_ms == before_ms:
                    await asyncio.sleep(0)
            assert message.settled and not message.lost
        assert (await heap.stats()).total_acks == 1


@on_loop
async def test_errors_are_those_of_the_server() -> None:
    async with testing.server(no_grpc=False, api_keys="boss,reader:read") as server:
        async with server.client("reader", grpc=server.grpc_address) as client:
            with pytest.raises(errors.Forbidden, match="scope admin"):
                await client.heap("jobs").create()
            with pytest.raises(errors.TopicNotFound, match="does not exist") as missing:
                await client.heap("jobs").info()
            assert missing.value.detail == {"topic": "jobs"}
        async with server.client("nobody", grpc=server.grpc_address) as client:
            with pytest.raises(errors.Unauthorized):
                await anext(client.heap("jobs").pop())


@pytest.mark.parametrize("endpoint", ["", "localhost", "localhost:", ":4001", "localhost:port", "http://x"])
def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="not where gRPC is"):
        topics.connect(grpc=[endpoint])


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses", errors.ConnectionFailed),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", errors.ConnectionFailed),
        (grpc.StatusCode.UNKNOWN, "Stream removed", errors.ConnectionFailed),
        (grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2", errors.ConnectionFailed),
        (grpc.StatusCode.CANCELLED, "RST_STREAM", errors.ConnectionFailed),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", errors.TimedOut),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max", errors.PayloadTooLarge),
        (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", errors.NotInstalled),
    ],
)
def test_what_the_core_says_itself_is_about_the_connection(
    code: grpc.StatusCode, words: str, kind: type[errors.TopicsError]
) -> None:
    error = error_of(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), words), "one:1")
    assert type(error) is kind and words in error.message
    if isinstance(error, errors.Unavailable):
        assert error.detail["sent"] is ("connect" not in words)
        assert may_pass(error), "a consumer goes on"


def test_what_the_server_says_is_told_by_its_code() -> None:
    trailing = grpc.aio.Metadata(("topics-code", "damaged"), ("topics-detail-bin", b'{"file":"x"}'))
    failure = grpc.aio.AioRpcError(grpc.StatusCode.DATA_LOSS, grpc.aio.Metadata(), trailing, "bad bytes")
    error = error_of(failure, "one:1")
    assert type(error) is errors.Damaged and error.detail == {"file": "x"}
    strange = grpc.aio.Metadata(("topics-code", "new_code"))
    later = error_of(
        grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, grpc.aio.Metadata(), strange, "of a later version"), "one:1"
    )
    assert type(later) is errors.NotFound
