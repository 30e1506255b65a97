"""A heap with a long backlog: its memory, its restart, the pauses of its checkpoints, and what its order costs.

Messages of 1 KiB with priorities at random, so that those that are popped one after the other lie anywhere on the disk.
A server is filled and killed, which leaves all of it to the recovery of the next one. What an operation on the order
takes, and how long a checkpoint keeps the loop, is looked at in this process, on the same directory.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter, sleep

import msgspec

from bench.bodies import DIFFERENT
from bench.clients.heapwork import HEAP
from bench.figure import Figure, Unit
from bench.measures.checkpoint import Heartbeat
from bench.peers.process import HOST
from bench.peers.topics import Topics
from bench.rig import Step, running
from bench.sizes import Sizes
from topics.core.heap import Heap
from topics.core.heapcommands import AckMessages, Popper
from topics.engine.host import Host
from topics.heapmodel import LeaseRef
from topics.limits import GIB, KIB

BATCH = 500
"""Messages in one request, and in one pop."""
PRIORITIES = 1_000_000
OPERATIONS = 20_000
POPS = 8
MEMORY_BAR_BYTES = 1 * GIB
RESTART_BAR_MS = 10_000
PAUSE_BAR_MS = 50
OK = 200
THROTTLED = 429
RETRY_S = 0.1
ANSWER_SECONDS_MAX = 60
OPERATION_BAR_US = 5


def _bodies() -> list[bytes]:
    chance = random.Random(1)
    found = []
    for _ in range(DIFFERENT):
        messages = [
            {"topic": HEAP, "priority": chance.randrange(PRIORITIES), "payload_json": chance.randbytes(KIB // 2).hex()}
            for _ in range(BATCH)
        ]
        found.append(msgspec.json.encode({"messages": messages}))
    return found


def _fill(port: int, count: int) -> None:
    """Writes may be ahead of the checkpoint: who is told so waits."""
    with closing(HTTPConnection(HOST, port, timeout=ANSWER_SECONDS_MAX)) as caller:
        for body in islice(cycle(_bodies()), count // BATCH):
            while (status := _status(caller, body)) == THROTTLED:
                sleep(RETRY_S)
            if status != OK:
                raise RuntimeError(f"enqueueing {BATCH} messages was answered with {status}, expected {OK}")


def _status(caller: HTTPConnection, body: bytes) -> int:
    caller.request("POST", "/v1/enqueue/batch", body, {"Content-Type": "application/json"})
    answer = caller.getresponse()
    answer.read()
    return answer.status


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    what = f"{sizes.heap_messages:,} messages of 1 KiB"
    place = directory / "deep"
    step(f"filling a heap with {what}")
    with Topics(place) as server:
        server.create_heap(HEAP, 1)
        _fill(server.port, sizes.heap_messages)
        resident_bytes, _ = server.process.resident_bytes()
        server.process.kill()
    step(f"a restart with {what}")
    began_s = perf_counter()
    with Topics(place) as server:
        restart_ms = (perf_counter() - began_s) * 1e3
        restarted_bytes, _ = server.process.resident_bytes()
    step(f"order and checkpoints with {what}")
    return [
        _bounded(f"resident memory with {what}", max(resident_bytes, restarted_bytes), Unit.BYTES, MEMORY_BAR_BYTES),
        _bounded(f"from the start to ready, {what}", restart_ms, Unit.MS, RESTART_BAR_MS),
        *asyncio.run(_looked_at(place, what)),
    ]


async def _looked_at(place: Path, what: str) -> list[Figure]:
    async with running(place) as host:
        log = host.engine.machine.log(host.engine.machine.topic(HEAP))
        assert isinstance(log.queue, Heap)
        operation_us = _operation_us(log.queue)
        popped_us = await _popped_us(host)
        async with Heartbeat() as heartbeat:
            await host.checkpoint()
        note = f"the longest garbage collection took {heartbeat.collecting_ms:.1f} ms"
        return [
            _bounded(f"taking the best out, or putting one in, {what}", operation_us, Unit.US, OPERATION_BAR_US),
            Figure(name=f"pop and ack a message, {BATCH} at a time, {what}", value=popped_us, unit=Unit.US),
            Figure(
                name=f"longest pause of a checkpoint after {POPS * BATCH:,} were acked, {what}",
                value=heartbeat.worst_ms,
                unit=Unit.MS,
                bar=PAUSE_BAR_MS,
                note=note,
            ),
        ]


def _operation_us(heap: Heap) -> float:
    """The mean of taking out and putting back; those that were taken come back where they were."""
    order = heap.order
    taken = []
    began_s = perf_counter()
    for _ in range(min(OPERATIONS, order.count)):
        key = order.first()
        assert key is not None
        order.pop()
        taken.append(key)
    heap.give_back(taken)
    return (perf_counter() - began_s) / (2 * len(taken)) * 1e6


async def _popped_us(host: Host) -> float:
    began_s = perf_counter()
    count = 0
    for _ in range(POPS):
        popped = await host.pop(HEAP, Popper("bench", BATCH))
        count += len(popped.messages)
        refs = [LeaseRef(message.lease_token, message.message_id) for message in popped.messages]
        await host.submit(AckMessages(HEAP, refs))
    return (perf_counter() - began_s) / count * 1e6


def _bounded(name: str, value: float, unit: Unit, bar: float) -> Figure:
    return Figure(name=name, value=value, unit=unit, bar=bar)
