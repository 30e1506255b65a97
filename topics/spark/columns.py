"""The columns of a topic as a table, and pages of records made into Spark's batches.

topic string, partition int, seq bigint, ts timestamp, node string, tag string, meta string, data string
state string, attempts int              of queues and heaps, see jobs.py
priority bigint                         of heaps
value struct<…>, _corrupt string        with the option schema
gap struct<from_seq, to_seq, reason>    with onGap=row: what was lost, in a row of its own
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from topics.errors import InvalidRequest
from topics.spark.jobs import JOB_FIELDS, PRIORITY_FIELD, job_fields
from topics.spark.options import INFER, ROW, Options
from topics.spark.server import Gap, Server
from topics.spark.values import infer_fields, parse_values

BASE: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("seq", LongType()),
        StructField("ts", TimestampType()),
        StructField("node", StringType()),
        StructField("tag", StringType()),
        StructField("meta", StringType()),
        StructField("data", StringType()),
    ]
)
GAP: Final = StructType(
    [StructField("from_seq", LongType()), StructField("to_seq", LongType()), StructField("reason", StringType())]
)
VALUE: Final = "value"
CORRUPT: Final = "_corrupt"
_SAMPLE_ROWS: Final = 1000


def source_schema(options: Options, server: Server) -> StructType | str:
    """The columns that these options give; as DDL when a part of it is the user's, which only Spark can parse."""
    base = [*BASE, *job_fields(options, server)]
    gap = [StructField("gap", GAP)] if options.on_gap == ROW else []
    if not options.value_schema:
        return StructType([*base, *gap])
    if options.value_schema.lower() == INFER:
        value = [StructField(VALUE, _inferred(options, server)), StructField(CORRUPT, StringType())]
        return StructType([*base, *value, *gap])
    ddl = [f"`{field.name}` {field.dataType.simpleString()}" for field in [*base, *gap]]
    return ", ".join([*ddl, f"`{VALUE}` struct<{options.value_schema}>", f"`{CORRUPT}` string"])


def _inferred(options: Options, server: Server) -> StructType:
    texts: list[str] = []
    for name in options.topics:
        found = [state.topic for state in server.topics(name[:-1])] if name.endswith("*") else [name]
        for topic in found:
            if len(texts) < _SAMPLE_ROWS:
                page = server.read(topic, limit=_SAMPLE_ROWS - len(texts))
                texts += page.records.column("data").to_pylist()
    fields = infer_fields(texts)
    if not len(fields):
        raise InvalidRequest(
            "no schema can be inferred: none of the first records is a JSON object; give one, like 'id bigint'",
            field="schema",
            expected="a schema in DDL",
        )
    return from_arrow_schema(fields)


class Columns:
    """Makes batches with exactly the columns that Spark expects."""

    def __init__(self, schema: StructType) -> None:
        known = {field.name for field in [*BASE, *JOB_FIELDS, PRIORITY_FIELD]} | {VALUE, CORRUPT, "gap"}
        for field in schema:
            if field.name not in known:
                raise InvalidRequest(
                    f'there is no column "{field.name}": a topic has {", ".join(sorted(known))}; '
                    "what is inside data is named with .option('schema', …)",
                    field=field.name,
                    expected=sorted(known),
                )
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self.has_jobs = JOB_FIELDS[0].name in self._schema.names

    def batch(self, topic: str, partition: int, records: Any) -> Any:
        """A page of records as a batch."""
        count = records.num_rows
        columns = {name: records.column(name).combine_chunks() for name in records.column_names}
        columns["topic"] = pa.repeat(pa.scalar(topic), count)
        columns["partition"] = pa.repeat(pa.scalar(partition, pa.int32()), count)
        if VALUE in self._schema.names:
            kind = self._schema.field(VALUE).type
            columns[VALUE], columns[CORRUPT] = parse_values(columns["data"], kind)
        return self._batch(columns, count)

    def gap(self, topic: str, partition: int, gap: Gap) -> Any:
        """The row that stands for what is lost."""
        told = {"from_seq": gap.gap_from, "to_seq": gap.gap_to, "reason": gap.reason}
        columns = {
            "topic": pa.array([topic]),
            "partition": pa.array([partition], pa.int32()),
            "seq": pa.array([gap.gap_from], pa.int64()),
            "gap": pa.array([told], self._schema.field("gap").type),
        }
        return self._batch(columns, 1)

    def _batch(self, columns: dict[str, Any], count: int) -> Any:
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
