"""Which columns a topic has as a table, with a schema that is said and one that is found."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StructType

from tests.spark.rig import fill, rows, schema_of, source
from topics.errors import InvalidRequest
from topics.spark import columns
from topics.spark.columns import Columns
from topics.testing.served import RunningServer

BASE = ["topic", "partition", "seq", "ts", "node", "tag", "meta", "data"]


def test_a_schema_is_found_in_the_records_of_all_topics(
    topics_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(topics_server, "in.a", {"id": 1}, {"id": None, "name": "x"})
    fill(topics_server, "in.b", {"more": [1.5]}, 7)
    found = schema_of(source(topics_server, "in.*", schema="INFER", onGap="row"))
    assert found.names == [*BASE, "value", "_corrupt", "gap"]
    assert found["value"].dataType.simpleString() == "struct<id:bigint,name:string,more:array<double>>"
    values = [(row["data"], row["value"], row["_corrupt"]) for row in rows(topics_server, "in.b", schema="infer")]
    assert values == [('{"more":[1.5]}', {"more": [1.5]}, None), ("7", None, "7")]
    monkeypatch.setattr(columns, "_SAMPLE_ROWS", 2)
    few = schema_of(source(topics_server, "in.a,in.b", schema="infer"))
    assert few["value"].dataType.simpleString() == "struct<id:bigint,name:string>", "no more than a sample is read"


def test_no_schema_is_found_where_there_are_no_objects(topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1, None, "text")
    with pytest.raises(InvalidRequest, match="none of the first records is a JSON object; give one, like 'id bigint'"):
        source(topics_server, "t", schema="infer").schema()


def test_a_schema_that_is_said_is_sparks_to_read(topics_server: RunningServer) -> None:
    told = source(topics_server, "t", schema="id bigint", onGap="row").schema()
    assert isinstance(told, str)
    assert told.startswith("`topic` string, `partition` int, `seq` bigint")
    assert told.endswith("`gap` struct<from_seq:bigint,to_seq:bigint,reason:string>, `value` struct<id bigint>, "
                         "`_corrupt` string")  # fmt: skip


def test_a_column_that_no_topic_has_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r'there is no column "id": a topic has .* named with .option'):
        Columns(StructType().add("seq", LongType()).add("id", LongType()))
