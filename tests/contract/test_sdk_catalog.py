"""Tables and pipelines through the SDK, in process and over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.contract.sdk import each_form, opened
from topics import (
    LogLine,
    PipelineCondition,
    PipelineDropped,
    PipelineKind,
    PipelineReport,
    RouteProgress,
    RunState,
    TableColumn,
    TableConfig,
    TableDropped,
    TableFormat,
    errors,
)

COLUMNS = (TableColumn("id", "bigint", False), TableColumn("body", "string"))


@each_form
@on_loop
async def test_a_table_is_registered_listed_and_forgotten(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        table = client.table("chat.messages")
        assert (table.name, repr(table)) == ("chat.messages", "<Table chat.messages>")
        made = await table.put("delta", "/data/messages", key=["id"], columns=COLUMNS)
        config = TableConfig(format=TableFormat.DELTA, location="/data/messages", key=("id",), columns=COLUMNS)
        assert made.created and made.config == config
        again = await table.put(TableFormat.CSV, "/files", options={"header": "true"})
        assert not again.created and (again.config.key, again.config.options) == ((), {"header": "true"})
        await client.table("other").put("postgresql", location_env="PG_DSN", key=["id"], source="public.other")
        assert [state.table async for state in client.tables()] == ["chat.messages", "other"]
        assert [state async for state in client.tables("chat")] == [await table.state()]
        assert await table.drop() == TableDropped(table="chat.messages", deleted=True)
        assert await table.drop() == TableDropped(table="chat.messages", deleted=False)
        with pytest.raises(errors.TableNotFound, match=r"chat\.messages"):
            await table.state()
        with pytest.raises(errors.InvalidRequest, match="a password"):
            await table.put("postgresql", "postgresql://a:b@c/d", key=["id"])
        with pytest.raises(errors.InvalidRequest, match="format"):
            await table.put("oracle", "x", key=["id"])  # type: ignore[arg-type]


@each_form
@on_loop
async def test_a_pipeline_is_declared_run_and_dropped(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create()
        pipeline = client.pipeline("big")
        assert (pipeline.name, repr(pipeline)) == ("big", "<Pipeline big>")
        made = await pipeline.put("INSERT INTO TOPIC alerts SELECT tag FROM STREAM orders", trigger_ms=1000)
        assert made.created and made.config is not None and made.kind is PipelineKind.INSERT
        assert (made.config.topic, made.config.options.trigger_ms) == ("alerts", 1000)
        assert made.config.sql == "SELECT tag FROM `topics_stream_1` AS `orders`"
        assert made.condition is PipelineCondition.WAITING and made.report is None
        report = PipelineReport(runner="r1", state=RunState.RUNNING, position="orders/0@5", lag_records=2)
        lines = [LogLine(1, "info", "began"), LogLine(2, "error", "boom")]
        orders = await pipeline.report(report, lines)
        assert (orders.exists, orders.paused, orders.digest) == (True, False, made.digest)
        found = await pipeline.state()
        assert (found.condition, found.report, found.created) == (PipelineCondition.RUNNING, report, False)
        assert await pipeline.logs() == lines and await pipeline.logs(1) == lines[1:]
        with pytest.raises(errors.PipelineTaken) as taken:
            await pipeline.report(PipelineReport(runner="r2", state=RunState.STARTING))
        assert taken.value.detail["runner"] == "r1"
        assert (await pipeline.pause()).paused and (await pipeline.report(report)).paused
        assert not (await pipeline.resume()).paused
        changed = await pipeline.put("INSERT INTO TOPIC alerts SELECT seq FROM STREAM orders")
        assert (changed.created, changed.number) == (False, made.number) and changed.digest != made.digest
        assert await pipeline.drop() == PipelineDropped(pipeline="big", deleted=True)
        assert await pipeline.drop() == PipelineDropped(pipeline="big", deleted=False)
        assert not (await pipeline.report(report)).exists
        with pytest.raises(errors.PipelineNotFound):
            await pipeline.logs()


@each_form
@on_loop
async def test_what_is_not_understood_is_said_with_its_place(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        pipeline = client.pipeline("p")
        with pytest.raises(errors.InvalidSql) as refused:
            await pipeline.put("INSERT INTO TOPIC t SELECT tagg FROM STREAM orders")
        assert (refused.value.detail["line"], refused.value.detail["column"]) == (1, 28)
        with pytest.raises(errors.TopicNotFound, match="orders"):
            await pipeline.put("INSERT INTO TOPIC t SELECT tag FROM STREAM orders")
        with pytest.raises(errors.InvalidSql, match="trigger_ms"):
            await pipeline.put("INSERT INTO TOPIC t SELECT tag FROM STREAM orders", trigger_ms=-1)


@each_form
@on_loop
async def test_the_routes_of_a_table_are_a_pipeline(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.table("t").put("delta", "/d", key=["id"])
        await client.sql("CREATE TOPIC news; ALTER TOPIC news ADD SOURCE t ON INSERT FROM VERSION 3")
        (route,) = (await client.table("t").state()).routes
        assert (route.topic, route.operation, route.payload) == ("news", "insert", "key")
        assert (route.start, route.start_version) == ("version", 3)
        (state,) = [state async for state in client.pipelines()]
        assert (state.pipeline, state.kind, state.table) == ("routes:t", PipelineKind.ROUTES, "t")
        progress = RouteProgress(topic="news", operation="insert", number=route.number, position="version 9")
        report = PipelineReport(runner="r", state=RunState.RUNNING, routes=(progress,))
        await client.pipeline("routes:t").report(report)
        (rows,) = await client.sql("SELECT position, lag_records, records FROM system.topic_routes")
        assert rows.rows == [["version 9", None, 0]]
        with pytest.raises(errors.InvalidRequest, match="DROP SOURCE"):
            await client.pipeline("routes:t").drop()
        with pytest.raises(errors.TableInUse):
            await client.table("t").drop()


@each_form
@on_loop
async def test_long_lists_come_in_pages(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from topics.client import pipeline, table

    monkeypatch.setattr(pipeline, "PIPELINES_PAGE", 2)
    monkeypatch.setattr(table, "TABLES_PAGE", 2)
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create()
        names = [f"n{number}" for number in range(5)]
        for name in names:
            await client.table(name).put("delta", "/d", key=["id"])
            await client.pipeline(name).put("INSERT INTO TOPIC t SELECT tag FROM STREAM orders")
        assert [state.table async for state in client.tables()] == names
        assert [state.pipeline async for state in client.pipelines("n")] == names
