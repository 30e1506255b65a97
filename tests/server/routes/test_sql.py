from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.client.rig import soon
from tests.server.api import Answer, Api, serving

Scenario = Callable[[Api], Awaitable[None]]
KEYS = "root,reader:read:t1:,writer:rw:t1:,admin:admin:t1:"


def run(tmp_path: Path, scenario: Scenario, **values: Any) -> None:
    async def guarded() -> None:
        async with asyncio.timeout(60), serving(tmp_path, **values) as api:
            await scenario(api)

    asyncio.run(guarded())


async def sql(api: Api, text: str, *params: object, **headers: str) -> Answer:
    return await api.post("/v0/sql", {"sql": text, "params": list(params)}, headers)


def test_each_statement_has_a_result(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        answer = await sql(
            api,
            "CREATE TOPIC orders; INSERT INTO TOPIC orders VALUES (?); SELECT seq, data FROM orders",
            {"sku": "A1", "price": 1.50},
        )
        assert answer.status == 200
        assert answer.body["performance"]["server_total_ms"] > 0
        assert answer.without_performance() == {
            "results": [
                {"columns": [], "rows": [], "row_count": 0, "message": "topic orders created"},
                {
                    "columns": [
                        {"name": "topic", "type": "VARCHAR"},
                        {"name": "partition", "type": "BIGINT"},
                        {"name": "first_offset", "type": "BIGINT"},
                        {"name": "last_offset", "type": "BIGINT"},
                    ],
                    "rows": [["orders", 0, 1, 1]],
                    "row_count": 1,
                },
                {
                    "columns": [{"name": "seq", "type": "BIGINT"}, {"name": "data", "type": "JSON"}],
                    "rows": [[1, {"sku": "A1", "price": 1.5}]],
                    "row_count": 1,
                },
            ]
        }

    run(tmp_path, scenario)


def test_an_error_has_line_column_and_expected_words(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        answer = await sql(api, "SHOW TOPICS;\nSHOW TOPICS IN x")
        assert answer.refusal == (400, "invalid_sql")
        assert answer.error["detail"] == {"line": 2, "column": 13, "expected": ["LIKE", "the end"], "statement": 2}
        for body in ({}, {"sql": 5}, {"sql": "SELECT 1", "params": {"a": 1}}, b'{"sql":"SELECT 1","sql":"SELECT 2"}'):
            assert (await api.post("/v0/sql", body)).refusal == (400, "invalid_request")
        assert (await sql(api, "SELECT 1 AS a FROM system.nothing")).refusal == (400, "invalid_sql")
        assert (await sql(api, "DESCRIBE TOPIC missing")).refusal == (404, "topic_not_found")
        assert (await api.get("/v0/sql")).status == 405

    run(tmp_path, scenario)


def test_a_statement_may_be_answered_as_an_arrow_stream(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        await api.write("orders", 1, 2)
        accept = "application/vnd.apache.arrow.stream"
        answer = await sql(api, "SELECT seq, data FROM orders", Accept=accept)
        assert (answer.status, answer.headers["content-type"]) == (200, accept)
        with pa.ipc.open_stream(answer.raw) as reader:
            assert reader.read_all().to_pydict() == {"seq": [1, 2], "data": ["1", "2"]}
        refused = await sql(api, "SHOW TOPICS; SHOW TOPICS", Accept=accept)
        assert refused.refusal == (400, "invalid_request")
        assert (await sql(api, "SHOW TOPIC", Accept=accept)).refusal == (400, "invalid_sql")

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("key", "text", "status"),
    [
        (None, "SHOW TOPICS", 401),
        ("nobody", "SHOW TOPICS", 401),
        ("reader", 'SELECT * FROM "t1:a"', 200),
        ("reader", 'CONSUME FROM "t1:a"', 200),
        ("reader", 'CONSUME FROM "t1:a" GROUP g', 403),
        ("reader", 'INSERT INTO TOPIC "t1:a" VALUES (1)', 403),
        ("reader", 'SELECT * FROM "t2:a"', 403),
        ("reader", "SELECT * FROM system.metrics", 200),
        ("writer", 'CONSUME FROM "t1:a" GROUP g; ACK "t1:a" GROUP g UPTO 1', 200),
        ("writer", 'CREATE TOPIC "t1:b"', 403),
        ("writer", 'CLEAR TOPIC "t1:a"', 403),
        ("admin", 'CREATE TOPIC "t1:b"', 200),
        ("admin", 'CREATE TOPIC "t1:b" ALIAS "t2:b"', 403),
        ("admin", 'DROP TOPIC "t1:a"', 403),
        ("admin", "SHOW TOPICS", 403),
        ("root", 'DROP TOPIC "t2:a"', 200),
    ],
)
def test_a_key_may_do_what_its_scopes_and_prefixes_say(tmp_path: Path, key: str | None, text: str, status: int) -> None:
    async def scenario(api: Api) -> None:
        api.key = "root"
        await api.write("t1:a", 1)
        await api.write("t2:a", 1)
        api.key = key
        assert (await sql(api, text)).status == status

    run(tmp_path, scenario, api_keys=KEYS)


def test_the_rows_of_system_tables_are_those_of_the_key(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        api.key = "root"
        await api.write("t1:a", 1)
        await api.write("t2:a", 1)
        api.key = "reader"
        for text in (
            "SHOW TOPICS",
            "SELECT name FROM system.topics",
            "SELECT topic_id FROM system.partitions",
            "SELECT DISTINCT labels->>'topic' FROM system.metrics WHERE labels->>'topic' IS NOT NULL",
        ):
            (result,) = (await sql(api, text)).body["results"]
            assert [row[0] for row in result["rows"]] == ["t1:a"], text

    run(tmp_path, scenario, api_keys=KEYS)


def test_deeply_nested_parameter_is_refused_by_its_index(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        value: object = 1
        for _ in range(100):
            value = [value]
        for bad in (value, {"a": 1}):
            answer = await sql(api, "SELECT ?, ?", 1, bad)
            assert answer.status == 400 and "params[1]" in answer.body["error"]["message"]

    run(tmp_path, scenario)


def test_who_hangs_up_ends_the_query(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        await sql(api, "SELECT 1")
        endless = "SELECT count(*) FROM range(1000000000000) a, range(1000000000000) b WHERE a.range % 7 = b.range % 9"
        body = json.dumps({"sql": endless}).encode()
        _, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
        head = f"POST /v0/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        head += "Content-Type: application/json\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        # There is one thread, so this is answered when the query has ended, long before its time is over.
        assert (await soon(asyncio.ensure_future(sql(api, "SELECT 2 AS two")))).body["results"][0]["rows"] == [[2]]

    run(tmp_path, scenario, sql_queries_max=1, sql_timeout_ms=600_000)


def test_a_server_that_stops_ends_queries(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        await sql(api, "SELECT 1")
        endless = "SELECT count(*) FROM range(1000000000000) a, range(1000000000000) b WHERE a.range % 7 = b.range % 9"
        asking.append(asyncio.ensure_future(sql(api, endless)))
        await asyncio.sleep(0)

    asking: list[asyncio.Future[Answer]] = []

    async def guarded() -> None:
        async with asyncio.timeout(60):
            async with serving(tmp_path, sql_timeout_ms=600_000, drain_ms=100) as api:
                await scenario(api)
            await asyncio.wait(asking)
            asking[0].exception()

    asyncio.run(guarded())
