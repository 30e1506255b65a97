"""Every rpc by everybody who has a key, as the services themselves say what each takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc.aio import AioRpcError
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from tests.client.rig import on_loop, soon
from tests.security.askers import NAME, STATIC_KEYS, Asker, everybody
from tests.security.counting import Count
from tests.server.accountrig import accounts_served
from topics import testing
from topics.proto.messages import DISHEAP, HEAPS, Method, methods_of
from topics.server.grpc.disheap import Disheap
from topics.server.grpc.heaps import Heaps

NOBODY: Any = None
SERVED = {DISHEAP: Disheap(NOBODY, NOBODY).served(), HEAPS: Heaps(NOBODY, NOBODY).served()}
CODES = {401: grpc.StatusCode.UNAUTHENTICATED, 403: grpc.StatusCode.PERMISSION_DENIED}
BUGS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNIMPLEMENTED}


def about_ours(message: Any, topic: str) -> bool:
    """Say a name of ours wherever a request has room for one; whether there was any."""
    named = False
    for field in message.DESCRIPTOR.fields:
        if field.name == "topic":
            message.topic = topic
            named = True
        elif field.message_type is not None and "topic" in field.message_type.fields_by_name:
            place = getattr(message, field.name)
            named |= about_ours(place.add() if hasattr(place, "add") else place, topic)
    return named


async def code_of(channel: Any, method: Method, request: Any, asker: Asker) -> grpc.StatusCode:
    metadata = tuple((name.lower(), value) for name, value in asker.headers.items())
    codec = (method.request.SerializeToString, method.response.FromString)
    try:
        if method.client_streams:
            call = channel.stream_stream(method.path, *codec)(metadata=metadata)
            await soon(call.write(request))
            await soon(call.read())
            call.cancel()
        else:
            await soon(channel.unary_unary(method.path, *codec)(request, metadata=metadata))
    except AioRpcError as error:
        found = error.code()
        assert isinstance(found, grpc.StatusCode)
        return found
    return grpc.StatusCode.OK


@on_loop
async def test_every_service_is_in_the_matrix() -> None:
    """By what the server says of itself: whatever is served beside these is for anybody, and knows nothing."""
    async with (
        testing.server(no_grpc=False) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await soon(call.write(asked))
        found = {each.name for each in (await soon(call.read())).list_services_response.service}
        call.cancel()
    assert found == {*SERVED, health.SERVICE_NAME, reflection.SERVICE_NAME}


@on_loop
async def test_every_rpc_by_everybody(tmp_path: Path, record_property: Count) -> None:
    surprises = []
    count = 0
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS, no_grpc=None, grpc_port="0") as served:
        # People have cookies, which gRPC knows nothing of.
        askers = [asker for asker in await everybody(served) if "Cookie" not in asker.headers]
        async with grpc.aio.insecure_channel(served.server.grpc_address) as channel:
            for service, scopes in SERVED.items():
                assert methods_of(service).keys() == scopes.keys()
                for name, method in methods_of(service).items():
                    request = method.request()
                    # A stream of a heap that is there would wait for messages.
                    named = about_ours(request, f"{NAME}.none" if method.client_streams else NAME)
                    for asker in askers:
                        count += 1
                        expected = asker.expected("POST", scopes[name].scope, named)
                        found = await code_of(channel, method, request, asker)
                        good = found not in {*CODES.values(), *BUGS} if expected is None else found is CODES[expected]
                        if not good:
                            surprises.append(f"{method.path} by {asker.name}: {found}, expected {expected or 'let in'}")
    if surprises:
        pytest.fail("\n".join(surprises))
    assert count > 300
    record_property("rpcs", sum(map(len, SERVED.values())))
    record_property("asked", count)
