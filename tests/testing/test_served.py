from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from topics import errors, sync, testing
from topics.testing import SimClock


@on_loop
async def test_a_server_in_memory_keeps_what_it_has_over_a_restart() -> None:
    async with testing.server() as server, server.client() as client:
        await client.topic("orders").write(1, config={"durability": "fsync"})
        url = server.url
        await server.stop()
        with pytest.raises(errors.ConnectionFailed):
            async with server.client(attempts_max=1) as other:
                await other.topic("orders").state()
        await server.start()
        assert server.url == url
        assert (await client.topic("orders").write(2)).first_seq == 2


@on_loop
async def test_time_is_the_test_s_own() -> None:
    clock = SimClock(now_ms=1_000_000)
    async with testing.server(clock=clock) as server, server.client() as client:
        brief = client.topic("brief")
        await brief.create(ttl_ms=60_000)
        await brief.write(1)
        assert [record.ts for record in (await brief.diff()).records] == [1_000_000]
        server.pass_time(60_001)
        page = await brief.diff()
        assert page.records == [] and page.tombstone is not None and page.tombstone.reason == "ttl"


@on_loop
async def test_what_is_due_happens_when_time_passes() -> None:
    async with testing.server(stage_ttl_ms=1000) as server, server.client() as client:
        await client.topic("orders").create()
        await client.stage("s", "orders", [{"data": 1}])
        server.pass_time(5000)
        with pytest.raises(errors.StageNotFound):
            await client.publish(["s"], producer=("p", 1))


@on_loop
async def test_time_passes_while_it_is_stopped_and_counts_when_it_is_back() -> None:
    async with testing.server() as server, server.client() as client:
        brief = client.topic("brief")
        await brief.create(ttl_ms=1000, durability="fsync")
        await brief.write(1)
        await server.stop()
        server.pass_time(2000)
        await server.start()
        assert (await brief.diff()).records == []


@on_loop
async def test_a_directory_is_kept(tmp_path: Path) -> None:
    for expected in (1, 2):
        async with testing.server(tmp_path) as server, server.client() as client:
            assert (await client.topic("orders").write(1)).first_seq == expected
    with sync.open(tmp_path) as here:
        assert here.topic("orders").state().count == 2


@on_loop
async def test_settings_are_keywords_and_the_environment_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_MAX_RECORD_BYTES", "1")
    async with testing.server(max_batch_records=2) as server, server.client() as client:
        await client.topic("orders").write("more than a byte")
        with pytest.raises(errors.BatchTooLarge):
            await client.topic("orders").write_many([{"data": n} for n in range(3)])


def test_grpc_is_there_for_those_who_ask_without_asyncio() -> None:
    with testing.running_server(no_grpc=False) as server, server.client(grpc=server.grpc_address) as client:
        client.heap("jobs").create()
        assert client.heap("jobs").info().topic == "jobs"


def test_the_same_without_asyncio(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with testing.running_server(clock=SimClock()) as server, server.client() as client:
        brief = client.topic("brief")
        brief.create(ttl_ms=1000)
        brief.write(1)
        server.pass_time(2000)
        assert brief.diff().records == []
        server.stop()
        server.start()
        assert brief.write(2).first_seq == 2
    assert set(threading.enumerate()) == before


@on_loop
async def test_nothing_is_left_behind() -> None:
    before = asyncio.all_tasks()
    async with testing.server() as server, server.client() as client:
        await client.topic("orders").write(1)
    assert asyncio.all_tasks() == before


def test_a_test_class_is_not_collected() -> None:
    assert not testing.TestServer.__test__
