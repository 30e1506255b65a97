"""A gRPC client of a heap, in Python, on the core that clients have.

    python -m bench.clients.heapwork ENDPOINT enqueue COUNT     `EnqueueBatch`, so many calls under way
    python -m bench.clients.heapwork ENDPOINT work COUNT        pop and ack on `Work` streams
    python -m bench.clients.heapwork ENDPOINT paced COUNT       one message at a time, so many a second, to a stream

Prints one line of JSON. No SDK is in the way: messages of the contract on plain channels of `grpc.aio`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import deque
from typing import Any

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
PACE_PER_S = 1000
PRIORITIES = 1000
SECONDS_MAX = 300.0


class Worked(msgspec.Struct, frozen=True):
    messages: int
    seconds: float
    enqueue_p95_ms: float = 0.0
    pop_p95_ms: float = 0.0

    @property
    def messages_per_s(self) -> float:
        return self.messages / self.seconds


def run(endpoint: str, what: str, count: int) -> Worked:
    """In a process of its own, on the core of clients."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.clients.heapwork", endpoint, what, str(count)],
        capture_output=True,
        timeout=SECONDS_MAX,
        preexec_fn=pinned(client_core()),
    )
    if done.returncode:
        raise RuntimeError(f"the gRPC client ended early: {done.stderr.decode(errors='replace').strip()}")
    return msgspec.json.decode(done.stdout, type=Worked)


def _calling(channel: Any, service: str, name: str) -> Any:
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
    call = _calling(channel, DISHEAP, "EnqueueBatch")
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
        call = _calling(channel, HEAPS, "Work")()
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


async def _paced(channel: Any, count: int) -> Worked:
    enqueue = _calling(channel, DISHEAP, "Enqueue")
    enqueue_ms: list[float] = []
    pop_ms: list[float] = []
    answered_s: dict[str, float] = {}
    call = _calling(channel, HEAPS, "Work")()
    await call.write(proto.WorkRequest(open=proto.WorkOpen(topic=HEAP)))
    await call.write(proto.WorkRequest(credits=count))
    arrived: deque[tuple[str, float]] = deque()

    async def receive() -> None:
        while len(arrived) < count:
            answer = await call.read()
            now_s = time.perf_counter()
            for item in answer.items.items:
                arrived.append((item.message_id, now_s))

    async def send(number: int) -> None:
        began_s = time.perf_counter()
        request = proto.EnqueueReq(topic=HEAP, payload=b"x" * 100, priority=number, partition_key=str(number))
        answer = await enqueue(request)
        now_s = time.perf_counter()
        enqueue_ms.append((now_s - began_s) * 1000)
        answered_s[answer.message_id] = began_s

    receiving = asyncio.create_task(receive())
    began_s = time.perf_counter()
    sending = []
    for number in range(count):
        due_s = began_s + number / PACE_PER_S
        if (pause_s := due_s - time.perf_counter()) > 0:
            await asyncio.sleep(pause_s)
        sending.append(asyncio.create_task(send(number)))
    await asyncio.gather(*sending, receiving)
    took_s = time.perf_counter() - began_s
    pop_ms += [(at_s - answered_s[message_id]) * 1000 for message_id, at_s in arrived]
    call.cancel()
    return Worked(count, took_s, _p95(enqueue_ms), _p95(pop_ms))


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


async def _main(endpoint: str, what: str, count: str) -> Worked:
    works = {"enqueue": _enqueue, "work": _work, "paced": _paced}
    async with grpc.aio.insecure_channel(endpoint, [("grpc.max_receive_message_length", -1)]) as channel:
        return await works[what](channel, int(count))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(_main(*sys.argv[1:]))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
