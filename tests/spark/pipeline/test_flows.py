"""Pipelines from topics to topics: what comes out is what a batch query over the same records gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.spark.pipeline import deltas
from topics.errors import InvalidRequest
from topics.pipelinemodel import RunState
from topics.spark.pipeline.flows import as_records, read_table
from topics.spark.pipeline.runner import Runner
from topics.sync import Client
from topics.tablemodel import TableConfig, TableFormat
from topics.testing.served import RunningServer
from topics.wire.routing import partition_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTRIES = pa.schema([("code", pa.string()), ("name", pa.string())])
MINUTE_MS = 60_000


@pytest.fixture
def run(spark: SparkSession, topics_server: RunningServer, tmp_path: Path) -> Callable[[], None]:
    def once() -> None:
        made = Runner(spark, url=topics_server.url, checkpoints=str(tmp_path / "positions"), available_now=True)
        ended = made.run()
        assert {each.state for each in ended} == {RunState.DONE}, ended

    return once


def datas(client: Client, topic: str) -> list[Any]:
    return [record.data for record in client.topic(topic).diff(0, limit=1000).records]


def moment(at_ms: int) -> str:
    return f"2026-01-01T00:{at_ms // MINUTE_MS:02}:{at_ms % MINUTE_MS // 1000:02}Z"


def write(client: Client, at_ms: int, sku: str, cents: Any) -> None:
    client.topic("orders").write({"at": moment(at_ms), "sku": sku, "cents": cents})


def test_windows_joins_and_late_data_over_a_restart(
    run: Callable[[], None], topics_client: Client, tmp_path: Path
) -> None:
    """Sums by minute, joined with a table. What is later than the watermark allows is left out, all else is in."""
    names = deltas.make(tmp_path / "names", COUNTRIES, feed=False)
    write_deltalake(names, pa.Table.from_pylist([{"code": "a", "name": "apple"}], schema=COUNTRIES), mode="append")
    topics_client.sql("CREATE TOPIC orders; CREATE TOPIC sums; CREATE TOPIC named PARTITIONS 3")
    topics_client.sql(f"REGISTER TABLE names USING delta LOCATION '{names}' KEY (code)")
    topics_client.sql(
        "CREATE PIPELINE sums AS INSERT INTO TOPIC sums "
        "SELECT value.sku, window.start AS since, sum(value.cents) AS cents, count(*) AS orders "
        "FROM STREAM orders SCHEMA 'at timestamp, sku string, cents bigint' WATERMARK (value.at) DELAY '30 seconds' "
        "GROUP BY value.sku, window(event_time, '1 minute')"
    )
    topics_client.sql(
        "CREATE PIPELINE named AS INSERT INTO TOPIC named PARTITION BY (sku) "
        "SELECT /*+ BROADCAST(names) */ value.sku, names.name, value.cents "
        "FROM STREAM orders SCHEMA 'sku string, cents bigint' "
        "JOIN names ON names.code = value.sku WHERE value.cents > 5"
    )
    for at_ms, sku, cents in [(1000, "a", 1), (59_000, "b", 2), (70_000, "a", 10), (2000, "a", 3)]:
        write(topics_client, at_ms, sku, cents)
    topics_client.topic("orders").write({"sku": 7})
    run()
    # The time is 01:10, minus 30 s: minute 0 is open still, and this is late but not too late.
    write(topics_client, 50_000, "b", 4)
    write(topics_client, 130_000, "a", 20)
    write_deltalake(names, pa.Table.from_pylist([{"code": "b", "name": "berry"}], schema=COUNTRIES), mode="append")
    run()
    # The time is 02:10, minus 30 s: minute 0 is closed, and this is too late.
    write(topics_client, 3000, "a", 1000)
    write(topics_client, 100_000, "b", 30)
    write(topics_client, 600_000, "c", 1)
    run()

    def total(sku: str, minute: int, cents: int, orders: int) -> dict[str, Any]:
        return {"sku": sku, "since": f"2026-01-01T00:{minute:02}:00.000000Z", "cents": cents, "orders": orders}

    wanted = [
        total("a", 0, 4, 2),
        total("a", 1, 10, 1),
        total("a", 2, 20, 1),
        total("b", 0, 6, 2),
        total("b", 1, 30, 1),
    ]
    assert sorted(datas(topics_client, "sums"), key=lambda row: (row["sku"], row["since"])) == wanted
    for partition in range(3):
        for record in topics_client.topic("named").diff(partition=partition).records:
            assert partition_of(record.data["sku"], 3) == partition, "the same as for a writer with that key"
    named = [
        record.data
        for partition in range(3)
        for record in topics_client.topic("named").diff(partition=partition).records
    ]
    assert sorted((row["name"], row["cents"]) for row in named) == [
        ("apple", 10),
        ("apple", 20),
        ("apple", 1000),
        ("berry", 30),
    ]
    report = topics_client.pipeline("sums").state().report
    assert report is not None and report.error_rows_total == 1, "the record that does not fit the schema is told"


def test_joins_of_topics_and_rows_without_their_repetitions(
    run: Callable[[], None], topics_client: Client, tmp_path: Path
) -> None:
    """Over a restart each pair is found once, who has no pair is told when none can come, and a repetition is not."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "first.json").write_text('{"code": "a", "name": "apple"}\n')
    orders = "STREAM orders SCHEMA 'id bigint, sku string, at timestamp' WATERMARK (value.at) DELAY '10 seconds'"
    payments = (
        "STREAM payments SCHEMA 'order_id bigint, cents bigint, at timestamp' WATERMARK (value.at) DELAY '10 seconds'"
    )
    topics_client.sql("CREATE TOPIC orders; CREATE TOPIC payments; CREATE TOPIC paid; CREATE TOPIC once")
    topics_client.sql(f"REGISTER TABLE shop.names USING json LOCATION '{files}' COLUMNS ('code string, name string')")
    topics_client.sql(
        "CREATE PIPELINE paid AS INSERT INTO TOPIC paid SELECT o.value.id, p.value.cents "
        f"FROM {orders} AS o LEFT JOIN {payments} AS p ON p.value.order_id = o.value.id "
        "AND p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL 30 SECONDS"
    )
    topics_client.sql(
        "CREATE PIPELINE once AS INSERT INTO TOPIC once SELECT DISTINCT o.value.id, n.name, o.event_time "
        f"FROM {orders} AS o LEFT JOIN shop.names AS n ON n.code = o.value.sku"
    )

    def order(number: int, sku: str, second: int) -> None:
        topics_client.topic("orders").write({"id": number, "sku": sku, "at": moment(second * 1000)})

    def pay(number: int, cents: int, second: int) -> None:
        topics_client.topic("payments").write({"order_id": number, "cents": cents, "at": moment(second * 1000)})

    order(1, "a", 0)
    order(2, "b", 1)
    order(1, "a", 0)
    pay(2, 20, 5)
    run()
    assert datas(topics_client, "paid") == [{"id": 2, "cents": 20}]
    # A payment of an order before the restart, one that comes 40 seconds late, and times that close all of these.
    (files / "second.json").write_text('{"code": "c", "name": "cherry"}\n')
    pay(1, 10, 7)
    order(2, "b", 1)
    order(3, "c", 20)
    pay(3, 30, 60)
    order(9, "a", 200)
    pay(9, 90, 201)
    run()
    paid = sorted((row["id"], row["cents"] or 0) for row in datas(topics_client, "paid"))
    assert paid == [(1, 10), (1, 10), (2, 20), (2, 20), (3, 0), (9, 90)], "each record of an order has its pair"
    once = sorted((row["id"], row["name"]) for row in datas(topics_client, "once"))
    assert once == [(1, "apple"), (2, None), (3, "cherry")], "9 is open still"


def test_rows_become_records(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("a", 1, "x")], "sku string, key int, tag string")
    whole = as_records(rows, "")
    assert whole.columns == ["data"] and whole.collect()[0]["data"].asDict() == {"sku": "a", "key": 1, "tag": "x"}
    spread = as_records(rows, "sku, key").collect()[0]
    assert spread["key"] == "a,1" and spread["data"]["key"] == 1
    said = as_records(rows.selectExpr("tag", "sku AS data", "1 AS other"), "")
    assert said.columns == ["tag", "data"]
    assert as_records(rows.selectExpr("sku AS data", "key AS priority"), "").columns == ["data", "priority"]


def test_a_table_of_a_database_cannot_be_joined(spark: SparkSession) -> None:
    config = TableConfig(format=TableFormat.SQLITE, location="x.db", key=("id",))
    with pytest.raises(InvalidRequest, match="lead it into a topic, and that by MERGE into a Delta table"):
        read_table(spark, "joined", "t", config, "x.db")
