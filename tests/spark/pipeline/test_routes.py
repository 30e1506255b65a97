"""Routes as one query: which changes match, what records hold, what becomes of rows that cannot be evaluated."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from topics.errors import InvalidRequest
from topics.spark.pipeline.routes import RoutedTable, routed
from topics.sql.envelope import CHANGE_TYPE
from topics.tablemodel import TableRoute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW = "struct<id: bigint, body: string, channel: int, at: timestamp, `od d`: double, price: decimal(10,2)>"
COLUMNS = f"op string, before {ROW}, after {ROW}, position string, ts bigint"
TABLE = RoutedTable("chat.messages", ("id",), ("id", "body", "channel", "at", "od d", "price"))
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
OLD = (1, 'he said "hé"\n', 0, AT, 1.5, Decimal("1.10"))
NEW = (1, None, 42, AT, 1.5, Decimal("1.10"))
FULL = {"id": 1, "channel": 42, "at": "2026-01-02T03:04:05.678901Z", "od d": 1.5, "price": 1.1, "body": None}
CHANGES = [
    ("insert", None, OLD, "v1.0", 1000),
    ("update", OLD, NEW, "v2.0", 2000),
    ("delete", NEW, None, "v3.0", 3000),
]


def route(topic: str, operation: str, payload: str = "key", **more: Any) -> TableRoute:
    return TableRoute(topic=topic, operation=operation, payload=payload, **({"start": "snapshot"} | more))


ROUTES = [
    route("key", "insert"),
    route("full.insert", "insert", "full"),
    route("full.delete", "delete", "full"),
    route("diff.insert", "insert", "diff"),
    route("diff.update", "update", "diff"),
    route("before.after", "update", where="before.channel = 0 AND after.channel = 42 AND op = 'update'"),
    route("bare.is.after", "update", where="channel = 42"),
    route("bare.is.before", "delete", where="channel = 42"),
    route("null.is.no", "update", where="body = 'x'"),
    route("null.is.no", "delete", where="NOT (body = 'x')"),
    route("later", "update", start="now", declared_ms=2000),
    route("too.early", "update", start="now", declared_ms=2001),
    route("spread", "update", partition_by="channel"),
    route("spread.by.two", "update", partition_by="channel, body"),
    route("spread.by.null", "update", partition_by="body"),
    # The same failing part twice: Spark must not take it out of both and evaluate it where nothing catches it.
    route("bad", "insert", where="10 / channel > 1"),
    route("bad.too", "insert", where="10 / channel > 1 AND id = 1"),
    route("bad.spread", "insert", partition_by="10 / channel"),
    route("bad.cast", "insert", where="CAST(body AS INT) = 1"),
]


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> dict[str, Any]:
    """All that the routes make of three changes, by topic."""
    found = routed(spark.createDataFrame(CHANGES, COLUMNS), TABLE, ROUTES).collect()
    return {row["topic"]: row for row in found}


def data(records: dict[str, Any], topic: str) -> Any:
    return json.loads(records[topic]["data"])


def test_each_change_goes_where_it_matches(records: dict[str, Any]) -> None:
    failed = {f"{topic}.errors" for topic in ("bad", "bad.too", "bad.spread", "bad.cast")}
    silent = {"null.is.no", "too.early", "bad", "bad.too", "bad.spread", "bad.cast"}
    assert set(records) == {each.topic for each in ROUTES} - silent | failed


def test_the_envelope(records: dict[str, Any]) -> None:
    assert data(records, "key") == {
        "source_table": "chat.messages",
        "op": "insert",
        "payload_mode": "key",
        "ts": 1000,
        "payload": {"id": 1},
        "key": {"id": 1},
        "message_id": "chat.messages@v1.0",
    }
    assert json.loads(records["key"]["meta"]) == {"content-type": CHANGE_TYPE}
    assert (records["key"]["tag"], records["key"]["key"]) == ("1", "1")


def test_payloads_keep_everything(records: dict[str, Any]) -> None:
    assert data(records, "full.insert")["payload"] == {**FULL, "channel": 0, "body": OLD[1]}
    assert data(records, "full.delete")["payload"] == FULL
    assert data(records, "diff.update")["payload"] == {
        "body": {"old": OLD[1], "new": None},
        "channel": {"old": 0, "new": 42},
    }
    inserted = data(records, "diff.insert")["payload"]
    assert inserted == {
        name: {"old": None, "new": value} for name, value in {**FULL, "channel": 0, "body": OLD[1]}.items()
    }


def test_what_rows_are_spread_by(records: dict[str, Any]) -> None:
    keys = [records[topic]["key"] for topic in ("spread", "spread.by.two", "spread.by.null")]
    assert keys == ["42", "42", None]


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("bad", "WHERE (10 / channel > 1) cannot be evaluated for this row"),
        ("bad.too", "WHERE (10 / channel > 1 AND id = 1) cannot be evaluated for this row"),
        ("bad.spread", "PARTITION BY (10 / channel) cannot be evaluated for this row"),
        ("bad.cast", "WHERE (CAST(body AS INT) = 1) cannot be evaluated for this row"),
    ],
)
def test_a_row_that_cannot_be_evaluated_is_told(records: dict[str, Any], topic: str, reason: str) -> None:
    found = data(records, f"{topic}.errors")
    assert (found["reason"], found["topic"], found["message_id"]) == (reason, topic, "chat.messages@v1.0")
    assert found["row"]["body"] == OLD[1] and found["key"] == {"id": 1}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (route("t", "insert", where="nope = 1"), r"WHERE \(nope = 1\): .*`nope` cannot be resolved"),
        (route("t", "insert", where="id + 1"), r"WHERE \(id \+ 1\) is bigint, and it has to be true or false"),
        (route("t", "insert", partition_by="id +"), r"PARTITION BY \(id \+\): .*Syntax error"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(spark: SparkSession, bad: TableRoute, words: str) -> None:
    changes: DataFrame = spark.createDataFrame([], COLUMNS)
    with pytest.raises(InvalidRequest, match=words):
        routed(changes, TABLE, [bad])


def test_a_row_of_a_database_keeps_its_text_and_one_that_does_not_fit_is_told(spark: SparkSession) -> None:
    row = "struct<id: bigint, price: decimal(4, 2), _corrupt: string>"
    exact, wrong = '{"id": 1, "price": 1.50}', '{"id": 1, "price": "much"}'
    good, bad = (1, Decimal("1.50"), None), (1, None, wrong)
    changes = spark.createDataFrame(
        [("insert", None, good, "i1", 1, None, exact), ("update", bad, good, "i2", 2, wrong, exact)],
        f"op string, before {row}, after {row}, position string, ts bigint, before_text string, after_text string",
    )
    table = RoutedTable("t", ("id",), ("id", "price"), has_texts=True)
    kept, told = routed(changes, table, [route("out", "insert", "full"), route("out", "update", "diff")]).collect()
    assert kept["topic"] == "out" and f'"payload":{exact},' in kept["data"], "every digit as the database wrote it"
    assert told["topic"] == "out.errors"
    assert json.loads(told["data"])["reason"] == "the row does not fit the columns of its table"


def test_a_table_without_a_key(spark: SparkSession) -> None:
    """Its records have no key and no tag, and go to any partition."""
    changes = spark.createDataFrame(CHANGES[:1], COLUMNS)
    keyless = RoutedTable("lines", (), TABLE.columns)
    (found,) = routed(changes, keyless, [route("out", "insert", "full")]).collect()
    assert (found["key"], found["tag"]) == (None, None)
    told = json.loads(found["data"])
    assert (told["key"], told["payload"]["id"], told["message_id"]) == (None, 1, "lines@v1.0")


def test_a_trace_travels_with_its_row(spark: SparkSession) -> None:
    row = "struct<id: bigint, traceparent: string>"
    changes = spark.createDataFrame(
        [("insert", None, (1, "00-ab-cd-01"), "v1.0", 1), ("insert", None, (2, None), "v1.1", 1)],
        f"op string, before {row}, after {row}, position string, ts bigint",
    )
    found = routed(changes, RoutedTable("t", ("id",), ("id", "traceparent")), [route("out", "insert")]).collect()
    assert [json.loads(each["meta"]).get("traceparent") for each in found] == ["00-ab-cd-01", None]
