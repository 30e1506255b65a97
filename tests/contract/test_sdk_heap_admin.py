"""A heap's config, partitions, lists and dead letters, and pops that are given up, in each form of the client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from tests.contract.heaps import each_form, on_heap, opened, until
from topics import Durability, errors, testing
from topics.client import client as clients
from topics.client import heap as heaps
from topics.heapmodel import DeadFilter


@each_form
@on_loop
async def test_lists_go_on_behind_a_page(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "HEAPS_PAGE", 2)
    monkeypatch.setattr(heaps, "DEAD_PAGE", 2)
    async with opened(form, tmp_path) as client:
        for name in ("a", "b", "c", "d"):
            await client.heap(name).create()
        assert [info.topic async for info in client.heaps()] == ["a", "b", "c", "d"]
        await client.heap("e").create()
        assert [info.topic async for info in client.heaps()] == ["a", "b", "c", "d", "e"]
        heap = client.heap("a")
        for number in range(5):
            message_id = (await heap.enqueue(number)).message_id
            await heap.move_to_dlq(message_id, reason="even" if number % 2 == 0 else "odd")
        assert [letter.payload async for letter in heap.dead_letters()] == [b"0", b"1", b"2", b"3", b"4"]
        assert [letter.payload async for letter in heap.dead_letters(reason="ev*")] == [b"0", b"2", b"4"]


@on_heap
async def test_dead_letters_are_chosen_by_everything_that_is_given(heap: topics.Heap) -> None:
    for priority in range(4):
        message_id = (await heap.enqueue(priority, priority=priority)).message_id
        await heap.move_to_dlq(message_id, reason="by hand")
    await until(heap, lambda stats: stats.dlq_messages == 4)
    died_ms = [letter.died_ms async for letter in heap.dead_letters()]

    async def chosen(**how: int) -> list[int]:
        page = await heap._transport.dead_letters("jobs", DeadFilter(**how), cursor="", limit=10)
        return [int(letter.payload) for letter in page.messages]

    assert await chosen(priority_min=1, priority_max=2) == [1, 2]
    assert await chosen(died_from_ms=died_ms[0], died_before_ms=died_ms[-1] + 1) == [0, 1, 2, 3]
    assert await chosen(died_from_ms=died_ms[-1] + 1) == []
    assert (await heap._transport.delete_dead("jobs", DeadFilter(died_before_ms=died_ms[0]), 0)).done_count == 0


@each_form
@on_loop
async def test_a_heap_says_who_it_is(form: str, tmp_path: Path) -> None:
    async with opened(form, tmp_path) as client:
        named, unnamed = client.heap("jobs", consumer="me"), client.heap("jobs")
        assert (named.name, named.consumer, repr(named)) == ("jobs", "me", "<Heap jobs>")
        assert unnamed.consumer and unnamed.consumer != client.heap("jobs").consumer


@each_form
@on_loop
async def test_what_a_config_says_holds(form: str, tmp_path: Path) -> None:
    async with opened(form, tmp_path) as client:
        heap = client.heap("jobs")
        made = (await heap.create(retention_ms=5000, compression=True, dead_letter=None)).config
        assert (made.retention_ms, made.compression, made.dlq_enabled, made.dlq_topic) == (5000, True, False, None)
        changed = (await heap.configure(compression=False, dead_letter="jobs.dlq", lease_ms=7000)).config
        assert (changed.compression, changed.dlq_topic, changed.visibility_timeout_ms) == (False, "jobs.dlq", 7000)
        assert changed.retention_ms == 5000, "what is not named stays"
        await client.topic("log").create()
        for name, kind in (("jobs", "heap"), ("log", "log")):
            with pytest.raises(errors.TopicExists, match=f'topic "{name}" already exists as a {kind}'):
                await client.heap(name).create(lease_ms=1)
        assert (await heap.info()).config == changed
        with pytest.raises(errors.NotAHeap):
            await client.heap("log").configure(lease_ms=1)


@each_form
@on_loop
async def test_more_of_a_config_than_a_way_can_say_is_said_or_refused(form: str, tmp_path: Path) -> None:
    async with opened(form, tmp_path) as client:
        heap = client.heap("jobs")
        if form != "grpc":
            made = (await heap.create(dead_letter="graves", durability="disk")).config
            assert (made.dlq_topic, made.durability) == ("graves", Durability.DISK)
            return
        with pytest.raises(errors.InvalidRequest, match=r"dead_letter must be None or .jobs\.dlq. over gRPC"):
            await heap.create(dead_letter="graves")
        with pytest.raises(errors.InvalidRequest, match="durability of a heap cannot be set over gRPC"):
            await heap.create(durability="disk")
        assert [info async for info in client.heaps()] == []


@each_form
@on_loop
async def test_a_config_that_is_wrong_makes_nothing(form: str, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"lease": 5}, r"config has no field lease; did you mean lease_ms\?"),
        ({"lease_ms": 1.5}, "lease_ms must be an? "),
        ({"retention_ms": "long"}, "retention_ms must be an? "),
        ({"partitions": -1}, "partitions must be an? "),
        ({"mode": "best"}, "mode must be "),
        ({"compression": "yes"}, "compression must be true or false"),
    ]
    async with opened(form, tmp_path) as client:
        for config, said in wrong:
            with pytest.raises(errors.InvalidRequest, match=said):
                await client.heap("jobs").create(**config)
        assert [info async for info in client.heaps()] == []


@each_form
@on_loop
async def test_partitions_are_popped_and_looked_at_by_number(form: str, tmp_path: Path) -> None:
    async with opened(form, tmp_path) as client:
        heap = client.heap("jobs")
        await heap.create(partitions=3)
        for partition in range(3):
            await heap.enqueue(partition, partition=partition)
        assert [message.data for message in await heap.take(3, partitions=[2])] == [2]
        shown = await heap.peek(partition=1)
        assert [(message.payload, message.partition) for message in shown.messages] == [(b"1", 1)]
        assert (await heap.purge(partition=0)).purged == 1
        assert [message.data for message in await heap.take(3)] == [1]


@on_loop
async def test_a_pop_that_is_given_up_as_its_message_comes_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever moment: before the server has leased it, while the answer is on its way, when it has come."""
    monkeypatch.setattr("topics.client.connection.LINGER_S_MAX", 0.1)
    async with testing.server(drain_ms=1) as server, server.client() as client:
        heap = client.heap("jobs")
        await heap.create()
        for turns in range(25):
            waiting = asyncio.create_task(heap.take(wait_ms=30_000, visibility_ms=3_600_000))
            await settle()
            enqueuing = asyncio.create_task(heap.enqueue(turns))
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            (given_up,) = await asyncio.gather(waiting, return_exceptions=True)
            await soon(enqueuing)
            if isinstance(given_up, list):
                (message,) = given_up
            else:
                (message,) = await soon(heap.take(wait_ms=30_000))
            assert (message.data, message.attempts) == (turns, 0)
            await message.ack()


@on_loop
async def test_a_pop_that_is_given_up_as_the_client_is_closed_gives_its_message_back() -> None:
    async with testing.server(drain_ms=1) as server, server.client() as other:
        theirs = other.heap("jobs")
        await theirs.create()
        await theirs.enqueue("one")
        await other.heap("empty").create()
        for turns in range(25):
            async with server.client() as client:
                takes = [client.heap(name).take(visibility_ms=3_600_000) for name in ("jobs", "empty")]
                taking = [asyncio.create_task(take) for take in takes]
                for _ in range(turns):
                    await asyncio.sleep(0)
                for each in taking:
                    each.cancel()
                given_up, _ = await asyncio.gather(*taking, return_exceptions=True)
                for message in given_up if isinstance(given_up, list) else []:
                    await message.release()
            (message,) = await soon(theirs.take(wait_ms=30_000))
            assert (message.data, message.attempts) == ("one", 0)
            await message.release()
