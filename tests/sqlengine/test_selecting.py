from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop, soon
from tests.sqlengine.rig import embedded, engine_of, host_of
from topics import errors
from topics.core.commands import Append
from topics.core.records import Records
from topics.sql.grammar import Origin
from topics.sql.statements import Select
from topics.sqlengine import queryerrors, queryprocess, scan
from topics.sqlengine.querymessages import EXIT_NO_MEMORY
from topics.sqlengine.queryprocess import QueryProcess
from topics.sqlengine.result import as_values
from topics.sqlengine.scan import PartitionScan, Step
from topics.sqlengine.selecting import Asking, Selecting, Source, tables_of

RECORDS = 600


@asynccontextmanager
async def filled(path: Path, **settings: int) -> AsyncIterator[topics.Client]:
    """Two partitions of tagged records, some deleted, some in segments, some in memory."""
    async with topics.open(path, **settings) as client:
        orders = client.topic("orders")
        await orders.create(partitions=2, alias="o")
        for start in range(0, RECORDS, 100):
            for partition in (0, 1):
                records: list[Any] = [
                    {"data": {"n": n, "sku": f"s{n % 7}"}, "tag": f"t{n % 5}-{n}", "node": f"n{n % 3}"}
                    for n in range(start, start + 100)
                ]
                await orders.write_many(records, partition=partition)
            if start == 300:
                await checkpoint(client)
        await orders.delete(match=["tag", "Glob", "t3-*"], partition=1)
        await orders.write({"n": -1}, partition=0)
        yield client


async def checkpoint(client: topics.Client) -> None:
    """What is written by now goes into segments."""
    await host_of(client).checkpoint()


async def rows(client: topics.Client, text: str, *params: object) -> list[list[Any]]:
    (result,) = await client.sql(text, list(params))
    return result.rows


CONDITIONS = [
    "seq > 590",
    "seq >= 5 AND seq < 9",
    "7 >= seq",
    "seq = 77",
    "seq BETWEEN 30 AND 33 AND partition = 1",
    "seq IN (5, 500, 9000)",
    "partition IN (1, 3)",
    "partition = 1 AND partition = 0",
    "tag = 't1-1'",
    "tag = 't3-3'",
    "tag LIKE 't1-%' AND seq < 40",
    "tag LIKE 't_-1%'",
    "tag NOT LIKE 't1-%' AND seq < 9",
    "seq NOT IN (1, 2) AND seq < 5",
    "seq NOT BETWEEN 2 AND 599",
    "tag ^@ 't4-59'",
    "starts_with(tag, 't2-') AND partition = 0",
    "tag IS NULL",
    "ts > now() - INTERVAL 1 HOUR AND seq < 3",
    "ts < now() - INTERVAL 1 HOUR",
    "ts >= '2020-01-01' AND ts < TIMESTAMP '2999-01-01' AND seq = 3",
    "ts <= (SELECT min(ts) FROM orders)",
    "seq > 3 OR tag = 't1-1'",
    "NOT (seq > 3)",
    "seq + 1 = 5",
    "seq > 3.5 AND seq < 4.5",
    "seq > -1 AND partition < 1 AND seq <= 2",
    "node = 'n1' AND seq < 12",
    "data->>'sku' = 's3' AND seq <= 20",
]


@on_loop
async def test_what_is_narrowed_gives_what_the_whole_table_would(tmp_path: Path) -> None:
    async with filled(tmp_path) as client:
        for condition in CONDITIONS:
            narrow = f"SELECT partition, seq, tag, node, data FROM orders WHERE {condition} ORDER BY ALL"
            whole = (
                "WITH every AS MATERIALIZED (SELECT * FROM orders) SELECT partition, seq, tag, node, data "
                f"FROM every WHERE {condition} ORDER BY ALL"
            )
            assert await rows(client, narrow) == await rows(client, whole), condition


@on_loop
async def test_a_query_sees_all_records_that_are_there(tmp_path: Path) -> None:
    async with filled(tmp_path) as client:
        assert await rows(
            client, "SELECT partition, count(*), min(seq), max(seq) FROM orders GROUP BY 1 ORDER BY 1"
        ) == [
            [0, 601, 1, 601],
            [1, 480, 1, 600],
        ]
        assert await rows(client, "SELECT sum((data->>'n')::int) FROM orders WHERE partition = 0") == [[179_699]]
        first = await rows(client, "SELECT * FROM o WHERE partition = 1 LIMIT 1")
        assert first[0][:3] == ["orders", 1, 1] and first[0][4:] == ["n0", "t0-0", None, {"n": 0, "sku": "s0"}]
        joined = "SELECT count(*) FROM orders a JOIN o b ON a.seq = b.seq AND a.partition = 0 AND b.partition = 1"
        assert await rows(client, joined) == [[480]]
        twice = (
            "WITH x AS (SELECT seq FROM orders WHERE partition = 1) SELECT count(*) FROM x, (SELECT max(seq) m FROM x)"
        )
        assert await rows(client, twice) == [[480]]


@on_loop
async def test_what_is_written_or_deleted_later_is_seen_by_the_next_query(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(3)])
        count = "SELECT count(*) FROM orders"
        assert await rows(client, count) == [[3]]
        await orders.write(4)
        assert await rows(client, count) == [[4]]
        await orders.delete(before_seq=3)
        assert await rows(client, count) == [[2]]
        await orders.configure(cap_records=1)
        assert await rows(client, count) == [[1]]
        (result,) = await client.sql("SELECT * FROM orders")
        assert result.tombstone is None


@on_loop
async def test_values_of_all_types_come_as_json(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        (result,) = await client.sql(
            "SELECT 1::tinyint a, 2.5::decimal(4, 2) b, 'nan'::double c, 'x'::blob d, [1, NULL] e, {'k': 1.5} f, "
            "TIMESTAMPTZ '2026-01-28 12:00:00.123+02' g, DATE '2026-01-28' h, INTERVAL 3 DAY i, '[1]'::json j, NULL k, "
            "9007199254740993::hugeint l, TIMESTAMP '2026-01-28 12:00:00.000001' m, true n"
        )
        assert result.rows == [
            [
                1,
                2.5,
                "nan",
                "eA==",
                [1, None],
                {"k": 1.5},
                "2026-01-28T10:00:00.123Z",
                "2026-01-28",
                "0 months 3 days 0 seconds",
                [1],
                None,
                9_007_199_254_740_993,
                "2026-01-28T12:00:00.000001",
                True,
            ]
        ]
        assert [column.type for column in result.columns][:3] == ["TINYINT", "DECIMAL(4,2)", "DOUBLE"]


@on_loop
async def test_parameters_of_a_query_are_values(tmp_path: Path) -> None:
    async with filled(tmp_path) as client:
        evil = "' OR 1 = 1; DROP TABLE x; --"
        assert await rows(client, "SELECT ?, count(*) FROM orders WHERE tag = ?", evil, evil) == [[evil, 0]]
        assert await rows(client, "SELECT count(*) FROM orders WHERE seq <= $2 AND partition = $1", 0, 5) == [[5]]
        assert await rows(client, "SELECT count(*) FROM orders WHERE ts > ?", "2999-01-01") == [[0]]
        assert await rows(
            client, "SELECT count(*) FROM orders WHERE partition = 0 AND seq IN (SELECT unnest(?))", [1, 2]
        ) == [[2]]


@on_loop
async def test_a_query_that_is_wrong_says_where(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").write(1)
        with pytest.raises(errors.InvalidSql) as refused:
            await client.sql("SHOW TOPICS;\nSELECT seq, price\nFROM orders")
        assert (refused.value.detail["line"], refused.value.detail["column"]) == (2, 13)
        assert refused.value.detail["statement"] == 2
        assert 'Referenced column "price" not found' in refused.value.message
        with pytest.raises(errors.InvalidSql) as refused:
            await client.sql("SELECT orders.seq + 'x'::int FROM orders")
        assert "Could not convert string 'x'" in refused.value.message
        with pytest.raises(errors.InvalidSql) as refused:
            await client.sql("SELECT seq FROM orders WHERE ts > 'soon'")
        assert (refused.value.detail["line"], refused.value.detail["column"]) == (1, 35)
        assert 'invalid timestamp field format: "soon"' in refused.value.message
        with pytest.raises(errors.InvalidSql, match="boom") as refused:
            await client.sql("SELECT 1; SELECT error('{boom')")
        assert refused.value.detail == {"statement": 2}, "it stands nowhere in the text"
        with pytest.raises(errors.TopicNotFound):
            await client.sql("SELECT * FROM stock")
        with pytest.raises(errors.InvalidSql, match=r"there are system\.topics"):
            await client.sql("SELECT * FROM system.nothing")


ENDLESS = "SELECT sum(range % 7) FROM range(1000000000000)"
"""Hours of work in a little memory: no other limit can come before that of time, however slow the machine is."""


@on_loop
async def test_a_query_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async with topics.open(tmp_path, sql_timeout_ms=100) as client:
        with pytest.raises(errors.QueryTooExpensive) as refused:
            await soon(asyncio.ensure_future(client.sql(ENDLESS)))
        assert refused.value.detail == {"limit": "time_ms", "max": 100, "statement": 1}


@on_loop
async def test_a_query_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    async with topics.open(tmp_path, sql_queries_max=1) as client:
        await client.sql("SELECT 1")
        asking = asyncio.ensure_future(client.sql(ENDLESS))
        await asyncio.sleep(0)
        while not asking.done():
            asking.cancel()
            await asyncio.wait({asking}, timeout=0.1)
        assert asking.cancelled()
        # The only thread there is free again.
        assert await soon(asyncio.ensure_future(rows(client, "SELECT 1"))) == [[1]]


@on_loop
async def test_closing_ends_what_runs(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.sql("SELECT 1")
        asking = asyncio.ensure_future(client.sql(ENDLESS))
        await asyncio.sleep(0)
        await soon(asyncio.ensure_future(client.close()))
        with pytest.raises(errors.ShuttingDown):
            await asking


@on_loop
async def test_a_query_has_a_bound_on_memory_and_rows(tmp_path: Path) -> None:
    async with topics.open(tmp_path, sql_memory_bytes=32 << 20, sql_rows_max=1000) as client:
        with pytest.raises(errors.QueryTooExpensive) as refused:
            await client.sql("SELECT count(*) FROM (SELECT DISTINCT range, hash(range)::varchar FROM range(20000000))")
        assert refused.value.detail == {"limit": "memory_bytes", "max": 32 << 20, "statement": 1}
        with pytest.raises(errors.QueryTooExpensive) as refused:
            await client.sql("SELECT * FROM range(1001)")
        assert refused.value.detail["limit"] == "rows"
        assert len(await rows(client, "SELECT * FROM range(1000)")) == 1000


@on_loop
async def test_one_value_cannot_take_more_than_the_memory_of_a_query(tmp_path: Path) -> None:
    async with topics.open(tmp_path, sql_memory_bytes=64 << 20) as client:
        for text in ("SELECT repeat('x', 1000000000)", "SELECT length(lpad('', 1000000000, 'x'))"):
            with pytest.raises(errors.QueryTooExpensive, match=r"more than 64 MiB of memory.*TOPICS_SQL_MEMORY_BYTES"):
                await client.sql(text)
            assert await rows(client, "SELECT 1") == [[1]], "the next query has its own memory"


@on_loop
async def test_answers_of_a_request_are_bounded_together(tmp_path: Path) -> None:
    async with topics.open(tmp_path, sql_answer_bytes=64 << 10) as client:
        wide = "SELECT repeat('x', 40000) AS wide"
        assert len((await rows(client, wide))[0][0]) == 40_000
        assert (await client.sql_arrow(wide)).num_rows == 1
        for text in (f"{wide} UNION ALL {wide}", f"{wide}; {wide}"):
            with pytest.raises(errors.QueryTooExpensive, match=r"larger than 64 KiB; add a LIMIT") as refused:
                await client.sql(text)
            assert refused.value.detail["limit"] == "answer_bytes"
        with pytest.raises(errors.QueryTooExpensive, match="answers of this request"):
            await client.sql_arrow("SELECT repeat('x', 80000) AS wide")


@on_loop
async def test_crashed_process_ends_its_query_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, crashing = PartitionScan.step, True

    async with filled(tmp_path) as client:
        executor = await embedded(client)._sql.executor(host_of(client))
        pool = executor._selecting._pool
        made: list[QueryProcess] = []

        def make() -> QueryProcess:
            made.append(QueryProcess(64 << 20))
            return made[-1]

        def crash(part: PartitionScan) -> Step:
            nonlocal crashing
            if crashing:
                crashing = False
                assert made[-1].pid is not None
                os.kill(made[-1].pid, signal.SIGSEGV)
            return step(part)

        monkeypatch.setattr(pool, "_make", make)
        monkeypatch.setattr(PartitionScan, "step", crash)
        with pytest.raises(errors.QueryTooExpensive, match="needs more than"):
            await client.sql("SELECT sum(seq) FROM orders")
        assert await rows(client, "SELECT max(seq) FROM orders") == [[601]]
        await client.topic("orders").write({"n": 1})


@pytest.mark.parametrize("code", [-signal.SIGKILL, -signal.SIGABRT, EXIT_NO_MEMORY])
def test_process_that_ran_out_of_memory_is_explained(code: int) -> None:
    assert isinstance(queryerrors.crashed(code, 1 << 30), errors.QueryTooExpensive)
    assert "1 GiB" in str(queryerrors.crashed(code, 1 << 30))
    assert isinstance(queryerrors.crashed(1, 1 << 30), errors.Internal)


@on_loop
async def test_process_that_does_not_start_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with topics.open(tmp_path) as client:
        with monkeypatch.context() as patched:
            patched.setattr(queryprocess, "_BOOT", "raise SystemExit(3)")
            with pytest.raises(errors.Unavailable, match="ended at its start with status 3"):
                await client.sql("SELECT 1")
        assert await rows(client, "SELECT 1") == [[1]]


@on_loop
async def test_explain_says_what_is_read(tmp_path: Path) -> None:
    async with filled(tmp_path) as client:
        plan = await rows(client, "EXPLAIN SELECT count(*) FROM o WHERE seq > 5 AND partition = 1 AND tag = 'a'")
        assert plan[0] == ["read", "orders: seq from 6; tag is 'a'; partition in [1]"]
        assert any("count_star" in line for _, line in plan)


@asynccontextmanager
async def chosen(client: topics.Client, text: str) -> AsyncIterator[tuple[Selecting, Select, Callable[[], Source]]]:
    """A query that is run by hand: all queries, this one, and its only table as it is now."""
    selecting = Selecting(engine_of(client), embedded(client)._settings)
    select = Select(text)
    ((table, needed),) = tables_of(select)
    yield selecting, select, lambda: selecting.source(table, needed)
    await selecting.close()


@on_loop
async def test_a_plain_count_waits_for_what_cannot_be_read_yet(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").create(durability="fsync")
        async with chosen(client, "SELECT count(*) FROM orders") as (selecting, select, source):
            ticket = engine_of(client).submit(Append("orders", Records.of([{"data": 1}])))
            assert not ticket.done
            assert selecting.counted(select, [source()]) is None
            await host_of(client).answer(ticket)
            counted = selecting.counted(select, [source()])
            assert counted is not None and counted.rows == [[1]]


@on_loop
async def test_a_topic_made_anew_while_it_is_read_ends_the_query(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").write(1)
        async with chosen(client, "SELECT seq FROM orders") as (selecting, select, source):
            before = source()
            await client.topic("orders").drop()
            await client.topic("orders").write(2)
            origin = Origin(select.text, 0, 1)
            with pytest.raises(errors.TopicRecreated, match="made anew while it was read"):
                await selecting.run(select, [before], origin, Asking(10_000))
            assert as_values([await selecting.run(select, [source()], origin, Asking(10_000))])[0].rows == [[1]]


@pytest.mark.parametrize("breaking", [1, 8])
@on_loop
async def test_what_breaks_under_a_query_is_no_fault_of_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaking: int
) -> None:
    monkeypatch.setattr(scan, "STEP_RECORDS", 10)
    step, count = PartitionScan.step, 0

    def broken(part: PartitionScan) -> Step:
        nonlocal count
        count += 1
        if count == breaking:
            raise OSError("the disk is gone")
        return step(part)

    async with topics.open(tmp_path) as client:
        await client.topic("orders").write_many([{"data": number} for number in range(100)])
        monkeypatch.setattr(PartitionScan, "step", broken)
        with pytest.raises(errors.Internal) as failed:
            await client.sql("SELECT seq FROM orders")
        assert (failed.value.message, failed.value.detail) == ("a query failed: the disk is gone", {"statement": 1})
        assert await rows(client, "SELECT sum(seq) FROM orders") == [[5050]]


@on_loop
async def test_a_table_longer_than_a_step_is_read_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "STEP_RECORDS", 100)
    async with filled(tmp_path) as client:
        every = "SELECT count(*), sum(seq) FROM orders WHERE partition = 0 AND seq > 0"
        assert await rows(client, every) == [[601, 601 * 602 // 2]]
        tagged = "SELECT count(*) FROM orders WHERE tag LIKE 't1-%'"
        assert await rows(client, tagged) == [[240]]


@on_loop
async def test_a_value_that_does_not_fit_is_the_fault_of_the_query(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").write_many([{"data": n} for n in range(1000)])
        await client.topic("orders").write("boom")
        with pytest.raises(errors.InvalidSql, match="Could not convert string 'boom' to INT32") as refused:
            await client.sql("SELECT (data->>'$')::int FROM orders")
        assert (refused.value.detail["line"], refused.value.detail["column"]) == (1, 20)


@on_loop
async def test_words_of_a_query_that_look_like_an_error_are_only_words(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        with pytest.raises(errors.InvalidSql, match="x"):
            await client.sql("""SELECT error('{"exception_message":"x","location":"y"}')""")


@on_loop
async def test_a_time_that_is_in_no_calendar_of_ours_is_refused(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        for value in ("'infinity'::timestamptz", "'-infinity'::timestamp", "'infinity'::date", "'12000-01-01'::date"):
            with pytest.raises(errors.InvalidSql, match=r"CAST\(at AS VARCHAR\)"):
                await client.sql(f"SELECT {value} AS at")
