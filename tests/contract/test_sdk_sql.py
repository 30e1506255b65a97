"""Statements through the SDK: the same in process and over HTTP, in asyncio and in plain code."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from tests.client.rig import on_loop, settle, soon
from tests.contract.sdk import each_form, opened
from topics import SqlColumn, errors, sync, testing


@each_form
@on_loop
async def test_results_are_the_same_everywhere(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        created, inserted, selected = await client.sql(
            'CREATE TOPIC orders; INSERT INTO TOPIC orders VALUES (?), (\'{"sku": "B", "big": 12345678901234567890}\');'
            "SELECT data->>'sku' AS sku, data FROM orders ORDER BY seq",
            [{"sku": "A", "list": [1, None]}],
        )
        assert created.message == "topic orders created" and created.row_count == 0
        assert inserted.rows == [["orders", 0, 1, 2]]
        assert selected.columns == [SqlColumn("sku", "VARCHAR"), SqlColumn("data", "JSON")]
        assert selected.rows == [
            ["A", {"sku": "A", "list": [1, None]}],
            ["B", {"sku": "B", "big": 12345678901234567890}],
        ]
        assert selected.dicts()[0]["sku"] == "A" and selected.row_count == 2


@each_form
@on_loop
async def test_a_result_may_be_an_arrow_table(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").write_many([{"data": n} for n in range(3)])
        table = await client.sql_arrow("SELECT seq, ts, data FROM orders WHERE seq > ?", [1])
        assert table.column("seq").to_pylist() == [2, 3] and table.column("data").to_pylist() == ["1", "2"]
        assert table.schema.field("ts").type == pa.timestamp("us", tz="UTC")
        assert (await client.sql_arrow("SHOW TOPICS")).column("name").to_pylist() == ["orders"]
        made = await client.sql_arrow("CREATE TOPIC x")
        assert made.num_rows == 0 and made.schema.metadata == {b"message": b"topic x created"}
        with pytest.raises(errors.InvalidRequest, match="one statement"):
            await client.sql_arrow("SHOW TOPICS; SHOW TOPICS")


@each_form
@on_loop
async def test_errors_say_the_same_everywhere(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        with pytest.raises(errors.InvalidSql) as refused:
            await client.sql("SHOW TOPICS;\nCREATE TOPIC t PARTITION 2")
        assert refused.value.detail == {
            "line": 2,
            "column": 16,
            "expected": ["PARTITIONS", "ALIAS", "WITH", "the end"],
            "statement": 2,
        }
        assert refused.value.message.endswith("\n  CREATE TOPIC t PARTITION 2\n                 ^^^^^^^^^")
        with pytest.raises(errors.TopicNotFound) as missing:
            await client.sql("SHOW TOPICS; DESCRIBE TOPIC missing")
        assert missing.value.detail["statement"] == 2
        with pytest.raises(errors.InvalidRequest):
            await client.sql("SELECT ?", [float("nan")])


@each_form
@on_loop
async def test_consume_waits_for_any_partition(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(partitions=3)
        for text in ("CONSUME FROM orders GROUP g WAIT 30000", "CONSUME FROM orders FROM LATEST WAIT 30000"):
            asking = asyncio.create_task(client.sql(text))
            await settle()
            while not asking.done():
                await orders.write(1, partition=2)
                await asyncio.wait({asking}, timeout=0.05)
            ((result),) = await soon(asking)
            assert {row[1] for row in result.rows} == {2}


def test_plain_code_has_it_too() -> None:
    with testing.running_server() as server, sync.connect(server.url) as client:
        (result,) = client.sql("SELECT 1 AS one")
        assert result.dicts() == [{"one": 1}]
        assert client.sql_arrow("SELECT 1 AS one").to_pylist() == [{"one": 1}]
