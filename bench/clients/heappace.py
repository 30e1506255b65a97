"""Messages enqueued one at a time, so many a second, and consumers that pop and ack them: how long each takes.

    python -m bench.clients.heappace grpc ENDPOINT COUNT     unary `Enqueue`, one `Work` stream
    python -m bench.clients.heappace v1 ADDRESS COUNT        `/v1/enqueue`, `/v1/pop` that waits, `/v1/ack`

Prints one line of JSON. No SDK is in the way: plain channels of `grpc.aio`, or plain connections.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol

import grpc
import msgspec
import uvloop

from bench.clients.heapwork import HEAP, calling, in_a_process
from bench.clients.requests import http
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP, HEAPS

PACE_PER_S: Final = 1000
PAYLOAD: Final = b"x" * 100
SENDERS: Final = 32
"""Connections to `/v1` on which messages are enqueued, one at a time each."""
POPPERS: Final = 4
POPPED_MAX: Final = 100


class Paced(msgspec.Struct, frozen=True):
    enqueue_p95_ms: float
    pop_p95_ms: float


def run(over: str, address: str, count: int) -> Paced:
    """In a process of its own, on the core of clients."""
    return in_a_process("bench.clients.heappace", Paced, over, address, str(count))


class Transport(Protocol):
    async def enqueue(self, number: int) -> str:
        """The id of the message."""
        ...

    async def consume(self, arrived: dict[str, float]) -> None:
        """Pop and ack for ever; `arrived` is told when which message came."""
        ...


async def pace(transport: Transport, consumers: int, count: int) -> Paced:
    enqueue_ms: list[float] = []
    began_s: dict[str, float] = {}
    arrived_s: dict[str, float] = {}

    async def send(number: int) -> None:
        at_s = time.perf_counter()
        began_s[await transport.enqueue(number)] = at_s
        enqueue_ms.append((time.perf_counter() - at_s) * 1000)

    consuming = [asyncio.create_task(transport.consume(arrived_s)) for _ in range(consumers)]
    first_s = time.perf_counter()
    sending = []
    for number in range(count):
        pause_s = first_s + number / PACE_PER_S - time.perf_counter()
        if pause_s > 0:
            await asyncio.sleep(pause_s)
        sending.append(asyncio.create_task(send(number)))
    await asyncio.gather(*sending)
    while len(arrived_s) < count:
        await asyncio.sleep(0.01)
        for task in consuming:
            if task.done():
                task.result()
    for task in consuming:
        task.cancel()
    return Paced(_p95(enqueue_ms), _p95([(arrived_s[each] - began_s[each]) * 1000 for each in began_s]))


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


class OverGrpc:
    def __init__(self, channel: Any, credits: int) -> None:
        self._channel = channel
        self._credits = credits
        self._enqueue = calling(channel, DISHEAP, "Enqueue")

    async def enqueue(self, number: int) -> str:
        request = proto.EnqueueReq(topic=HEAP, payload=PAYLOAD, priority=number, partition_key=str(number))
        return str((await self._enqueue(request)).message_id)

    async def consume(self, arrived: dict[str, float]) -> None:
        call = calling(self._channel, HEAPS, "Work")()
        await call.write(proto.WorkRequest(open=proto.WorkOpen(topic=HEAP)))
        await call.write(proto.WorkRequest(credits=self._credits))
        while (answer := await call.read()) is not grpc.aio.EOF:
            now_s = time.perf_counter()
            items = answer.items.items
            arrived.update((item.message_id, now_s) for item in items)
            if items:
                acks = [{"message_id": item.message_id, "lease_token": item.lease_token} for item in items]
                await call.write(proto.WorkRequest(settle=proto.Settle(acks=acks)))


class Connection:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, address: str, stack: AsyncExitStack) -> Connection:
        host, _, port = address.rpartition(":")
        made = cls(*await asyncio.open_connection(host, int(port)))
        stack.callback(made.writer.close)
        return made

    async def post(self, path: str, body: object) -> Any:
        self.writer.write(http("POST", path, msgspec.json.encode(body)))
        head = await self._reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        answer = await self._reader.readexactly(size)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{path} was answered with {head[:12].decode()}: {answer.decode()}")
        return msgspec.json.decode(answer)


class OverV1:
    def __init__(self, senders: Sequence[Connection], poppers: Sequence[Connection]) -> None:
        self._free: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
        for sender in senders:
            self._free.put_nowait(sender)
        self._poppers = list(poppers)

    async def enqueue(self, number: int) -> str:
        message = {"topic": HEAP, "payload": PAYLOAD.decode(), "priority": number, "partition_key": str(number)}
        connection = await self._free.get()
        try:
            return str((await connection.post("/v1/enqueue", message))["message_id"])
        finally:
            self._free.put_nowait(connection)

    async def consume(self, arrived: dict[str, float]) -> None:
        connection = self._poppers.pop()
        while True:
            found = await connection.post("/v1/pop", {"topic": HEAP, "max": POPPED_MAX, "wait_time": "10s"})
            now_s = time.perf_counter()
            items = found["items"]
            arrived.update((item["message_id"], now_s) for item in items)
            if items:
                leases = [{name: item[name] for name in ("message_id", "lease_token")} for item in items]
                await connection.post("/v1/ack", {"topic": HEAP, "leases": leases})


async def _main(over: str, address: str, text: str) -> Paced:
    count = int(text)
    async with AsyncExitStack() as stack:
        if over == "grpc":
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(address))
            return await pace(OverGrpc(channel, count), 1, count)
        senders = [await Connection.open(address, stack) for _ in range(SENDERS)]
        poppers = [await Connection.open(address, stack) for _ in range(POPPERS)]
        return await pace(OverV1(senders, poppers), POPPERS, count)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        paced = runner.run(_main(*sys.argv[1:]))
    sys.stdout.write(msgspec.json.encode(paced).decode() + "\n")
