"""The tables that say how things stand: queues and heaps by the state of their jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop
from tests.sqlengine.rig import engine_of
from topics.sql.systemcolumns import columns_of
from topics.sqlengine import systemtables
from topics.sqlengine.access import FullAccess


@on_loop
async def test_queues_and_heaps_count_their_jobs_by_state(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        queue = client.queue("jobs")
        await queue.create(dead_letter="jobs.dead")
        await queue.put_many([{"data": number} for number in range(4)])
        await queue.put(4, delay_ms=60_000)
        await queue.claim(2)
        await client.topic("best").create(type="heap", mode="max", partitions=2)
        await client.topic("best").write("x", meta={"$priority": "5"}, partition=1)
        await client.topic("log").write(1)
        (queues,) = await client.sql("SELECT * FROM system.queues")
        assert [column.name for column in queues.columns] == [column.name for column in columns_of("queues")]
        assert queues.rows == [["jobs", 0, 2, 2, 1, 0, "jobs.dead"]]
        (heaps,) = await client.sql("SELECT * FROM system.heaps ORDER BY partition_id")
        assert [column.name for column in heaps.columns] == [column.name for column in columns_of("heaps")]
        assert heaps.rows == [
            ["best", 0, "max", 0, 0, 0, 0, "best.dlq", 0, 0],
            ["best", 1, "max", 1, 0, 0, 0, "best.dlq", 1, heaps.rows[1][-1]],
        ]
        (joined,) = await client.sql("SELECT t.type, count(*) FROM system.topics t GROUP BY 1 ORDER BY 1")
        assert joined.rows == [["heap", 1], ["log", 3], ["queue", 1]], "each has a topic for its dead letters"


@on_loop
async def test_topics_say_when_they_changed_and_which_routes_they_have(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").create()
        asked = "SELECT updated_at >= created_at, routes FROM system.topics"
        assert (await client.sql(asked))[0].rows == [[True, []]]
        await client.sql("REGISTER TABLE shop.orders USING DELTA LOCATION 's3://bucket/orders' KEY (id)")
        await client.sql(
            "ALTER TOPIC orders ADD SOURCE shop.orders ON INSERT WHERE paid AND total > 5 WITH (payload = 'full')"
        )
        route = {
            "table_id": "shop.orders",
            "op": "insert",
            "payload_mode": "full",
            "filter_expr": "paid AND total > 5",
            "partition_key_expr": None,
        }
        assert (await client.sql(asked))[0].rows == [[True, [route]]]
        await client.sql("ALTER TOPIC orders SET RETENTION WITH (retention_seconds = 60, retention_max_bytes = 1000)")
        kept = "SELECT retention_seconds, retention_max_bytes FROM system.topics"
        assert (await client.sql(kept))[0].rows == [[60, 1000]]
        await client.sql("ALTER TOPIC orders SET (retention_max_bytes = NULL)")
        assert (await client.sql(kept))[0].rows == [[60, None]]
        await client.sql("ALTER TOPIC orders CLEAR RETENTION")
        assert (await client.sql(kept))[0].rows == [[None, None]]


@on_loop
async def test_many_topics_are_looked_at_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemtables, "SLICE", 2)
    async with topics.open(tmp_path) as client:
        names = [f"t{number}" for number in range(5)]
        for name in names:
            await client.topic(name).create()
        engine = engine_of(client)
        others_turn = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(others_turn.set_result, None)
        table = await systemtables.SystemTables(engine).table("topics", FullAccess())
        assert table.arrow().column("topic_id").to_pylist() == names
        assert others_turn.done(), "others had their turn meanwhile"
        others_turn = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(others_turn.set_result, None)
        (shown,) = await client.sql("SHOW TOPICS LIKE 't_'")
        assert [row[0] for row in shown.rows] == names
        assert others_turn.done(), "and while topics were shown"
        slices = [len(rows) async for rows in systemtables.SystemTables(engine).slices("topics", FullAccess())]
        assert slices == [2, 2, 1], "rows are kept for one slice only"
        assert (await client.sql_arrow("SHOW TOPICS")).num_rows == 5
