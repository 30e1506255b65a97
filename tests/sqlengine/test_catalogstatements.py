"""Statements about tables and pipelines, and the system tables that show them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop
from topics import PipelineReport, RouteProgress, RunState, errors

REGISTER = "REGISTER TABLE chat.messages USING delta LOCATION '/d' KEY (id) COLUMNS ('id bigint, body string')"
PIPE = "INSERT INTO TOPIC alerts SELECT tag FROM STREAM orders"


async def rows(client: topics.Client, text: str) -> list[list[Any]]:
    (result,) = await client.sql(text)
    return [list(row) for row in result.rows]


async def said(client: topics.Client, text: str) -> str | None:
    (result,) = await client.sql(text)
    return result.message


@on_loop
async def test_tables_by_statement(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        assert await said(client, REGISTER) == "table chat.messages registered"
        assert await said(client, REGISTER) == "table chat.messages is registered already"
        other = "TABLE chat.messages USING sqlite LOCATION '/db' KEY (id) WITH (source = 'messages')"
        with pytest.raises(errors.NameTaken, match="OR REPLACE"):
            await client.sql(f"REGISTER {other}")
        changed = await said(client, f"REGISTER {other.replace('TABLE', 'TABLE IF NOT EXISTS')}")
        assert changed == "table chat.messages is registered already"
        assert await rows(client, "SHOW TABLES LIKE 'chat%'") == [
            ["chat.messages", "delta", "/d", None, ["id"], 0],
        ]
        assert await said(client, f"REGISTER OR REPLACE {other}") == "table chat.messages changed"
        described = dict(await rows(client, "DESCRIBE TABLE chat.messages"))  # type: ignore[arg-type]
        assert (described["format"], described["source"], described["routes"]) == ("sqlite", "messages", [])
        found = await rows(client, "SELECT table_id, source, columns->>0 FROM system.tables")
        assert found == [["chat.messages", "messages", None]]
        assert await said(client, "UNREGISTER TABLE chat.messages") == "table chat.messages unregistered"
        assert await said(client, "UNREGISTER TABLE IF EXISTS chat.messages") == "there is no table chat.messages"
        with pytest.raises(errors.TableNotFound):
            await client.sql("UNREGISTER TABLE chat.messages")
        assert await rows(client, "SHOW TABLES") == []


@on_loop
async def test_a_route_about_an_unknown_column_is_refused(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.sql(f"{REGISTER}; CREATE TOPIC news")
        with pytest.raises(errors.TableNotFound, match="REGISTER TABLE"):
            await client.sql("ALTER TOPIC news ADD SOURCE nope ON INSERT")
        text = "SHOW TOPICS;\nALTER TOPIC news ADD SOURCE chat.messages ON INSERT WHERE (id > 1 AND bdy = 'x')"
        with pytest.raises(errors.InvalidSql, match=r"table chat\.messages has no column bdy") as refused:
            await client.sql(text)
        detail = refused.value.detail
        assert (detail["line"], detail["column"], detail["statement"]) == (2, 71, 2)
        assert detail["expected"] == ["id", "body"]
        assert await rows(client, "SHOW ROUTES") == []
        await client.sql("ALTER TOPIC news ADD SOURCE chat.messages ON INSERT FROM SNAPSHOT WHERE (before.body = body)")
        assert [row[6] for row in await rows(client, "SHOW ROUTES")] == ["snapshot"]
        described = dict(await rows(client, 'DESCRIBE PIPELINE "routes:chat.messages"'))  # type: ignore[arg-type]
        assert (described["kind"], described["table"]) == ("routes", "chat.messages")
        assert "definition" not in described and "config" not in described, "it has its routes in place of one"


@on_loop
async def test_a_pipeline_about_an_unknown_column_is_refused(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.sql(f"{REGISTER}; CREATE TOPIC orders")
        join = "INSERT INTO TOPIC t SELECT m.{} FROM STREAM orders o JOIN chat.messages m ON m.id = o.tag"
        text = f"SHOW TABLES;\nCREATE PIPELINE p AS {join.format('bdy')}"
        with pytest.raises(errors.InvalidSql, match=r"chat\.messages has no column bdy") as refused:
            await client.sql(text)
        assert (refused.value.detail["line"], refused.value.detail["column"]) == (2, 51)
        with pytest.raises(errors.InvalidSql, match="bdy"):
            await client.pipeline("p").put(join.format("bdy"))
        await client.pipeline("p").put(join.format("body"))


@on_loop
async def test_the_statements_of_the_document_run(tmp_path: Path) -> None:
    document = Path(__file__).parents[2] / "docs" / "PIPELINES.md"
    (block, *_) = re.findall(r"^```sql\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)
    async with topics.open(tmp_path) as client:
        await client.sql("CREATE TOPIC orders; CREATE TOPIC app.new_messages")
        await client.sql(block)
        shown = await rows(client, "SELECT pipeline_id, target FROM system.pipelines ORDER BY 1")
        assert shown == [
            ["big_orders", "topic alerts"],
            ["latest_orders", "delta /data/orders"],
            ["routes:chat.messages", "topics"],
        ]


@on_loop
async def test_pipelines_by_statement(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.sql("CREATE TOPIC orders ALIAS o")
        assert await said(client, f"CREATE PIPELINE big AS {PIPE}") == "pipeline big created"
        assert await said(client, f"CREATE PIPELINE big AS {PIPE}") == "pipeline big is there already"
        with pytest.raises(errors.NameTaken, match="CREATE OR REPLACE"):
            await client.sql(f"CREATE PIPELINE big WITH (trigger_ms = 9) AS {PIPE}")
        changed = await said(client, f"CREATE OR REPLACE PIPELINE big WITH (trigger_ms = 9) AS {PIPE}")
        assert changed == "pipeline big changed"
        assert await said(client, "ALTER PIPELINE big PAUSE") == "pipeline big paused"
        shown = ["big", "insert", "paused", "topic alerts", None, None, None]
        assert await rows(client, "SHOW PIPELINES") == [shown]
        assert await said(client, "ALTER PIPELINE big RESUME") == "pipeline big resumed"
        described = dict(await rows(client, "DESCRIBE PIPELINE big"))  # type: ignore[arg-type]
        assert described["definition"] == PIPE and described["options"]["trigger_ms"] == 9
        assert await said(client, "DROP PIPELINE big") == "pipeline big dropped"
        assert await said(client, "DROP PIPELINE IF EXISTS big") == "there is no pipeline big"
        for text in ("DROP PIPELINE big", "ALTER PIPELINE big PAUSE", "DESCRIBE PIPELINE big"):
            with pytest.raises(errors.PipelineNotFound):
                await client.sql(text)


@on_loop
async def test_what_a_runner_said_is_in_the_system_tables(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.sql(f"{REGISTER}; CREATE TOPIC orders; CREATE PIPELINE big AS {PIPE}")
        await client.sql("ALTER TOPIC orders ADD SOURCE chat.messages ON INSERT, DELETE")
        await client.pipeline("big").report(
            PipelineReport(
                runner="r",
                state=RunState.RUNNING,
                position="orders/0@5",
                lag_records=3,
                lag_ms=1500,
                last_error="boom",
                spark_ui="http://x",
            )
        )
        wanted = "condition, position, lag_records, lag_seconds, last_error, spark_ui, runner, sources"
        assert await rows(client, f"SELECT {wanted} FROM system.pipelines WHERE pipeline_id = 'big'") == [
            ["running", "orders/0@5", 3, 1.5, "boom", "http://x", "r", ["topic orders"]]
        ]
        insert, delete = sorted((await client.table("chat.messages").state()).routes, key=lambda each: each.number)
        assert (insert.operation, delete.operation) == ("insert", "delete")
        progress = [
            RouteProgress(
                topic="orders",
                operation="insert",
                number=insert.number,
                position="version 9",
                lag_versions=2,
                records_total=4,
            ),
            RouteProgress(topic="orders", operation="delete", number=delete.number + 7, position="of an earlier one"),
        ]
        await client.pipeline("routes:chat.messages").report(
            PipelineReport(runner="r", state=RunState.RUNNING, routes=tuple(progress))
        )
        found = await rows(client, "SELECT op, position, lag_versions, records FROM system.topic_routes ORDER BY op")
        assert found == [["delete", None, None, 0], ["insert", "version 9", 2, 4]]
        names = await rows(client, "SELECT pipeline_id, sources->>0 FROM system.pipelines ORDER BY 1")
        assert names == [["big", "topic orders"], ["routes:chat.messages", "table chat.messages"]]
