"""What the killed process does beside its plain writes: jobs, messages by priority, a group, copies and batches.

Each is a lane as well: operations by number, one after the other, and doing one again, before the next one, changes
nothing. Where an operation takes something, which one it is depends on the time; so the process says what it is about
to settle, and what was answered, and whoever finds its directory knows the least and the most that can have happened.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress

from topics.client import Client
from topics.client.group import Group
from topics.client.heap import Heap, MessageFields
from topics.errors import StageConflict, TopicExists
from topics.model import Record

Say = Callable[[str, int], None]
"""A word and a number, on their way to whoever kills us."""
Operation = Callable[[Client, int, Say], Awaitable[None]]

WINDOW_MS = 3_600_000
LEASE_MS = 300
"""Short, so that what a dead process held is soon somebody else's."""
PRIORITIES = 7
PARTITIONS = {"messages": 2}
POLL_S = 0.01


class Ledger:
    """What was said: in each lane, by word, the numbers."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], set[int]] = defaultdict(set)

    def take(self, lane: str, word: str, number: int) -> None:
        self._said[lane, word].add(number)

    def of(self, lane: str, word: str) -> set[int]:
        return self._said[lane, word]


def heap_of(client: Client) -> Heap:
    return client.heap("messages", consumer="c")


def group_of(client: Client) -> Group:
    return client.topic("events").group("readers", consumer="c")


# ---- operations


async def _jobs(client: Client, number: int, say: Say) -> None:
    """Put a job; claim one, perhaps another, and complete it."""
    queue = client.queue("jobs", node="n")
    await queue.put(
        number, idempotency_key=str(number), config={"lease_ms": LEASE_MS, "idempotency_window_ms": WINDOW_MS}
    )
    for job in await queue.claim() if number % 3 else ():
        say("settling", job.data)
        await job.ack()
        say("settled", job.data)


async def _messages(client: Client, number: int, say: Say) -> None:
    heap = heap_of(client)
    if not number:
        with suppress(TopicExists):
            await heap.create(partitions=PARTITIONS["messages"], lease_ms=LEASE_MS, durability="disk")
    message: MessageFields = {"payload": number, "priority": number % PRIORITIES}
    await heap.enqueue_many([message], transaction_id=f"message-{number}")
    for message in await heap.take() if number % 3 else ():
        say("settling", message.data)
        await message.ack()
        say("settled", message.data)


async def _events(client: Client, number: int, say: Say) -> None:
    """Write a record; have the group take a few and ack them."""
    topic = client.topic("events")
    await topic.write(number, idempotency_key=str(number), config={"idempotency_window_ms": WINDOW_MS})
    if number % 4 == 3:
        group = group_of(client)
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


async def _contents(client: Client, name: str) -> list[int]:
    """What a topic holds, in order, for readers who must not be told of a loss."""
    found: list[Record] = []
    for partition in range(PARTITIONS.get(name, 1)):
        from_seq, caught_up = 0, False
        while not caught_up:
            page = await client.topic(name).diff(from_seq, limit=1000, partition=partition)
            assert page.tombstone is None, (name, page.tombstone)
            found += page.records
            from_seq, caught_up = page.next_from_seq, page.caught_up
    return [record.data for record in found]


async def check(client: Client, lane: str, operations: int, ledger: Ledger) -> None:
    """What was acked in a lane is so, and at most one operation more has happened."""
    one_more = [list(range(operations)), list(range(operations + 1))]
    match lane:
        case "jobs" | "messages":
            found = await _contents(client, lane)
            assert len(set(found)) == len(found) and set(found) <= set(one_more[1]), f"{lane}: none is there twice"
            back = ledger.of(lane, "settled") & set(found)
            assert not back, f"{lane} after {operations} operations: {back} were done and came back"
            assert set(one_more[0]) - ledger.of(lane, "settling") <= set(found), f"{lane}: what is not done stays"
        case "events":
            assert await _contents(client, lane) in one_more, f"{lane} after {operations} operations"
            committed = (await group_of(client).state()).committed_seq if ledger.of(lane, "settling") else 0
            assert committed >= max(ledger.of(lane, "committed"), default=0), "a commit is not taken back"
            assert set(range(1, committed + 1)) <= ledger.of(lane, "settling"), "nothing is passed over"
        case "source":
            written = await _contents(client, lane)
            assert written in one_more, f"{lane} after {operations} operations"
            while len(copies := await _contents(client, "mirror")) < len(written):
                await asyncio.sleep(POLL_S)
            assert copies == written, "each record was copied once and in order"
        case "batches":
            before = [await _contents(client, side) for side in ("left", "right")]
            assert all(side in one_more for side in before), f"{lane} after {operations} operations"
            await OPERATIONS[lane](client, operations, lambda word, number: None)
            after = [await _contents(client, side) for side in ("left", "right")]
            assert after == [one_more[1]] * 2, f"a batch is in both of its topics or in none: {after}"


async def drain(client: Client) -> None:
    """Take all that is left: whatever was not settled comes again, the best first, once those who had it are dead."""
    queue, heap, group = client.queue("jobs", node="last"), heap_of(client), group_of(client)
    left = await _contents(client, "jobs")
    while left:
        for job in await queue.claim(1000, wait_ms=LEASE_MS):
            left.remove(job.data)
            await job.ack()
    waiting = await _contents(client, "messages")
    while waiting:
        messages = await heap.take(1000, wait_ms=LEASE_MS)
        assert [message.priority for message in messages] == sorted(message.priority for message in messages)
        for message in messages:
            waiting.remove(message.data)
            await message.ack()
    head_seq = (await client.topic("events").state()).head_seq
    while (await group.state()).committed_seq < head_seq:
        batch = await group.take(1000, wait_ms=LEASE_MS)
        if batch.records:
            await group.ack(batch)
