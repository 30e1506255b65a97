"""A gRPC client of a heap, in Python, on the core that clients have.

    python -m bench.clients.heapwork ENDPOINT enqueue COUNT     `EnqueueBatch`, so many calls under way
    python -m bench.clients.heapwork ENDPOINT work COUNT        pop and ack on `Work` streams

Prints one line of JSON. No SDK is in the way: messages of the contract on plain channels of `grpc.aio`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any, TypeVar

import grpc
import msgspec
import uvloop

from bench.bodies import bodies
from bench.clients.requests import payloads
from bench.peers.process import client_core, pinned
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP, HEAPS, methods_of

HEAP = "orders"
BATCH = 100
"""Messages in one `EnqueueBatch`, and those that a stream has in hand."""
UNDER_WAY = 16
STREAMS = 4
PRIORITIES = 1000
SECONDS_MAX = 300.0

Answer = TypeVar("Answer", bound=msgspec.Struct)


class Worked(msgspec.Struct, frozen=True):
    messages: int
    seconds: float

    @property
    def messages_per_s(self) -> float:
        return self.messages / self.seconds


def run(endpoint: str, what: str, count: int) -> Worked:
    """In a process of its own, on the core of clients."""
    return in_a_process("bench.clients.heapwork", Worked, endpoint, what, str(count))


def in_a_process(module: str, answer: type[Answer], *arguments: str) -> Answer:
    """What a client of ours prints that runs on the core of clients."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        timeout=SECONDS_MAX,
        preexec_fn=pinned(client_core()),
    )
    if done.returncode:
        raise RuntimeError(f"{module} ended early: {done.stderr.decode(errors='replace').strip()}")
    return msgspec.json.decode(done.stdout, type=answer)


def calling(channel: Any, service: str, name: str) -> Any:
    method = methods_of(service)[name]
    make = channel.stream_stream if method.client_streams else channel.unary_unary
    return make(method.path, method.request.SerializeToString, method.response.FromString)


async def _enqueue(channel: Any, count: int) -> Worked:
    datas = payloads(next(iter(bodies(1, records=BATCH))))
    request = proto.EnqueueBatchReq(
        requests=[
            {"topic": HEAP, "payload": data, "priority": number * 7919 % PRIORITIES}
            for number, data in enumerate(datas)
        ]
    )
    call = calling(channel, DISHEAP, "EnqueueBatch")
    left = count // BATCH

    async def send() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await call(request)

    began_s = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(UNDER_WAY)))
    return Worked(count, time.perf_counter() - began_s)


async def _work(channel: Any, count: int) -> Worked:
    done = 0
    finished = asyncio.Event()

    async def work() -> None:
        nonlocal done
        call = calling(channel, HEAPS, "Work")()
        await call.write(proto.WorkRequest(open=proto.WorkOpen(topic=HEAP)))
        await call.write(proto.WorkRequest(credits=BATCH))
        while (answer := await call.read()) is not grpc.aio.EOF:
            if answer.WhichOneof("kind") == "items":
                items = answer.items.items
                acks = [{"message_id": item.message_id, "lease_token": item.lease_token} for item in items]
                await call.write(proto.WorkRequest(settle=proto.Settle(acks=acks)))
            elif answer.WhichOneof("kind") == "settled":
                acked = answer.settled.acked
                done += acked
                if done >= count:
                    finished.set()
                await call.write(proto.WorkRequest(credits=acked))

    began_s = time.perf_counter()
    working = [asyncio.create_task(work()) for _ in range(STREAMS)]
    waiting = asyncio.create_task(finished.wait())
    await asyncio.wait({waiting, *working}, return_when=asyncio.FIRST_COMPLETED)
    took_s = time.perf_counter() - began_s
    for task in working:
        task.cancel()
    assert done >= count, f"{done} of {count}"
    return Worked(done, took_s)


async def _main(endpoint: str, what: str, count: str) -> Worked:
    works = {"enqueue": _enqueue, "work": _work}
    async with grpc.aio.insecure_channel(endpoint, [("grpc.max_receive_message_length", -1)]) as channel:
        return await works[what](channel, int(count))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(_main(*sys.argv[1:]))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
