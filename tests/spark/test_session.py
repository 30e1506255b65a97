"""A server said once for a session: SQL, streams and joins over topics by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.rig import scanned
from topics.spark.session import Session, connect, disconnect
from topics.testing.served import RunningServer, running_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "a-key-that-nobody-should-see"


@pytest.fixture
def served() -> Iterator[RunningServer]:
    """A server that wants a key."""
    with running_server(api_keys=KEY) as server:
        yield server


@pytest.fixture
def session(spark: SparkSession, served: RunningServer) -> Iterator[Session]:
    with served.client(KEY) as client:
        client.topic("orders").write_many([{"data": {"id": n}, "tag": f"t{n}"} for n in range(5)])
        client.topic("orders.eu").create()
        yield connect(spark, served.url, KEY)
    disconnect(spark)


def test_a_table_in_many_queries_and_places(spark: SparkSession, session: Session) -> None:
    def counted(query: str) -> int:
        (found,) = spark.sql(f"SELECT count(*) AS count FROM {query}").collect()
        return int(found["count"])

    assert session.tables["orders"] == "orders"
    assert counted("topics.orders WHERE seq < 3") == 2
    assert counted("topics.orders") == 5
    assert (
        counted("(SELECT * FROM topics.orders WHERE seq < 3 UNION ALL SELECT * FROM topics.orders WHERE seq = 5)") == 3
    )
    assert counted("topics.orders a CROSS JOIN topics.orders b WHERE a.seq < 3") == 10
    frame = spark.table("topics.orders")
    assert [frame.filter("seq < 3").count(), frame.count()] == [2, 5]
    assert counted("topics.orders WITH (pushdown = 'true') WHERE seq < 3") == 2
    pushed = spark.sql("SELECT seq FROM topics.orders WITH (pushdown = 'true') WHERE seq < 3")
    assert [row.seq for row in pushed.collect()] == [1, 2] and not scanned(pushed)


def test_topics_are_tables(
    spark: SparkSession, session: Session, served: RunningServer, tmp_path: Path, spark_event_log: Path
) -> None:
    assert session.tables == {"orders": "orders", "orders_eu": "orders.eu"}
    found = spark.sql("SELECT seq, tag FROM topics.orders WHERE seq > 2 AND tag <> 't3'").collect()
    assert [(row.seq, row.tag) for row in found] == [(3, "t2"), (5, "t4")]
    spark.sql("""INSERT INTO topics.orders (data, tag) SELECT to_json(struct(7 AS id)), 'new'""")
    spark.createDataFrame([(2, "two"), (7, "seven")], "id int, name string").createOrReplaceTempView("names")
    joined = """
        SELECT names.name, orders.tag FROM topics.orders JOIN names ON get_json_object(orders.data, '$.id') = names.id
    """
    assert {(row.name, row.tag) for row in spark.sql(joined).collect()} == {("two", "t2"), ("seven", "new")}
    columns = [row.col_name for row in spark.sql("DESCRIBE topics.orders").collect()]
    assert columns == ["topic", "partition", "seq", "ts", "node", "tag", "meta", "data"]
    query = (
        spark.readStream.table("topics.orders")
        .selectExpr("upper(tag) AS tag", "data")
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable("topics.orders_eu")
    )
    query.awaitTermination()
    with served.client(KEY) as client:
        copied = client.topic("orders.eu").diff(include_tags=True).records
        assert [record.tag for record in copied] == ["T0", "T1", "T2", "T3", "T4", "NEW"]
        client.topic("later").write(1)
        client.topic("orders.eu").drop()
    assert session.refresh() == {"later": "later", "orders": "orders"}
    assert [row.seq for row in spark.sql("SELECT * FROM topics.later").collect()] == [1]
    shown = [row.tableName for row in spark.sql("SHOW TABLES IN topics").collect() if not row.isTemporary]
    assert shown == ["later", "orders"], "beside views, which are the session's own"
    assert spark.read.format("topics").option("topic", "orders").load().count() == 6
    assert [row.count for row in session.lag("orders").rows] == [6]
    assert served.url in repr(session)
    plan = spark.sql("EXPLAIN EXTENDED SELECT * FROM topics.orders").first()[0]  # type: ignore[index]
    logged = "".join(path.read_text() for path in spark_event_log.rglob("*") if path.is_file())
    assert "topics" in logged
    assert KEY not in plan + logged + repr(session) + str(spark.sparkContext.getConf().getAll())


def test_all_that_use_the_session_are_one_group(request: pytest.FixtureRequest) -> None:
    """Otherwise each worker of a run starts a Spark of its own."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("there is one process")
    assert request.node.nodeid.endswith("@spark")
