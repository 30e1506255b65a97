"""The door itself: keys, health, reflection, TLS, a port that is taken, and how it closes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
import pytest
from grpc.aio import AioRpcError
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.client.rig import on_loop
from tests.server.grpc.certificates import certificate
from topics import testing
from topics.core.records import DEFAULT_LIMITS
from topics.errors import InvalidSetting
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP, HEAPS, methods_of
from topics.server.app import Server
from topics.server.context import Context
from topics.server.grpc import listener
from topics.settings import Settings
from topics.testing import SimClock


def calling(channel: Any, service: str, name: str) -> Any:
    method = methods_of(service)[name]
    make = channel.stream_stream if method.client_streams else channel.unary_unary
    return make(method.path, method.request.SerializeToString, method.response.FromString)


async def code_of(call: Any) -> grpc.StatusCode:
    try:
        await call
    except AioRpcError as failure:
        code = failure.code()
        assert isinstance(code, grpc.StatusCode)
        return code
    return grpc.StatusCode.OK


@on_loop
async def test_keys_travel_as_metadata_in_either_way() -> None:
    keys = "dh_boss,dh.reader:read:a.,writer:rw:a."
    async with (
        testing.server(no_grpc=False, api_keys=keys) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        make, listed = calling(channel, DISHEAP, "MakeHeap"), calling(channel, DISHEAP, "ListHeaps")
        request = proto.MakeHeapReq(topic="a.jobs")
        unknown = grpc.StatusCode.UNAUTHENTICATED
        assert await code_of(make(request)) is unknown
        for wrong in (("authorization", "Bearer nobody"), ("authorization", "dh_boss"), ("x-api-key", "nobody")):
            assert await code_of(make(request, metadata=(wrong,))) is unknown
        both = (("authorization", "Bearer nobody"), ("x-api-key", "dh_boss"))
        assert await code_of(make(request, metadata=both)) is unknown, "the header that says most counts"
        assert await code_of(make(request, metadata=(("authorization", "bearer dh_boss"),))) is grpc.StatusCode.OK
        assert await code_of(make(proto.MakeHeapReq(topic="b.jobs"), metadata=(("x-api-key", "dh_boss"),))) is (
            grpc.StatusCode.OK
        )
        reader = (("x-api-key", "dh.reader"),)
        assert [heap.topic for heap in (await listed(proto.ListHeapsReq(), metadata=reader)).heaps] == ["a.jobs"]
        enqueue = calling(channel, DISHEAP, "Enqueue")
        forbidden = grpc.StatusCode.PERMISSION_DENIED
        assert await code_of(enqueue(proto.EnqueueReq(topic="a.jobs"), metadata=reader)) is forbidden
        writer = (("x-api-key", "writer"),)
        assert await code_of(enqueue(proto.EnqueueReq(topic="b.jobs"), metadata=writer)) is forbidden
        assert await code_of(enqueue(proto.EnqueueReq(topic="a.jobs"), metadata=writer)) is grpc.StatusCode.OK
        pops = calling(channel, DISHEAP, "PopStream")(metadata=writer)
        await pops.write(proto.PopOpen(filter=proto.PopFilter(topic="b.jobs")))
        assert await code_of(pops.read()) is forbidden
        assert await code_of(calling(channel, DISHEAP, "PopStream")(metadata=reader).read()) is forbidden


@on_loop
async def test_health_and_reflection_tell_what_is_there() -> None:
    async with (
        testing.server(no_grpc=False, api_keys="key") as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", DISHEAP, HEAPS):
            told = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert told.status == health_pb2.HealthCheckResponse.SERVING, "probes bring no key"
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = (await call.read()).list_services_response.service
        assert {DISHEAP, HEAPS, "grpc.health.v1.Health"} <= {service.name for service in listed}
        for symbol in (DISHEAP, "topics.v1.Settle", "grpc.health.v1.Health"):
            await call.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol))
            assert (await call.read()).file_descriptor_response.file_descriptor_proto
        call.cancel()


@on_loop
async def test_a_port_that_is_taken_is_told_before_anything_is_touched(tmp_path: Path) -> None:
    async with testing.server(no_grpc=False) as other:
        port = int(other.grpc_address.rpartition(":")[2])
        settings = Settings(data_dir=str(tmp_path / "data"), port=0, grpc_port=port)
        with pytest.raises(InvalidSetting, match=rf"port {port} for gRPC.*--no-grpc"):
            await Server(settings, SimClock()).start()
    assert not (tmp_path / "data").exists()


def _metrics(url: str) -> str:
    with urlopen(f"{url}/v0/metrics") as answer:
        return str(answer.read(), "utf-8")


@on_loop
async def test_a_stop_ends_streams_and_lets_calls_finish() -> None:
    async with testing.server(no_grpc=False) as server, grpc.aio.insecure_channel(server.grpc_address) as channel:
        await calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic="jobs"))
        await calling(channel, DISHEAP, "Enqueue")(proto.EnqueueReq(topic="jobs", payload=b"x"))
        pops = calling(channel, DISHEAP, "PopStream")()
        await pops.write(proto.PopOpen(filter=proto.PopFilter(topic="jobs")))
        await pops.write(proto.PopOpen(flow_control=proto.FlowControl(credits=5)))
        assert (await pops.read()).payload == b"x"
        work = calling(channel, HEAPS, "Work")()
        await work.write(proto.WorkRequest(open=proto.WorkOpen(topic="jobs")))
        await work.read()
        waiting = asyncio.ensure_future(code_of(calling(channel, HEAPS, "Pop")(_waiting())))
        reading = [asyncio.ensure_future(code_of(call.read())) for call in (pops, work)]
        # A call that has not come in yet is not one that is under way.
        while "topics_heap_pops_waiting 1" not in await asyncio.to_thread(_metrics, server.url):
            await asyncio.sleep(0)
        await server.stop()
        assert [await each for each in reading] == [grpc.StatusCode.UNAVAILABLE] * 2
        assert await waiting in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE)
        await server.start()
        again = calling(channel, DISHEAP, "PopStream")()
        await again.write(proto.PopOpen(filter=proto.PopFilter(topic="jobs")))
        await again.write(proto.PopOpen(flow_control=proto.FlowControl(credits=1)))
        item = await again.read()
        assert (item.payload, item.attempts) == (b"x", 0), "a clean stop gives leases back"
        again.cancel()


@on_loop
async def test_streams_of_a_key_are_bounded() -> None:
    caps = {"api_keys": "one,two", "max_sse_connections_per_key": 1}
    async with (
        testing.server(no_grpc=False, **caps) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        one, two = (("x-api-key", "one"),), (("x-api-key", "two"),)
        await calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic="jobs"), metadata=one)

        async def opened(metadata: Any) -> Any:
            call = calling(channel, HEAPS, "Work")(metadata=metadata)
            await call.write(proto.WorkRequest(open=proto.WorkOpen(topic="jobs")))
            return call

        first = await opened(one)
        await first.read()
        assert await code_of((await opened(one)).read()) is grpc.StatusCode.RESOURCE_EXHAUSTED
        await (await opened(two)).read()
        await first.done_writing()
        assert await first.read() is grpc.aio.EOF
        await (await opened(one)).read()


@on_loop
async def test_calls_of_all_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "GRPC_CALLS_MAX", 1)
    async with (
        testing.server(no_grpc=False, max_sse_connections=1) as server,
        grpc.aio.insecure_channel(server.grpc_address, [("grpc.enable_retries", 0)]) as channel,
    ):
        await calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic="jobs"))
        pop = calling(channel, HEAPS, "Pop")
        waiting = [asyncio.create_task(code_of(pop(_waiting()))) for _ in range(3)]
        done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=30)
        assert {task.result() for task in done} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert len(others) == 2
        for task in others:
            task.cancel()
        await asyncio.wait(others)


@on_loop
async def test_calls_beyond_what_a_connection_may_have_wait_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that keeps to the bound is never refused, also when many calls end at once and others begin."""
    monkeypatch.setattr(listener, "STREAMS_PER_CONNECTION_MAX", 10)
    async with (
        testing.server(no_grpc=False) as server,
        grpc.aio.insecure_channel(server.grpc_address, [("grpc.enable_retries", 0)]) as channel,
    ):
        await calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic="jobs"))
        enqueue = calling(channel, DISHEAP, "Enqueue")
        codes = await asyncio.gather(*(code_of(enqueue(proto.EnqueueReq(topic="jobs"))) for _ in range(200)))
        assert set(codes) == {grpc.StatusCode.OK}


def _waiting() -> Any:
    return proto.PopReq(topic="jobs", wait_time=proto.Duration(seconds=20))


@on_loop
async def test_tls_by_settings(tmp_path: Path) -> None:
    key, chain = certificate(tmp_path)
    tls = {"grpc_tls_cert": str(chain), "grpc_tls_key": str(key)}
    async with testing.server(no_grpc=False, **tls) as server:
        port = server.grpc_address.rpartition(":")[2]
        credentials = grpc.ssl_channel_credentials(chain.read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
            made = await calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic="jobs"))
            assert made.topic == "jobs"
        async with server.client(grpc=f"localhost:{port}", grpc_ca=chain.read_bytes()) as client:
            assert (await client.heap("jobs").info()).topic == "jobs"
        async with grpc.aio.insecure_channel(f"localhost:{port}") as plain:
            call = calling(plain, DISHEAP, "ListHeaps")(proto.ListHeapsReq(), timeout=5)
            assert await code_of(call) is grpc.StatusCode.UNAVAILABLE


@on_loop
async def test_tls_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    half = Settings(data_dir=str(tmp_path), port=0, grpc_port=0, grpc_tls_cert=str(tmp_path / "cert.pem"))
    with pytest.raises(InvalidSetting, match="both TOPICS_GRPC_TLS_CERT and TOPICS_GRPC_TLS_KEY"):
        await Server(half, SimClock()).start()
    nowhere = Settings(
        data_dir=str(tmp_path), port=0, grpc_port=0, grpc_tls_cert="/nowhere/c.pem", grpc_tls_key="/nowhere/k.pem"
    )
    with pytest.raises(InvalidSetting, match=r"TOPICS_GRPC_TLS_KEY=/nowhere/k\.pem: No such file"):
        await Server(nowhere, SimClock()).start()


@on_loop
async def test_tls_of_clients_whom_an_authority_vouches_for(tmp_path: Path) -> None:
    key, chain = certificate(tmp_path)
    tls = {"grpc_tls_cert": str(chain), "grpc_tls_key": str(key), "grpc_tls_client_ca": str(chain)}
    async with testing.server(no_grpc=False, **tls) as server:
        port = server.grpc_address.rpartition(":")[2]
        root = chain.read_bytes()
        for credentials, code in (
            (grpc.ssl_channel_credentials(root, key.read_bytes(), root), grpc.StatusCode.OK),
            (grpc.ssl_channel_credentials(root), grpc.StatusCode.UNAVAILABLE),
        ):
            async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
                call = calling(channel, DISHEAP, "ListHeaps")(proto.ListHeapsReq(), timeout=5)
                assert await code_of(call) is code


@on_loop
async def test_a_door_that_was_never_open_closes_at_once() -> None:
    context = Context(Settings(), DEFAULT_LIMITS, SimClock(), 0)
    await listener.GrpcListener(context).stop(60)
