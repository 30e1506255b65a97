"""Consumer groups through the SDK, in each of its forms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from tests.contract.sdk import each_form, opened, opened_in_time
from topics import errors


@asynccontextmanager
async def looping(batches: AsyncIterator[topics.GroupBatch]) -> AsyncIterator[AsyncIterator[topics.GroupBatch]]:
    """A loop that is left when the block is."""
    assert isinstance(batches, AsyncGenerator)
    async with aclosing(batches):
        yield batches


async def filled(client: topics.Client, count: int = 6, cap_records: int = 0) -> topics.Topic:
    topic = client.topic("orders")
    await topic.create(cap_records=cap_records)
    await topic.write_many([{"data": number, "tag": f"tag-{number}"} for number in range(1, count + 1)])
    return topic


async def _next(batches: AsyncIterator[topics.GroupBatch]) -> topics.GroupBatch:
    return await anext(batches)


def seqs(batch: topics.GroupBatch) -> list[int]:
    return [record.seq for record in batch.records]


@each_form
@on_loop
async def test_records_are_taken_acked_and_given_back(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        group = (await filled(client)).group("billing", consumer="c1")
        assert (group.name, group.topic, group.consumer) == ("billing", "orders", "c1")
        assert repr(group) == "<Group billing of orders>"
        batch = await group.take(4)
        assert seqs(batch) == [1, 2, 3, 4] and batch.records[0].tag == "tag-1"
        assert (batch.deliveries, batch.consumer, batch.committed_seq, batch.lag) == (1, "c1", 0, 6)
        assert (await group.ack(batch, upto_seq=2)).committed_seq == 2
        assert (await group.extend(batch, visibility_ms=120_000)).extended == 2
        assert (await group.nack(batch)).nacked == 2
        again = await group.take()
        assert (seqs(again), again.deliveries) == ([3, 4], 2)
        assert (await group.ack(batch)).acked == 0, "its claim is not that one any more"
        assert (await group.ack(again)).committed_seq == 4
        assert (await group.ack(6)).committed_seq == 6
        assert (await group.take()).last_seq == 0


@each_form
@on_loop
async def test_a_loop_acks_when_the_next_is_asked_for(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        group = (await filled(client)).group("billing")
        async with looping(group.consume(2)) as batches:
            assert seqs(await anext(batches)) == [1, 2]
            assert (await group.state()).committed_seq == 0
            assert seqs(await anext(batches)) == [3, 4]
            assert (await group.state()).committed_seq == 2
        state = await group.state()
        assert (state.committed_seq, state.in_flight, state.waiting) == (2, 0, 2), "the last batch was given back"


@each_form
@on_loop
async def test_a_loop_that_acks_by_hand(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        group = (await filled(client)).group("billing")
        async with looping(group.consume(2, auto_ack=False)) as batches:
            first, second = await anext(batches), await anext(batches)
            assert (seqs(first), seqs(second)) == ([1, 2], [3, 4])
            assert (await group.ack(second)).committed_seq == 0
            assert (await group.ack(first)).committed_seq == 4


@each_form
@on_loop
async def test_a_batch_is_kept_while_somebody_works_on_it(tmp_path: Path, form: str) -> None:
    async with opened_in_time(form, tmp_path) as client:
        group = (await filled(client)).group("billing")
        async with looping(group.consume(2, visibility_ms=1500)) as batches:
            batch = await anext(batches)
            assert batch.visibility_ms == 1500
            while (await group.state()).ranges[0].deadline <= batch.deadline:
                await settle()
            kept = (await group.state()).ranges[0]
            assert (kept.claim_id, kept.first_seq, kept.last_seq) == (batch.claim_id, 1, 2)
            assert seqs(await anext(batches)) == [3, 4]
            assert (await group.state()).committed_seq == 2


@each_form
@on_loop
async def test_a_batch_that_is_not_kept_is_somebody_elses_in_the_end(tmp_path: Path, form: str) -> None:
    async with opened_in_time(form, tmp_path) as client:
        group = (await filled(client, 2)).group("billing")
        async with looping(group.consume(2, keep=False, visibility_ms=1000)) as batches:
            batch = await anext(batches)
            again = await group.take(wait_ms=30_000)
            assert (seqs(again), again.deliveries) == (seqs(batch), 2)


@each_form
@on_loop
async def test_a_loop_waits_for_records_to_come(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        topic = await filled(client, 1)
        async with looping(topic.group("billing").consume(start="latest")) as batches:
            waiting = asyncio.create_task(_next(batches))
            await settle()
            while not await topic.groups():
                await settle()
            await topic.write("new")
            assert [record.data for record in (await soon(waiting)).records] == ["new"]


@each_form
@on_loop
async def test_who_gives_up_waiting_keeps_nothing(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        topic = await filled(client, 1)
        group = topic.group("billing")
        waiting = asyncio.ensure_future(group.take(start="latest", wait_ms=30_000))
        while not await topic.groups():
            await settle()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await topic.write("new")
        batch = await group.take(wait_ms=30_000)
        assert seqs(batch) == [2] and batch.deliveries in (1, 2), "at once, or given back at once"


@each_form
@on_loop
async def test_where_a_group_begins_and_where_it_is_put(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        topic = await filled(client)
        assert seqs(await topic.group("a").take(start=3)) == [3, 4, 5, 6]
        assert seqs(await topic.group("b").take(start="latest")) == []
        assert seqs(await topic.group("c").take(1, start=datetime(2020, 1, 1, tzinfo=UTC))) == [1]
        group = topic.group("c")
        placed = await group.reset(5)
        assert (placed.created, placed.committed_seq) == (False, 4)
        assert seqs(await group.take()) == [5, 6]
        assert (await topic.group("d").reset("latest")).created
        with pytest.raises(errors.InvalidRequest, match="start must be"):
            await group.take(start="soon")
        with pytest.raises(errors.InvalidRequest, match="with a time zone"):
            await group.reset(datetime(2020, 1, 1))


@each_form
@on_loop
async def test_pause_state_list_and_drop(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        topic = await filled(client)
        group = topic.group("billing", consumer="c1")
        await group.take(2)
        assert (await group.pause()).paused
        assert (await group.take()).paused
        assert not (await group.resume()).paused
        state = await group.state()
        assert (state.group, state.start_seq, state.next_seq, state.lag, state.in_flight) == ("billing", 1, 3, 6, 2)
        (member,) = state.members
        assert (member.consumer, member.claims, member.seqs) == ("c1", 1, 2)
        (found,) = state.ranges
        assert (found.first_seq, found.last_seq, found.kind) == (1, 2, topics.RangeKind.CLAIMED)
        assert state.oldest_unacked_seq == 1 and state.oldest_unacked_ts
        assert await topic.groups() == [state]
        assert (await group.drop()).deleted
        assert await topic.groups() == []
        with pytest.raises(errors.GroupNotFound):
            await group.state()
        with pytest.raises(errors.GroupNotFound):
            await group.nack(1)
        acked = await group.ack(3)
        assert (acked.acked, acked.committed_seq) == (3, 3), "an ack is a first contact too"
        batch = await group.take()
        assert batch.first_seq == 4


@each_form
@on_loop
async def test_what_was_lost_is_told(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        topic = await filled(client, 2, cap_records=2)
        group = topic.group("billing")
        await group.reset(1)
        await topic.write_many([{"data": 3}, {"data": 4}])
        batch = await group.take()
        assert batch.tombstone is not None
        assert (batch.tombstone.gap_from, batch.tombstone.gap_to, batch.tombstone.reason) == (1, 2, topics.Reason.CAP)
        await group.ack(batch)
        assert (await group.state()).losses == ()


@each_form
@on_loop
async def test_protected_records_stay_until_they_are_acked(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        topic = client.topic("orders")
        await topic.create(cap_records=2, protect_groups=["billing"])
        await topic.write_many([{"data": number} for number in range(5)])
        assert (await topic.state()).count == 5, "it never came, and so needs everything"
        group = topic.group("billing")
        batch = await group.take(4)
        assert (await group.state()).protected
        await group.ack(batch)
        state = await topic.state()
        assert (state.count, state.evict_floor) == (2, 4)


@each_form
@on_loop
async def test_all_partitions_have_their_turn(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        topic = client.topic("orders")
        await topic.create(partitions=3)
        for partition in range(3):
            await topic.write_many([{"data": partition}] * 4, partition=partition)
        group = topic.group("billing")
        got = []
        async with looping(group.consume(2)) as batches:
            for _ in range(6):
                batch = await anext(batches)
                got.append((batch.partition, seqs(batch)))
        assert sorted(got) == [(partition, part) for partition in range(3) for part in ([1, 2], [3, 4])]
        states = await topic.groups()
        assert sum(state.committed_seq for state in states) == 10, "all but the last batch"
        assert seqs(await topic.group("other").take(partition=2)) == [1, 2, 3, 4]


@on_loop
async def test_a_loop_ends_with_its_group(tmp_path: Path) -> None:
    async with opened("embedded", tmp_path) as client:
        group = (await filled(client, 1)).group("billing")
        async with looping(group.consume(auto_ack=False)) as batches:
            await anext(batches)
            waiting = asyncio.create_task(_next(batches))
            await settle()
            await group.drop()
            with pytest.raises(errors.GroupNotFound, match="was dropped"):
                await soon(waiting)


def test_plain_code_consumes_as_well(tmp_path: Path) -> None:
    with topics.sync.open(tmp_path) as client:
        topic = client.topic("orders")
        topic.write_many([{"data": number} for number in range(4)])
        group = topic.group("billing", consumer="c")
        got = []
        for batch in group.consume(2):
            got += [record.data for record in batch.records]
            if len(got) == 4:
                break
        assert got == [0, 1, 2, 3]
        assert group.state().committed_seq == 2
        assert [state.group for state in topic.groups()] == ["billing"]
        assert group.take(1).topic == "orders"
