"""`Work`: one stream on which messages come and acks, nacks and extends go back.

    client   open, credits … settle … credits … settle
    server   opened … items … settled … items

Each `settle` is decided when it is read and answered when it is durable, in the order they came; many may be under way.
Reading waits while too many are, which holds the client up by the flow control of the connection. When the client has
nothing more to say, the settles under way are answered and the call ends; what is still leased goes back at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

import grpc

from topics.core.names import check_topic
from topics.engine.host import Host
from topics.errors import InvalidRequest
from topics.limits import MIB
from topics.proto import messages as proto
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.grpc import values
from topics.server.grpc.calls import Asker
from topics.server.grpc.delivering import Delivering
from topics.server.grpc.itembytes import items_bytes
from topics.server.grpc.popstream import delivering_of, stopped
from topics.server.grpc.settling import Settling
from topics.server.grpc.stopping import Stopping

ITEMS_MAX: Final = 256
ITEMS_BYTES_MAX: Final = 1 * MIB
"""What one answer holds at most, unless one message alone is larger."""
SETTLES_MAX: Final = 256
"""Settles that are decided and not answered yet."""


class WorkCall:
    def __init__(self, context: Context, stopping: Stopping, asker: Asker, call: Any) -> None:
        self._context = context
        self._stopping = stopping
        self._asker = asker
        self._call = call
        self._delivering = Delivering()
        self._settles: deque[Settling] = deque()
        self._room = asyncio.Event()
        self._read_all = False

    async def run(self) -> None:
        host = self._context.ready()
        opened = await self._opening()
        topic = check_topic(opened.topic)
        check_name(self._asker.principal, topic)
        delivering = self._delivering = delivering_of(self._context, host, topic)
        visibility_ms = values.visibility_ms(opened)
        config = host.engine.heaps.info(topic).config
        delivering.begin(
            host.engine.heaps.open(
                topic,
                self._asker.consumer,
                delivering.deliver,
                delivering.ended,
                visibility_ms,
                tuple(opened.partition_ids),
            )
        )
        lasts = values.duration(visibility_ms or config.visibility_timeout_ms)
        reading = asyncio.create_task(self._read(host, topic))
        self._stopping.add(self._stop)
        try:
            await self._call.write(proto.WorkResponse(opened=proto.WorkOpened(visibility_timeout=lasts)))
            await self._write()
        finally:
            self._stopping.remove(self._stop)
            delivering.close()
            reading.cancel()

    async def _opening(self) -> Any:
        first = await self._call.read()
        if first is grpc.aio.EOF or first.WhichOneof("kind") != "open":
            message = "work begins with an open that names its topic"
            raise InvalidRequest(message, field="open", expected="a WorkRequest with open")
        return first.open

    async def _read(self, host: Host, topic: str) -> None:
        try:
            while (request := await self._call.read()) is not grpc.aio.EOF:
                match request.WhichOneof("kind"):
                    case "credits":
                        self._delivering.add_credits(request.credits)
                    case "settle":
                        await self._settle(host, topic, request.settle)
                    case _:
                        message = "a stream is opened once: begin another one for another topic"
                        raise InvalidRequest(message, field="open", expected="credits or settle")
        except Exception as error:
            self._delivering.ended(error)
        finally:
            self._read_all = True
            self._delivering.wake()

    async def _settle(self, host: Host, topic: str, settle: Any) -> None:
        while len(self._settles) >= SETTLES_MAX:
            self._room.clear()
            await self._room.wait()
        settling = Settling(topic, settle, self._context.settings.max_claim)
        self._settles.append(settling)
        await settling.begin(host, self._delivering.wake)

    async def _write(self) -> None:
        """Until the client has said all there is to say, and heard what came of it."""
        delivering, write = self._delivering, self._call.write
        while True:
            settling = self._settles.popleft() if self._settles and self._settles[0].is_done else None
            if settling is not None:
                self._room.set()
                await write(proto.WorkResponse(settled=settling.answer()))
            if messages := delivering.take(ITEMS_MAX, ITEMS_BYTES_MAX):
                await write(items_bytes(messages))
            elif settling is None:
                if not self._settles:
                    delivering.check()
                    if self._read_all:
                        return
                await delivering.news()

    def _stop(self) -> None:
        self._delivering.ended(stopped())
