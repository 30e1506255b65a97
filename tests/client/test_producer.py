"""What a producer does when the server does not do its part; the rest is in tests/contract/test_sdk_producer.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.client.rig import on_loop, settle, soon
from tests.client.scripted import Script, Scripted, Side, refusing, scripted
from topics import Client, TopicState, Written, connect, errors, testing
from topics.client import backoff, lane
from topics.client.produceroptions import ProducerOptions
from topics.client.transport import WriteRequest

DONE = b'{"topic":"orders","first_seq":%d,"last_seq":%d,"head_seq":9,"count":1,"created":false,"deduped":false}'


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_MS", 0)
    monkeypatch.setattr(backoff, "LONGEST_MS", 0)


@asynccontextmanager
async def talking(*scripts: Script, **options: Any) -> AsyncIterator[tuple[Scripted, Client]]:
    async with scripted(*scripts) as server, connect(str(server.address), **options) as client:
        yield server, client


async def asked(side: Side) -> dict[str, Any]:
    found = json.loads((await side.request()).partition(b"\r\n\r\n")[2])
    assert isinstance(found, dict)
    return found


def done(side: Side, first_seq: int, count: int) -> None:
    body = DONE % (first_seq, first_seq + count - 1)
    side.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def never(side: Side) -> None:
    await side.request()
    await side.ended()


@on_loop
async def test_a_batch_keeps_its_name_through_every_try() -> None:
    names: list[tuple[str, int, int]] = []

    async def script(side: Side) -> None:
        while True:
            body = await asked(side)
            names.append((body["producer_id"], body["epoch"], body["sequence"]))
            match len(names):
                case 1:
                    return
                case 2:
                    side.send(refusing("429 Too Many", "throttled", detail='{"retry_after_ms":1}'))
                case 3:
                    side.send(refusing("503 Service Unavailable", "not_ready"))
                case _:
                    done(side, 1 + names[-1][2], 1)

    async with talking(script) as (_, client):
        producer = client.topic("orders").producer(id="p", epoch=7, batch_records_max=1)
        deliveries = [await producer.send(n) for n in range(2)]
        assert [(await soon(each.result())).seq for each in deliveries] == [1, 2]
        assert names == [("p", 7, 0)] * 4 + [("p", 7, 1)]


@on_loop
async def test_a_batch_that_is_given_up_is_fenced_off() -> None:
    epochs: list[tuple[int, int]] = []

    async def script(side: Side) -> None:
        while True:
            body = await asked(side)
            epochs.append((body["epoch"], body["sequence"]))
            if epochs[-1] == (7, 1):
                side.send(refusing("503 Service Unavailable", "not_ready"))
            else:
                done(side, 1, 1)

    async with talking(script, attempts_max=1) as (_, client):
        producer = client.topic("orders").producer(
            id="p", epoch=7, batch_records_max=1, delivery_timeout_ms=0, linger_ms=0
        )
        first, second, third = [await producer.send(n) for n in range(3)]
        await soon(first.result())
        with pytest.raises(errors.NotReady):
            await soon(second.result())
        await soon(third.result())
        assert epochs == [(7, 0), (7, 1), (8, 0)]


@on_loop
async def test_a_new_epoch_begins_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "EPOCH_WRITES_MAX", 2)
    names: list[tuple[int, int]] = []

    async def script(side: Side) -> None:
        while True:
            body = await asked(side)
            names.append((body["epoch"], body["sequence"]))
            done(side, len(names), 1)

    async with talking(script) as (_, client):
        async with client.topic("orders").producer(id="p", epoch=1, batch_records_max=1) as producer:
            for n in range(5):
                await producer.send(n)
        assert names == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]


@on_loop
async def test_one_batch_is_under_way_and_the_next_one_fills() -> None:
    go_on = asyncio.Event()
    sizes: list[int] = []

    async def script(side: Side) -> None:
        seq = 1
        while True:
            count = len((await asked(side))["records"])
            sizes.append(count)
            await go_on.wait()
            done(side, seq, count)
            seq += count

    async with talking(script) as (server, client):
        producer = client.topic("orders").producer(linger_ms=0)
        await producer.send(0)
        while not sizes:
            await asyncio.sleep(0)
        for n in range(1, 50):
            await producer.send(n)
        await settle()
        assert sizes == [1]
        go_on.set()
        await soon(producer.close())
        assert (sizes, server.connection_count) == ([1, 49], 1)


@on_loop
async def test_a_close_that_is_given_up_fails_what_is_left() -> None:
    async with talking(never) as (server, client):
        before = asyncio.all_tasks()
        producer = client.topic("orders").producer(batch_records_max=1)
        deliveries = [await producer.send(n) for n in range(3)]
        while not server.connection_count:
            await asyncio.sleep(0)
        closing = asyncio.create_task(producer.close())
        await settle()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(closing)
        for delivery in deliveries:
            with pytest.raises(errors.ShuttingDown, match="before the record was delivered"):
                await soon(delivery.result())
        assert producer._producer._room.used_bytes == 0
        assert {task for task in asyncio.all_tasks() - before if "serve" not in str(task)} == set()


@on_loop
async def test_a_sender_that_waits_for_room_is_told_of_the_end() -> None:
    async with talking(never) as (_, client):
        producer = client.topic("orders").producer(buffer_bytes_max=1)
        await producer.send(1)
        waiting = asyncio.create_task(producer.send(2))
        await settle()
        closing = asyncio.create_task(producer.close())
        await settle()
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        with pytest.raises(errors.ShuttingDown):
            await soon(waiting)


@on_loop
async def test_giving_up_a_delivery_does_not_take_the_record_back() -> None:
    go_on = asyncio.Event()

    async def script(side: Side) -> None:
        await asked(side)
        await go_on.wait()
        done(side, 1, 1)
        await side.ended()

    async with talking(script) as (_, client):
        producer = client.topic("orders").producer()
        delivery = await producer.send(1)
        waiting = asyncio.ensure_future(delivery.result())
        await settle()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        go_on.set()
        assert (await soon(delivery.result())).seq == 1
        await producer.close()


@on_loop
async def test_a_batch_that_was_refused_for_now_is_written_when_the_server_takes_it() -> None:
    names: list[tuple[int, int]] = []

    async def script(side: Side) -> None:
        while True:
            body = await asked(side)
            names.append((body["epoch"], body["sequence"]))
            if len(names) < 3:
                side.send(refusing("503 Service Unavailable", "not_ready", detail='{"retry_after_ms":"soon"}'))
            else:
                done(side, 1, 1)

    async with talking(script, attempts_max=1) as (_, client):
        producer = client.topic("orders").producer(id="p", epoch=7)
        assert (await soon((await producer.send(1)).result())).seq == 1
        assert names == [(7, 0)] * 3
        await producer.close()


@on_loop
async def test_what_was_delivered_of_a_batch_stays_delivered_when_the_rest_is_given_up() -> None:
    counts: list[int] = []

    async def script(side: Side) -> None:
        while True:
            counts.append(len((await asked(side))["records"]))
            match len(counts):
                case 1:
                    side.send(refusing("400 Bad Request", "invalid_request"))
                case 2:
                    done(side, 1, 1)
                case _:
                    await side.ended()

    async with talking(script) as (_, client):
        producer = client.topic("orders").producer(linger_ms=10_000)
        first, second = [await producer.send(n) for n in range(2)]
        closing = asyncio.create_task(producer.close())
        assert (await soon(first.result())).seq == 1
        while len(counts) < 3:
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        with pytest.raises(errors.ShuttingDown, match="before the record was delivered"):
            await soon(second.result())
        assert first.error is None and counts == [2, 1, 1]


@on_loop
async def test_an_answer_that_does_not_fit_fails_its_records_and_not_the_producer() -> None:
    asked_count = 0

    async def script(side: Side) -> None:
        nonlocal asked_count
        while True:
            await asked(side)
            asked_count += 1
            done(side, 1, 3 if asked_count == 1 else 1)

    async with talking(script) as (_, client):
        producer = client.topic("orders").producer(batch_records_max=1)
        strange, fine = await producer.send(1), await producer.send(2)
        with pytest.raises(errors.Internal, match="says that it wrote 3 records of 1"):
            await soon(strange.result())
        assert (await soon(fine.result())).seq == 1
        await producer.close()


@on_loop
async def test_an_error_of_this_program_leaves_nobody_waiting() -> None:
    async with talking(never) as (_, client):

        async def broken(topic: str, request: WriteRequest) -> Written:
            raise RuntimeError("a bug")

        client._transport.write = broken  # type: ignore[method-assign]
        producer = client.topic("orders").producer(batch_records_max=1)
        for delivery in [await producer.send(n) for n in range(3)]:
            with pytest.raises(RuntimeError, match="a bug"):
                await soon(delivery.result())
        assert producer._producer._room.used_bytes == 0
        await soon(producer.close())


@on_loop
async def test_failures_beyond_those_that_are_remembered_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.client.producer.UNSEEN_FAILURES_MAX", 2)

    async def refuse(side: Side) -> None:
        while True:
            await asked(side)
            side.send(refusing("403 Forbidden", "forbidden"))

    async with talking(refuse) as (_, client):
        producer = client.topic("orders").producer(batch_records_max=1)
        for n in range(5):
            await producer.send(n)
        with pytest.raises(errors.Forbidden) as told:
            await soon(producer.flush())
        assert told.value.__notes__ == ["5 records of this producer were not delivered since its last flush"]
        await soon(producer.close())


@on_loop
async def test_a_producer_that_fails_does_not_keep_a_closing_client_from_delivering_for_others() -> None:
    async with testing.server() as server:
        client = server.client()
        async with client:
            full = client.topic("full")
            await full.create(cap_records=1, discard="reject")
            await full.write("first")
            sent = []
            for _ in range(2):
                await full.producer(linger_ms=3_600_000).send("too much")
                sent.append(await client.topic("orders").producer(linger_ms=3_600_000).send("last words"))
            with pytest.raises(errors.TopicFull) as told:
                await soon(client.close())
            assert told.value.__notes__ == [
                "1 records of this producer were not delivered since its last flush",
                "1 more producers of this client have records that were not delivered",
            ]
            assert sorted([(await soon(each.result())).seq for each in sent]) == [1, 2]


@on_loop
async def test_the_partitions_of_a_topic_are_asked_for_once() -> None:
    async with testing.server() as server, server.client() as client:
        orders = client.topic("orders")
        await orders.create(partitions=4)
        state, calls = client._transport.state, []

        async def counting(topic: str, *, partition: int, touch: bool) -> TopicState:
            calls.append(topic)
            return await state(topic, partition=partition, touch=touch)

        client._transport.state = counting  # type: ignore[method-assign]
        async with orders.producer() as producer:
            sent = [await producer.send(n, key="same") for n in range(3)]
        assert len({(await each.result()).partition for each in sent}) == 1 and calls == ["orders"]


def test_a_producer_without_a_name_is_refused() -> None:
    for wrong in ("", 7):
        with pytest.raises(errors.InvalidRequest, match="id must be a string, not"):
            ProducerOptions(id=wrong, epoch=1)  # type: ignore[arg-type]
