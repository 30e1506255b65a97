"""`PopStream`: messages to a client that acks them by other calls.

The filter comes first, then credits, which add up. The call goes on until the client ends it or the server stops; a
client that says it has nothing more to send still gets what its credits are for. Whichever way it ends, what it
delivered and nobody settled goes back at once.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc

from topics.core.names import check_topic
from topics.engine.host import Host
from topics.errors import InvalidRequest, ShuttingDown
from topics.limits import MIB
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.grpc import values
from topics.server.grpc.calls import Asker
from topics.server.grpc.delivering import Delivering
from topics.server.grpc.stopping import Stopping

SENT_MAX: Final = 64
"""Messages that are taken at a time."""


class PopCall:
    def __init__(self, context: Context, stopping: Stopping, asker: Asker, call: Any) -> None:
        self._context = context
        self._stopping = stopping
        self._asker = asker
        self._call = call
        self._delivering = Delivering()

    async def run(self) -> None:
        host = self._context.ready()
        found = await self._filter()
        topic = check_topic(found.topic)
        check_name(self._asker.principal, topic)
        delivering = self._delivering = delivering_of(self._context, host, topic)
        delivering.begin(
            host.engine.heaps.open(
                topic,
                self._asker.consumer,
                delivering.deliver,
                delivering.ended,
                values.visibility_ms(found),
                tuple(found.partition_ids),
            )
        )
        reading = asyncio.create_task(self._read())
        self._stopping.add(self._stop)
        try:
            await self._write()
        finally:
            self._stopping.remove(self._stop)
            delivering.close()
            reading.cancel()

    async def _write(self) -> None:
        delivering, write = self._delivering, self._call.write
        while True:
            if messages := delivering.take(SENT_MAX, MIB):
                for message in messages:
                    await write(values.pop_item(message))
            else:
                delivering.check()
                await delivering.news()

    async def _filter(self) -> Any:
        opened = await self._call.read()
        if opened is grpc.aio.EOF or opened.WhichOneof("kind") != "filter":
            raise InvalidRequest(
                "a stream begins with the filter that names its topic, and credits come behind it",
                field="filter",
                expected="a PopOpen with filter",
            )
        return opened.filter

    async def _read(self) -> None:
        """Credits, as they come."""
        try:
            while (opened := await self._call.read()) is not grpc.aio.EOF:
                if opened.WhichOneof("kind") != "flow_control":
                    message = "the filter of a stream cannot be changed: begin another one"
                    raise InvalidRequest(message, field="filter", expected="a PopOpen with flow_control")
                self._delivering.add_credits(opened.flow_control.credits)
        except Exception as error:
            self._delivering.ended(error)

    def _stop(self) -> None:
        self._delivering.ended(stopped())


def delivering_of(context: Context, host: Host, topic: str) -> Delivering:
    """Deliveries of one heap, some of them timed."""
    heaps, latency = host.engine.heaps, context.heap_latency
    return Delivering(
        lambda: latency.begin_pop(topic, lambda: heaps.stats(topic).ready_messages),
        lambda began_ns: latency.popped(topic, began_ns),
    )


def stopped() -> ShuttingDown:
    return ShuttingDown("the server is shutting down; connect again, or to another one")
