"""A gRPC server whose `Work` does what a test tells it: every stream is handed to the next script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

import topics
from topics.proto import messages as proto
from topics.proto.messages import HEAPS, methods_of

Script = Callable[["Side"], Awaitable[None]]


class Side:
    """The server's side of one stream."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def heard(self, kind: str) -> Any:
        """The next request, which is of this kind."""
        request = await self._call.read()
        assert request.WhichOneof("kind") == kind, request
        return getattr(request, kind)

    async def say(self, **answer: Any) -> None:
        await self._call.write(proto.WorkResponse(**answer))

    async def open(self) -> None:
        await self.heard("open")
        await self.say(opened=proto.WorkOpened(visibility_timeout={"seconds": 60}))

    async def deliver(self, *ids: str) -> None:
        """Messages for the credits that come."""
        await self.heard("credits")
        items = [proto.Message(message_id=each, lease_token=f"lease-{each}", payload=each.encode()) for each in ids]
        await self.say(items=proto.WorkItems(items=items))

    async def fail(self, code: grpc.StatusCode, words: str) -> None:
        await self._call.abort(code, words)

    async def ended(self) -> None:
        """Waits for the client to end the stream."""
        while await self._call.read() is not grpc.aio.EOF:
            continue


@asynccontextmanager
async def scripted(*scripts: Script, timeout_ms: int = 60_000) -> AsyncIterator[topics.Client]:
    """A client of the server; streams get the scripts in turn, further ones the last."""
    left = list(scripts)
    work = methods_of(HEAPS)["Work"]

    async def serve(_: Any, call: Any) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(Side(call))

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(serve, work.request.FromString, work.response.SerializeToString)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(HEAPS, {"Work": handler})])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with topics.connect(grpc=f"127.0.0.1:{port}", attempts_max=1, timeout_ms=timeout_ms) as client:
            yield client
    finally:
        await server.stop(None)
