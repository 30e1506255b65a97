"""A heap as a program uses it, the same in process, over HTTP and over gRPC."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.contract.heaps import GUARD_S, each_form, on_heap, opened, until
from topics import MessageState, Mode, errors


@each_form
def test_a_heap_is_made_looked_at_changed_listed_and_dropped(form: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(GUARD_S), opened(form, tmp_path) as client:
            heap = client.heap("jobs")
            made = await heap.create(mode="max", partitions=3, replication_factor=2, lease_ms=1500, max_retries=7)
            config = made.config
            assert (config.mode, config.partitions, config.replication_factor) == (Mode.MAX, 3, 2)
            assert (config.visibility_timeout_ms, config.max_retries, config.dlq_topic) == (1500, 7, "jobs.dlq")
            assert made.replicas == 1 and made.warnings and made.heap_id
            assert made.stats is not None and len(made.stats.partitions) == 3
            with pytest.raises(errors.TopicExists, match='topic "jobs" already exists'):
                await heap.create()
            changed = await heap.configure(max_retries=0, dead_letter_ttl_ms=60_000)
            assert (changed.config.max_retries, changed.config.dlq_retention_ms) == (0, 60_000)
            assert changed.config.visibility_timeout_ms == 1500, "what is not named stays"
            assert (await heap.info()).config == changed.config
            await client.heap("more").create()
            assert [info.topic async for info in client.heaps()] == ["jobs", "more"]
            assert [info.topic async for info in client.heaps("m")] == ["more"]
            await heap.drop()
            for call in (heap.info(), heap.enqueue(1), heap.take(), heap.peek(), heap.drop()):
                with pytest.raises(errors.TopicNotFound, match="does not exist"):
                    await call

    asyncio.run(run())


@on_heap
async def test_messages_come_best_first_as_they_were_given(heap: topics.Heap) -> None:
    await heap.enqueue({"a": [1, None]}, priority=3, meta={"who": "me"}, max_retries=9)
    await heap.enqueue(b"\x00\xff", priority=-1)
    many = await heap.enqueue_many([{"payload": n, "priority": n, "key": str(n)} for n in (2, 1)])
    assert [message.duplicate for message in many.messages] == [False, False] and many.transaction_id
    found = await heap.take(10)
    assert [(message.priority, message.data) for message in found] == [
        (-1, b"\x00\xff"),
        (1, 1),
        (2, 2),
        (3, {"a": [1, None]}),
    ]
    first, last = found[0], found[3]
    assert (first.payload, first.is_json, last.payload, last.is_json) == (b"\x00\xff", False, b'{"a":[1,null]}', True)
    assert (dict(last.meta), last.max_retries, last.attempts, last.topic) == ({"who": "me"}, 9, 0, "jobs")
    assert found[1].id == many.messages[1].message_id and first.producer is not None
    assert [await message.ack() for message in found] == [True] * 4
    assert await found[0].ack() is False, "once"
    stats = await heap.stats()
    assert (stats.total_messages, stats.total_enqueues, stats.total_acks) == (0, 4, 4)


@on_heap
async def test_concurrent_duplicates_are_all_answered_with_one_id(heap: topics.Heap) -> None:
    answers = await asyncio.gather(*(heap.enqueue({"n": 1}, sequence=7) for _ in range(16)))
    assert len({answer.message_id for answer in answers}) == 1
    assert sorted(answer.duplicate for answer in answers) == [False] + [True] * 15
    messages: list[dict[str, object]] = [{"payload": n, "key": str(n)} for n in range(8)]
    batches = await asyncio.gather(*(heap.enqueue_many(messages, transaction_id="t") for _ in range(16)))
    assert len({tuple(message.message_id for message in batch.messages) for batch in batches}) == 1
    assert sorted(batch.all_duplicates for batch in batches) == [False] + [True] * 15
    assert (await heap.stats()).total_messages == 9


@on_heap
async def test_a_block_acks_or_gives_back(heap: topics.Heap) -> None:
    await heap.enqueue("good", priority=1)
    await heap.enqueue("bad", priority=2)
    good, bad = await heap.take(2)
    async with good:
        assert not good.settled
    assert good.settled and not good.lost
    with pytest.raises(ValueError, match="broken"):
        async with bad:
            raise ValueError("broken")
    stats = await until(heap, lambda stats: stats.delayed_messages + stats.ready_messages == 1)
    assert (stats.total_acks, stats.total_nacks) == (1, 1)


@on_heap
async def test_pop_goes_on_without_end_with_so_many_in_hand(heap: topics.Heap) -> None:
    await heap.enqueue_many([{"payload": n, "priority": n} for n in range(20)])
    async with aclosing(heap.pop(prefetch=4)) as messages:
        held = [await anext(messages) for _ in range(4)]
        assert [message.data for message in held] == [0, 1, 2, 3]
        assert (await heap.stats()).in_flight_messages == 4
        waiting = asyncio.ensure_future(anext(messages))
        await heap.stats()
        assert not waiting.done(), "four are in hand"
        await held[1].ack()
        assert (await waiting).data == 4
        async with held[0]:
            pass
        assert (await anext(messages)).data == 5
    stats = await until(heap, lambda stats: stats.in_flight_messages == 0)
    assert stats.ready_messages == 18 and stats.total_nacks == 0, "what was in hand went back, and no attempt counts"
    (again,) = await heap.take()
    assert (again.data, again.attempts) == (2, 0)


@on_heap
async def test_what_comes_later_comes_to_who_waits(heap: topics.Heap) -> None:
    found: list[Any] = []

    async def consume() -> None:
        async for message in heap.pop():
            async with message:
                found.append(message.data)
            if len(found) == 3:
                return

    consuming = asyncio.create_task(consume())
    for number in range(3):
        await heap.enqueue(number)
    await consuming
    assert found == [0, 1, 2]


@on_heap
async def test_a_message_is_enqueued_once(heap: topics.Heap) -> None:
    first = await heap.enqueue("one", sequence=7)
    again = await heap.enqueue("one", sequence=7)
    assert (again.message_id, again.partition, again.duplicate) == (first.message_id, first.partition, True)
    batch = await heap.enqueue_many([{"payload": 1}, {"payload": 2}], transaction_id="t1")
    same = await heap.enqueue_many([{"payload": 1}, {"payload": 2}], transaction_id="t1")
    assert [each.message_id for each in same.messages] == [each.message_id for each in batch.messages]
    assert (await heap.stats()).total_messages == 3


@on_heap
async def test_what_is_refused_says_why_and_changes_nothing(heap: topics.Heap) -> None:
    bad: Any = [{"payload": 1}, {"payload": 2, "prio": 1}]
    with pytest.raises(errors.InvalidRequest, match=r"messages\[1\]\. has no field prio"):
        await heap.enqueue_many(bad)
    with pytest.raises(errors.InvalidRequest, match="JSON"):
        await heap.enqueue(object())
    with pytest.raises(errors.InvalidRequest, match="prefetch must be"):
        await anext(heap.pop(prefetch=0))
    await heap.configure(max_payload_bytes=4)
    with pytest.raises(errors.RecordTooLarge, match="payload size"):
        await heap.enqueue(b"12345")
    assert (await heap.stats()).total_messages == 0


@on_heap
async def test_leases_are_kept_given_back_and_named_when_they_are_gone(heap: topics.Heap) -> None:
    await heap.enqueue_many([{"payload": n} for n in range(3)])
    one, two, three = await heap.take(3, visibility_ms=60_000)
    before_ms = one.deadline_ms
    assert await one.extend(120_000) and one.deadline_ms > before_ms
    assert await two.nack(0, reason="no")
    assert await three.release()
    acked = await heap.ack([one.lease_token, two.lease_token])
    assert (acked.acked, [(lost.place) for lost in acked.lost]) == (1, [1])
    again = {message.data: message for message in await heap.take(2)}
    assert (again[1].attempts, again[2].attempts) == (1, 0)
    extended = await heap.extend([again[1].lease_token, "nonsense"], 1000)
    assert (extended.extended, [lost.place for lost in extended.lost]) == (1, [1])
    assert (await heap.nack([again[2].lease_token], backoff_ms=60_000, reason="later")).nacked == 1
    shown = await heap.peek()
    assert [message.state for message in shown.messages] == [MessageState.LEASED, MessageState.DELAYED]


@on_heap
async def test_dead_letters_are_looked_at_replayed_and_deleted(heap: topics.Heap) -> None:
    await heap.enqueue_many([{"payload": n, "priority": n, "max_retries": 0} for n in range(3)])
    for message in await heap.take(3):
        await message.nack(reason=f"no {message.data}")
    await until(heap, lambda stats: stats.dlq_messages == 3)
    letters = [letter async for letter in heap.dead_letters()]
    assert [(letter.payload, letter.attempts, letter.history[0].reason) for letter in letters] == [
        (b"0", 1, "no 0"),
        (b"1", 1, "no 1"),
        (b"2", 1, "no 2"),
    ]
    assert {letter.history[0].consumer for letter in letters} == {"me"}
    one = await heap.dead_letter(letters[1].message_id)
    assert one == letters[1] and one.dlq_topic == "jobs.dlq"
    with pytest.raises(errors.MessageNotFound):
        await heap.dead_letter("01M7GACJNJ0000000000000099")
    assert (await heap.replay([letters[2].message_id])).done_count == 1
    (back,) = await heap.take()
    assert (back.data, back.attempts) == (2, 0)
    assert (await heap.delete_dead(limit=1)).done_count == 1
    assert (await heap.delete_dead()).done_count == 1
    assert [letter async for letter in heap.dead_letters()] == []


@on_heap
async def test_single_messages_are_changed_taken_back_and_given_up(heap: topics.Heap) -> None:
    ids = [(await heap.enqueue(n, priority=n)).message_id for n in range(4)]
    assert (await heap.reprioritize(ids[3], -5)).previous_priority == 3
    await heap.cancel(ids[0])
    assert (await heap.move_to_dlq(ids[1], reason="by hand")).dlq_topic == "jobs.dlq"
    held = await heap.take(4)
    assert [message.data for message in held] == [3, 2]
    with pytest.raises(errors.MessageLeased):
        await heap.cancel(ids[2])
    with pytest.raises(errors.MessageNotFound):
        await heap.reprioritize(ids[0], 1)
    assert (await heap.purge()).purged == 2
    assert await held[0].ack() is False
    assert [letter.reason async for letter in heap.dead_letters()] == ["by hand"]


@on_heap
async def test_who_waits_for_messages_is_told_that_the_heap_is_gone(heap: topics.Heap) -> None:
    await heap.enqueue("only")
    async with aclosing(heap.pop()) as messages:
        await (await anext(messages)).ack()
        waiting = asyncio.ensure_future(anext(messages))
        await heap.stats()
        await heap.drop()
        with pytest.raises(errors.TopicNotFound, match="jobs"):
            await waiting
