"""A `Work` stream as a client has it: credits and settles go out, messages and answers come in.

One task reads. What it reads are messages, which are told at once because their leases run, and the answers to settles,
in the order these were sent; each has somebody waiting for it. Writes go out one after the other, as gRPC wants it, and
credits that were granted meanwhile go out together.

When the stream breaks, so do the leases of all that came on it: the server gives the messages to others. Whoever waits
for an answer is told that they are lost, which may also mean that they were settled a moment before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import grpc

from topics.client.grpc import values
from topics.client.grpc.endpoints import Broken, Endpoints
from topics.client.grpc.fitting import fitting
from topics.client.heaptransport import Arrived, NackRequest, PopRequest
from topics.errors import ConnectionFailed, ShuttingDown, TimedOut, TopicsError
from topics.heapmodel import AckedMessages, ExtendedLeases, LeaseRef, NackedMessages
from topics.limits import SECOND_MS
from topics.proto import messages as proto


class WorkStream:
    """A `HeapStream`."""

    def __init__(self, endpoints: Endpoints, topic: str, request: PopRequest) -> None:
        self._endpoints = endpoints
        self._topic = topic
        self._request = request
        self._call: Any = None
        self._broken: Broken
        self._arrived: Arrived = lambda messages: None
        self._news = asyncio.Event()
        self._answers: deque[asyncio.Future[Any]] = deque()
        self._credits = 0
        self._writing = asyncio.Lock()
        self._granting: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._error: TopicsError | None = None

    async def open(self, arrived: Arrived) -> int:
        self._arrived = arrived
        opening = fitting(
            proto.WorkOpen,
            topic=self._topic,
            partition_ids=self._request.partitions,
            visibility_timeout=values.visibility(self._request),
        )
        self._call, self._broken = self._endpoints.stream("Heaps.Work", self._request.consumer)
        timeout_ms = self._endpoints.timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / SECOND_MS):
                await self._write(proto.WorkRequest(open=opening))
                first = await self._call.read()
                if first is grpc.aio.EOF:
                    raise await self._ending()
        except grpc.aio.AioRpcError as failure:
            raise self._broken(failure) from None
        except TimeoutError:
            raise TimedOut(f"no stream of messages was opened within {timeout_ms} ms", sent=True) from None
        self._endpoints.reached = True
        self._reading = asyncio.create_task(self._read(), name="topics work")
        return values.milliseconds(first.opened.visibility_timeout)

    # ---- messages

    def grant(self, credits: int) -> None:
        self._credits += credits
        if self._granting is None and self._error is None and self._call is not None:
            self._granting = asyncio.create_task(self._grant(), name="topics credits")

    async def _grant(self) -> None:
        try:
            while self._credits:
                count, self._credits = self._credits, 0
                await self._write(proto.WorkRequest(credits=count))
        except TopicsError as error:
            self._fail(error)
        finally:
            self._granting = None

    @property
    def is_over(self) -> bool:
        return self._error is not None

    async def receive(self) -> None:
        self._news.clear()
        if self._error is None:
            await self._news.wait()
        if self._error is not None:
            raise self._error

    async def _read(self) -> None:
        try:
            while (answer := await self._call.read()) is not grpc.aio.EOF:
                if answer.WhichOneof("kind") == "items":
                    self._arrived([values.popped(item) for item in answer.items.items])
                    self._news.set()
                elif answer.WhichOneof("kind") == "settled":
                    waiting = self._answers.popleft()
                    if not waiting.done():
                        waiting.set_result(answer.settled)
            self._fail(await self._ending())
        except grpc.aio.AioRpcError as failure:
            self._fail(self._broken(failure))
        except asyncio.CancelledError:
            # So ends a call whose channel is closed, and this task with its stream.
            self._fail(ShuttingDown("the client is closed"))
            raise

    # ---- what becomes of them

    async def ack(self, leases: Sequence[LeaseRef]) -> AckedMessages:
        done = await self._settle(values.settle_acks(leases), leases)
        return AckedMessages(topic=self._topic, acked=done.acked, lost=values.lost(done.refused))

    async def nack(self, request: NackRequest) -> NackedMessages:
        done = await self._settle(values.settle_nacks(request), request.leases)
        lost = values.lost(done.refused)
        return NackedMessages(topic=self._topic, nacked=done.nacked, dead_lettered=done.dead_lettered, lost=lost)

    async def extend(self, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases:
        done = await self._settle(values.settle_extensions(leases, extension_ms), leases)
        return ExtendedLeases(
            topic=self._topic,
            extended=done.extended,
            lease_deadline_ms=values.milliseconds(done.lease_deadline),
            lost=values.lost(done.refused),
        )

    async def _settle(self, settle: Any, leases: Sequence[LeaseRef]) -> Any:
        try:
            if self._error is not None:
                raise self._error
            waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            async with self._writing:
                self._answers.append(waiting)
                await self._write_now(proto.WorkRequest(settle=settle))
            return await waiting
        except (ConnectionFailed, ShuttingDown, TimedOut) as error:
            return values.all_lost(leases, error)

    # ---- the wire

    async def _write(self, request: Any) -> None:
        async with self._writing:
            await self._write_now(request)

    async def _write_now(self, request: Any) -> None:
        try:
            await self._call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # The call is over; its status says why.
            error = await self._ending()
            self._fail(error)
            raise error from None

    async def close(self) -> None:
        """The server gives back what was delivered on it and not settled."""
        self._fail(ShuttingDown("the stream was closed"))
        if self._call is not None:
            self._call.cancel()
        for task in (self._reading, self._granting):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    async def _ending(self) -> TopicsError:
        status = await self._call.code()
        if status is grpc.StatusCode.OK:
            self._endpoints.reached = True
            return ShuttingDown("the server ended the stream")
        trailing = await self._call.trailing_metadata()
        initial = await self._call.initial_metadata()
        return self._broken(grpc.aio.AioRpcError(status, initial, trailing, await self._call.details()))

    def _fail(self, error: TopicsError) -> None:
        self._error = self._error or error
        self._news.set()
        answers, self._answers = self._answers, deque()
        for waiting in answers:
            if not waiting.done():
                waiting.set_exception(error)
                # Whoever asked may have given up.
                waiting.exception()
