"""Statements about topics and groups in `spark.sql`: ours go to the server, Spark's to Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, ParseException

from tests.spark.rig import datas, fill
from topics.errors import Conflict, InvalidRequest, InvalidSql, NameTaken, TopicNotFound
from topics.spark import RecordsLostWarning, Session, connect, disconnect
from topics.testing.served import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONSUMED = ["topic", "partition", "offset", "key", "op", "payload", "payload_mode", "source_table", "ts", "message_id"]


@pytest.fixture
def session(spark: SparkSession, topics_server: RunningServer) -> Iterator[Session]:
    yield connect(spark, topics_server.url)
    disconnect(spark)


def rows(frame: DataFrame) -> list[list[Any]]:
    return [list(row) for row in frame.collect()]


def test_topics_come_and_go_with_their_tables(spark: SparkSession, session: Session) -> None:
    made = spark.sql("CREATE TOPIC app.orders PARTITIONS 2 ALIAS o WITH (retention_seconds = :keep)", {"keep": 60})
    assert (made.columns, rows(made)) == (["message"], [["topic app.orders created"]])
    assert session.tables == {"app_orders": "app.orders"}
    written = spark.sql("INSERT INTO TOPIC o (data, tag) VALUES (?, ?), ('1', NULL)", args=[{"sku": "it's"}, "paid"])
    assert (written.columns, rows(written)) == (
        ["topic", "partition", "first_offset", "last_offset"],
        [["app.orders", 0, 1, 2]],
    )
    found = spark.sql("SELECT seq, tag, data FROM topics.app_orders WHERE partition = 0 ORDER BY seq")
    assert rows(found) == [[1, "paid", '{"sku":"it\'s"}'], [2, None, "1"]]
    assert rows(spark.sql("SHOW TOPICS LIKE 'app%'")) == [["app.orders", "o", "log", 2, 2, 15]]
    described = dict(rows(spark.sql("DESCRIBE TOPIC o")))
    assert (described["partitions"], described["ttl_ms"], json.loads(described["alias"])) == ("2", "60000", "o")
    spark.sql("ALTER TOPIC o SET (retention_seconds = 0); INSERT INTO TOPIC later VALUES ('1')")
    assert session.tables == {"app_orders": "app.orders", "later": "later"}
    spark.sql("REGISTER TABLE chat.messages USING delta LOCATION '/lake/messages' KEY (id)")
    assert rows(
        spark.sql("ALTER TOPIC o ADD SOURCE chat.messages ON INSERT WHERE (a = 1) WITH (payload = 'full')")
    ) == [["chat.messages is a source of topic o"]]
    assert [row["filter_expr"] for row in spark.sql("SHOW ROUTES").collect()] == ["a = 1"]
    assert rows(spark.sql("CLEAR TOPIC o")) == [["2 records of topic app.orders deleted"]]
    spark.sql("DROP TOPIC o")
    assert session.tables == {"later": "later"}
    shown = [row.tableName for row in spark.sql("SHOW TABLES IN topics").collect() if not row.isTemporary]
    assert shown == ["later"]


def test_a_group_consumes_and_acks(spark: SparkSession, session: Session, topics_server: RunningServer) -> None:
    big = 2**63
    fill(topics_server, "orders", {"n": big, "text": "日本"}, 2, None, [1.0])
    got = spark.sql("CONSUME FROM orders GROUP 'billing' FROM EARLIEST LIMIT 3")
    assert got.columns == CONSUMED
    assert [field.dataType.simpleString() for field in got.schema] == (
        ["string", "bigint", "bigint", "string", "string", "string", "string", "string", "bigint", "string"]
    )
    assert [(row["offset"], row["payload"]) for row in got.collect()] == [
        (1, f'{{"n":{big},"text":"日本"}}'),
        (2, "2"),
        (3, None),
    ]
    assert got.count() == 3, "it holds what was consumed, however often it is used"
    counted = got.selectExpr("sum(get_json_object(payload, '$.n')) AS n").first()
    assert counted is not None and counted["n"] == float(big)
    state = spark.sql("SELECT committed_offset, head_offset, lag, claimed, paused FROM system.groups")
    assert rows(state) == [[0, 4, 4, 3, False]]
    acked = spark.sql("ACK orders GROUP :group UPTO OFFSET :offset", {"group": "billing", "offset": 2})
    assert acked.columns == ["topic", "group_id", "partition", "committed_offset"]
    assert rows(acked) == [["orders", "billing", 0, 2]]
    assert rows(state) == [[2, 4, 2, 1, False]], "a DataFrame over a system table asks anew"
    assert rows(spark.sql("NACK orders GROUP billing UPTO 3")) == [["orders", "billing", 0, 1, 2]]
    spark.sql("PAUSE GROUP billing ON orders")
    assert rows(spark.sql("CONSUME FROM orders GROUP billing")) == []
    spark.sql("RESUME GROUP billing ON orders")
    rest = spark.sql("CONSUME FROM orders GROUP billing WAIT 30000")
    assert [row["offset"] for row in rest.collect()] == [3]
    (extended,) = spark.sql("EXTEND orders GROUP billing UPTO 3 FOR 90000").collect()
    assert extended["extended"] == 1 and extended["deadline"] == datetime(2023, 11, 14, 22, 14, 50)
    since = datetime(2023, 1, 1, tzinfo=UTC)
    assert rows(spark.sql("RESET GROUP billing ON orders TO TIMESTAMP ?", [since])) == [["orders", "billing", 0, 0]]
    (shown,) = spark.sql("SHOW GROUPS ON orders").collect()
    assert (shown["group_id"], shown["lag"]) == ("billing", 4)
    assert rows(spark.sql("DROP GROUP billing ON orders")) == [["group billing of topic orders dropped"]]
    explained = rows(spark.sql("EXPLAIN CONSUME FROM orders GROUP g LIMIT 5"))
    assert explained[0] == ["statement", "CONSUME FROM orders GROUP 'g' LIMIT 5"]
    assert rows(spark.sql("SHOW GROUPS")) == [], "what is explained is not done"


def test_what_is_lost_is_told(spark: SparkSession, session: Session, topics_server: RunningServer) -> None:
    spark.sql("CREATE TOPIC short WITH (cap_records = 2); CONSUME FROM short GROUP g")
    fill(topics_server, "short", *range(5))
    with pytest.warns(RecordsLostWarning, match=r"records 1 to 3 of short, partition 0, are lost \(cap\)"):
        got = spark.sql("CONSUME FROM short GROUP g")
    assert [row["offset"] for row in got.collect()] == [4, 5]
    consumed, acked = session.sql("CONSUME FROM short GROUP h FROM 1; ACK short GROUP h UPTO 5")
    assert [(lost.gap_from, lost.gap_to) for lost in consumed.tombstones] == [(1, 3)]
    assert (consumed.message, acked.tombstones, rows(acked.frame)) == (None, (), [["short", "h", 0, 5]])


def test_everything_else_is_sparks(spark: SparkSession, session: Session) -> None:
    assert rows(spark.sql("SELECT :a + ?::int".replace("?", ":b"), {"a": 1, "b": "2"})) == [[3]]
    assert rows(spark.sql("SELECT * FROM {df} WHERE id > ?", [1], df=spark.range(3))) == [[2]]
    assert rows(spark.sql("EXPLAIN SELECT 1"))[0][0].startswith("== Physical Plan ==")
    spark.sql("CREATE OR REPLACE TEMP VIEW topic AS SELECT 7 AS seven")
    assert rows(spark.sql("DESCRIBE topic"))[0][0] == "seven"
    joined = """
        SELECT t.name, q.ready FROM system.topics t LEFT JOIN system.queues q USING (topic_id)
        WHERE t.type <> 'queue' OR q.ready = 0 ORDER BY t.name
    """
    spark.sql("CREATE TOPIC jobs WITH (type = 'queue'); CREATE TOPIC a")
    assert rows(spark.sql(joined)) == [["a", None], ["jobs", 0]]
    names = {row.tableName for row in spark.sql("SHOW TABLES IN system").collect() if not row.isTemporary}
    assert names >= {"topics", "partitions", "topic_routes", "topic_offsets", "groups", "queues", "heaps", "metrics"}
    sample = "SELECT value FROM system.metrics WHERE name = 'topics_topics'"
    assert rows(spark.sql(sample)) in ([[2.0]], [])
    (made,) = spark.sql("SELECT created_at, retention_max_bytes, config FROM system.topics WHERE name = 'a'").collect()
    assert (made["created_at"], made["retention_max_bytes"]) == (datetime(2023, 11, 14, 22, 13, 20), None)
    assert json.loads(made["config"])["type"] == "log"
    spark.catalog.dropTempView("topic")


def test_errors_say_where_and_change_nothing(
    spark: SparkSession, session: Session, topics_server: RunningServer
) -> None:
    text = "CREATE TOPIC one;\nCONSUME FROM one LIMIT :many WIAT 5"
    with pytest.raises(InvalidSql) as refused:
        spark.sql(text, {"many": 3})
    assert (refused.value.detail["line"], refused.value.detail["column"]) == (2, 30)
    assert refused.value.message.split("\n")[1:] == ["  CONSUME FROM one LIMIT :many WIAT 5", "  " + " " * 29 + "^^^^"]
    with pytest.raises(InvalidSql, match="line 1, column 19: a query is Spark's"):
        spark.sql("CREATE TOPIC one; SELECT 1")
    with pytest.raises(InvalidRequest, match="would become part of its text"):
        spark.sql("CONSUME FROM {name}", name="one")
    with pytest.raises(InvalidSql, match="parameter 1 is a Column"):
        spark.sql("CONSUME FROM one LIMIT ?", [spark.range(1).id])
    with pytest.raises(InvalidSql, match="parameter at is a time without a zone"):
        spark.sql("CONSUME FROM one FROM TIMESTAMP :at", {"at": datetime(2026, 1, 1)})
    assert rows(spark.sql("SHOW TOPICS")) == []
    with pytest.raises(TopicNotFound) as failed:
        spark.sql("CREATE TOPIC one; DROP TOPIC two")
    assert failed.value.detail["statement"] == 2
    assert session.tables == {"one": "one"}, "what was done before it has its table"
    with pytest.raises(NameTaken):
        spark.sql("CREATE TOPIC one")
    assert datas(topics_server, "one") == []


def test_a_database_of_somebody_else_is_left_alone(spark: SparkSession, topics_server: RunningServer) -> None:
    spark.sql("CREATE DATABASE mine")
    spark.sql("CREATE TABLE mine.topics USING parquet AS SELECT 7 AS seven")
    for parameter in ("database", "system_database"):
        with pytest.raises(Conflict, match=f'a database "mine" that was not made for topics.*{parameter}='):
            connect(spark, topics_server.url, **{parameter: "mine"})
    assert rows(spark.sql("SELECT * FROM mine.topics")) == [[7]]
    spark.sql("DROP DATABASE mine CASCADE")


def test_what_is_somebody_elses_stays(spark: SparkSession, topics_server: RunningServer) -> None:
    """What stood in front of the session, a table beside ours, and the table of another topic."""
    below, asked = spark.sql, list[str]()

    def own(text: str, *given: Any, **more: Any) -> DataFrame:
        asked.append(text)
        return below(text, *given, **more)

    for topic in ("t", "u:a", "other"):
        fill(topics_server, topic, 1)
    vars(spark)["sql"] = own
    try:
        session = connect(spark, topics_server.url, topics=["t", "u*"])
        assert session.tables == {"t": "t", "u_a": "u:a"}
        spark.sql("CREATE TABLE system.mine USING parquet AS SELECT 7 AS seven")
        with pytest.warns(UserWarning, match='the tables as they were: topics "u.a" and "u:a" would both be the table'):
            spark.sql('CREATE TOPIC "u.a"')
        assert session.tables == {"t": "t", "u_a": "u:a"} and session.lag("u.a").rows[0].count == 0
        disconnect(spark)
        assert vars(spark)["sql"] is own and "`topics`" in asked[0], "ours asks what stood there before"
        shown = [row.tableName for row in spark.sql("SHOW TABLES IN system").collect() if not row.isTemporary]
        assert shown == ["mine"]
    finally:
        disconnect(spark)
        vars(spark).pop("sql", None)
        spark.sql("DROP DATABASE IF EXISTS system CASCADE")


def test_leaving_a_session_leaves_nothing(spark: SparkSession, topics_server: RunningServer) -> None:
    before = {row.namespace for row in spark.sql("SHOW DATABASES").collect()}
    plain = spark.sql
    fill(topics_server, "t", 1)
    connect(spark, topics_server.url)
    connect(spark, topics_server.url, database="again", topics=["nothing.*"])
    assert rows(spark.sql("SHOW TOPICS"))[0][0] == "t"
    disconnect(spark)
    assert {row.namespace for row in spark.sql("SHOW DATABASES").collect()} == before
    assert spark.sql == plain
    with pytest.raises(ParseException):
        spark.sql("SHOW TOPICS")
    with pytest.raises(AnalysisException, match="url must be the address"):
        spark.read.format("topics").option("topic", "t").load()
    disconnect(spark)
