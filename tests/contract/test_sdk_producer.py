from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.client.rig import on_loop, soon, take
from tests.contract.sdk import each_form, opened
from topics import Delivered, Record, Topic, errors
from topics.core.partition import partition_of


async def datas(topic: Topic, count: int, partition: int = 0) -> list[object]:
    events = await take(topic.follow(partition=partition), count)
    return [event.data for event in events if isinstance(event, Record)]


@each_form
@on_loop
async def test_records_arrive_once_and_in_order(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        async with orders.producer(batch_records_max=7) as producer:
            deliveries = [await producer.send(n) for n in range(100)]
        assert [await delivery for delivery in deliveries] == [
            Delivered(topic="orders", partition=0, seq=seq) for seq in range(1, 101)
        ]
        assert await datas(orders, 100) == list(range(100))
        assert (await orders.state()).head_seq == 100


@each_form
@on_loop
async def test_a_batch_leaves_when_it_is_large_enough_and_not_before(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        hour_ms = 3_600_000
        by_count = orders.producer(linger_ms=hour_ms, batch_records_max=3)
        deliveries = [await by_count.send(n) for n in range(4)]
        assert [(await soon(delivery.result())).seq for delivery in deliveries[:3]] == [1, 2, 3]
        assert not deliveries[3].done()
        await soon(by_count.flush())
        assert deliveries[3].done()
        by_bytes = orders.producer(linger_ms=hour_ms, batch_bytes_max=1000)
        first, second = await by_bytes.send("x" * 600), await by_bytes.send("y" * 600)
        assert (await soon(first.result())).seq == 5
        await soon(by_bytes.close())
        assert (await second).seq == 6
        by_time = orders.producer(linger_ms=1)
        assert (await soon((await by_time.send(1)).result())).seq == 7


@each_form
@on_loop
async def test_one_producer_for_many_topics(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        async with client.producer() as producer:
            for n in range(20):
                await producer.send(f"t{n % 3}", n)
        for number in range(3):
            assert await datas(client.topic(f"t{number}"), 6) == list(range(number, 18, 3))


@each_form
@on_loop
async def test_a_key_picks_the_partition_it_always_picks(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("events")
        await events.create(partitions=4)
        async with events.producer() as producer:
            for n in range(40):
                delivery = await producer.send(n, key=f"customer-{n % 8}")
            assert (await delivery).partition == partition_of("customer-7", 4)
            with pytest.raises(errors.InvalidRequest, match="give one of them"):
                await producer.send(1, key="a", partition=1)
        for partition in range(4):
            mine = [n for n in range(40) if partition_of(f"customer-{n % 8}", 4) == partition]
            assert await datas(events, len(mine), partition) == mine


@each_form
@on_loop
async def test_a_topic_is_made_as_the_producer_says(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        async with client.producer(config={"partitions": 2, "cap_records": 5}, node="n1") as producer:
            await producer.send("made", 1, key="k")
        state = await client.topic("made").state()
        assert (state.partitions, state.config.cap_records) == (2, 5)
        (record,) = (await client.topic("made").diff(partition=partition_of("k", 2))).records
        assert record.node == "n1"
        with pytest.raises(errors.TopicNotFound):
            async with client.producer(create=False) as producer:
                await producer.send("missing", 1)


@each_form
@on_loop
async def test_everything_a_record_has_goes_with_it(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        async with orders.producer() as producer:
            await producer.send(b"\x00\xff", tag="t", node="n", meta={"k": "v"}, content_type="image/png")
            await producer.send(None)
        first, second = (await orders.diff()).records
        assert (first.data, first.tag, first.node) == (b"\x00\xff", "t", "n")
        assert first.meta == {"k": "v", "$encoding": "base64", "content-type": "image/png"}
        assert (second.data, second.meta) == (None, None)


@each_form
@on_loop
async def test_what_is_no_json_is_refused_where_it_is_sent(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client, client.topic("orders").producer() as producer:
        for wrong in (object(), float("nan")):
            with pytest.raises(errors.InvalidRequest, match="data cannot be written as JSON"):
                await producer.send(wrong)
        with pytest.raises(errors.InvalidRequest, match="linger_ms must be a whole number"):
            client.producer(linger_ms=-1)


@each_form
@on_loop
async def test_a_refused_record_does_not_take_others_with_it(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path, max_record_bytes=100) as client:
        orders = client.topic("orders")
        producer = orders.producer(linger_ms=10_000)
        deliveries = [await producer.send("x" * 200 if n == 5 else n) for n in range(11)]
        with pytest.raises(errors.RecordTooLarge):
            await producer.flush()
        assert [n for n, delivery in enumerate(deliveries) if delivery.error is not None] == [5]
        assert await datas(orders, 10) == [n for n in range(11) if n != 5]
        await producer.flush()
        await producer.close()


@each_form
@on_loop
async def test_a_failure_that_was_looked_at_is_not_told_again(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        jobs = client.topic("jobs")
        await jobs.create(cap_records=1, discard="reject")
        async with jobs.producer(batch_records_max=1) as producer:
            await producer.send(1)
            delivery = await producer.send(2)
            with pytest.raises(errors.TopicFull):
                await delivery
        with pytest.raises(errors.TopicFull) as told:
            async with jobs.producer() as producer:
                await producer.send(3)
        assert told.value.__notes__ == ["1 records of this producer were not delivered since its last flush"]


@each_form
@on_loop
async def test_a_full_buffer_makes_senders_wait_in_order(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        async with orders.producer(buffer_bytes_max=1000, linger_ms=0) as producer:
            sends = [asyncio.create_task(producer.send([n, "x" * 300])) for n in range(30)]
            await soon(asyncio.gather(*sends))
            assert producer._producer._room.used_bytes <= 1000
        assert [data[0] for data in await datas(orders, 30)] == list(range(30))


@each_form
@on_loop
async def test_two_lives_of_a_named_producer_fence_each_other(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        old = orders.producer(id="billing", epoch=1)
        await (await old.send("old"))
        async with orders.producer(id="billing", epoch=2) as new:
            await new.send("new")
        with pytest.raises(errors.ProducerFenced):
            await (await old.send("too late"))
        await old.close()
        assert await datas(orders, 2) == ["old", "new"]


@each_form
@on_loop
async def test_closing_the_client_delivers_what_is_buffered(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        producer = orders.producer(linger_ms=3_600_000)
        delivery = await producer.send("last words")
        await client.close()
        assert (await delivery).seq == 1
        with pytest.raises(errors.ShuttingDown):
            await producer.send("too late")
