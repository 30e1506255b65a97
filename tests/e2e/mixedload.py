"""What the killed process does beside its plain writes: jobs, messages by priority, a group, copies and batches.

Each is a lane as well: operations by number, one after the other, and doing one again, before the next one, changes
nothing. It says what it is about to settle, and what was answered; `found` knows what follows from that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.e2e.found import GROUP, PARTITIONS, check_group, check_log, check_taken, contents, either
from tests.e2e.ledger import Ledger, Say
from topics.client import Client
from topics.client.heap import Heap, MessageFields
from topics.client.job import Job
from topics.client.message import Message
from topics.errors import StageConflict, TopicExists
from topics.heapmodel import MessageState

Operation = Callable[[Client, int, Say], Awaitable[None]]
Check = Callable[[Client, str, int, Ledger], Awaitable[None]]

WINDOW_MS = 3_600_000
LEASE_MS = 300
"""Short, so that what a dead process held is soon somebody else's."""
PRIORITIES = 7
RETRIES_MAX = 1_000_000
"""A process dies often with messages in hand, and none of them is to be given up for that."""
POLL_S = 0.01


# ---- operations


async def settle(taken: Job | Message, say: Say) -> None:
    """Be done with it. On a slow machine its lease may be over, and then it comes again."""
    say("settling", taken.data)
    if await taken.ack():
        say("settled", taken.data)


async def _jobs(client: Client, number: int, say: Say) -> None:
    """Put a job; claim one, perhaps another, and complete it."""
    queue = client.queue("jobs", node="n")
    await queue.put(
        number, idempotency_key=str(number), config={"lease_ms": LEASE_MS, "idempotency_window_ms": WINDOW_MS}
    )
    for job in await queue.claim() if number % 3 else ():
        await settle(job, say)


async def enqueue(heap: Heap, number: int) -> None:
    """Enqueue a message, once, into a heap that is made for the first one."""
    if not number:
        with suppress(TopicExists):
            await heap.create(partitions=PARTITIONS[heap.name], lease_ms=LEASE_MS, max_retries=RETRIES_MAX)
    message: MessageFields = {"payload": number, "priority": number % PRIORITIES}
    await heap.enqueue_many([message], transaction_id=f"{heap.name}-{number}")


async def _messages(client: Client, number: int, say: Say) -> None:
    heap = client.heap("messages", consumer="c")
    if not number:
        # Over gRPC a heap cannot be made with a class of its own.
        await client.topic(heap.name).create(
            if_missing=True,
            type="heap",
            partitions=PARTITIONS[heap.name],
            lease_ms=LEASE_MS,
            max_retries=RETRIES_MAX,
            durability="disk",
        )
    await enqueue(heap, number)
    for message in await heap.take() if number % 3 else ():
        await settle(message, say)


async def _events(client: Client, number: int, say: Say) -> None:
    """Write a record; have the group take a few and ack them."""
    topic = client.topic("events")
    await topic.write(number, idempotency_key=str(number), config={"idempotency_window_ms": WINDOW_MS})
    if number % 4 == 3:
        group = topic.group(GROUP, consumer="c")
        batch = await group.take(4, visibility_ms=LEASE_MS, start="earliest")
        for record in batch.records:
            say("settling", record.seq)
        if batch.records:
            say("committed", (await group.ack(batch)).committed_seq)


async def _source(client: Client, number: int, say: Say) -> None:
    """Write a record that a router copies."""
    topic = client.topic("source")
    if not number:
        await topic.create(idempotency_window_ms=WINDOW_MS)
        await client.router("mirror").put("source", "mirror", backfill=True)
    await topic.write(number, idempotency_key=str(number))


async def _batches(client: Client, number: int, say: Say) -> None:
    """Publish a stage for each of two topics at once.

    What a dead process staged was perhaps not answered, and is thrown away, unless it is being published already.
    """
    stages = [f"left-{number}", f"right-{number}"]
    with suppress(StageConflict):
        await client.abort(stages)
        for stage in stages:
            topic = stage.partition("-")[0]
            await client.topic(topic).create(if_missing=True)
            await client.stage(stage, topic, [{"data": number}])
    await client.publish(stages, producer=("batches", number))


OPERATIONS: dict[str, Operation] = {
    "jobs": _jobs,
    "messages": _messages,
    "events": _events,
    "source": _source,
    "batches": _batches,
}


# ---- what must be there


async def _check_source(client: Client, lane: str, operations: int, ledger: Ledger) -> None:
    await check_log(client, lane, operations, ledger)
    written = await contents(client, lane)
    while len(copies := await contents(client, "mirror")) < len(written):
        await asyncio.sleep(POLL_S)
    assert copies == written, "each record was copied once and in order"


async def _check_batches(client: Client, lane: str, operations: int, ledger: Ledger) -> None:
    before = [await contents(client, side) for side in ("left", "right")]
    assert all(side in either(operations) for side in before), f"{lane} after {operations} operations"
    await OPERATIONS[lane](client, operations, lambda word, number: None)
    after = [await contents(client, side) for side in ("left", "right")]
    assert after == [either(operations)[1]] * 2, f"a batch is in both of its topics or in none: {after}"


CHECKS: dict[str, Check] = {
    "jobs": check_taken,
    "messages": check_taken,
    "events": check_group,
    "source": _check_source,
    "batches": _check_batches,
}


# ---- the rest of it


async def drain_queue(client: Client, name: str) -> None:
    """Take all that is left: whatever was not settled comes again, once those who had it are dead."""
    queue, left = client.queue(name, node="last"), await contents(client, name)
    while left:
        for job in await queue.claim(1000, lease_ms=WINDOW_MS, wait_ms=LEASE_MS):
            left.remove(job.data)
            assert await job.ack()


async def drain_heap(client: Client, name: str) -> None:
    """The same, and the best of those that are there comes first. What was lost often rests for minutes, and stays."""
    heap, left = client.heap(name, consumer="last"), await contents(client, name)
    while set(left) - await _resting(heap):
        messages = await heap.take(1000, wait_ms=LEASE_MS, visibility_ms=WINDOW_MS)
        assert [message.priority for message in messages] == sorted(message.priority for message in messages)
        for message in messages:
            left.remove(message.data)
            assert await message.ack()


async def _resting(heap: Heap) -> set[int]:
    peeked = (await heap.peek(1000)).messages
    return {int(message.payload) for message in peeked if message.state is MessageState.DELAYED}


async def drain_group(client: Client, name: str) -> None:
    head_seq = (await client.topic(name).state()).head_seq
    group = client.topic(name).group(GROUP, consumer="last")
    while (await group.state()).committed_seq < head_seq:
        batch = await group.take(1000, wait_ms=LEASE_MS)
        if batch.records:
            await group.ack(batch)
