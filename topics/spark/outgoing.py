"""Rows on their way into topics: which of their columns mean what, and which partition of which topic they go to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import IntegerType, LongType, ShortType, StringType, StructType, TimestampType

from topics.errors import Forbidden, InvalidRequest, TopicNotFound
from topics.limits import PARTITIONS_MAX
from topics.model import StageState
from topics.spark.jobs import HEAP, PRIORITY
from topics.spark.jsontexts import json_texts
from topics.spark.options import Options
from topics.spark.server import PartitionState, Server
from topics.spark.staging import Target, new_stage
from topics.wire.routing import partition_of

_TEXTS: Final = ("topic", "key", "tag", "node")
_WAITS: Final = ("delay_ms", "not_before")
_US_PER_MS: Final = 1000
_WHOLE: Final = (ShortType, IntegerType, LongType)


def check_columns(options: Options, schema: StructType) -> None:
    """`InvalidRequest` when a DataFrame with these columns cannot be written."""
    kinds = {field.name: field.dataType for field in schema}
    if "data" not in kinds:
        raise InvalidRequest(
            "there is no column data, which is what is written: strings as they are (JSON), all else as JSON; "
            "for whole rows select struct(*) AS data",
            field="data",
            expected="a column data",
        )
    for name in _TEXTS:
        if name in kinds and not isinstance(kinds[name], StringType):
            raise InvalidRequest(f"column {name} must be a string, not {kinds[name].simpleString()}", field=name)
    if "partition" in kinds and not isinstance(kinds["partition"], _WHOLE):
        raise InvalidRequest("column partition must be a whole number", field="partition")
    if "delay_ms" in kinds and not isinstance(kinds["delay_ms"], _WHOLE):
        raise InvalidRequest("column delay_ms must be a whole number", field="delay_ms")
    if "not_before" in kinds and not isinstance(kinds["not_before"], (LongType, TimestampType)):
        raise InvalidRequest("column not_before must be a timestamp, or milliseconds as a bigint", field="not_before")
    if all(name in kinds for name in _WAITS):
        raise InvalidRequest("columns delay_ms and not_before both say how long: have one of them", field="delay_ms")
    if "priority" in kinds and not isinstance(kinds["priority"], _WHOLE):
        raise InvalidRequest("column priority must be a whole number", field="priority")
    if not options.topics and "topic" not in kinds:
        raise InvalidRequest(
            "where to? Neither option topic nor a column topic says it", field="topic", expected="a topic"
        )
    if len(options.topics) > 1 or options.is_wild:
        raise InvalidRequest(
            "option topic names one topic when writing; for several have a column topic",
            field="topic",
            expected="one name",
        )


class Outgoing:
    """Splits batches by target. What it learns of topics it keeps: a task is short."""

    def __init__(self, options: Options, server: Server) -> None:
        self._topic = options.topics[0] if options.topics else ""
        self._create = options.create
        self._server = server
        self._partition_counts: dict[str, int] = {}
        self._types: dict[str, str] = {}

    def split(self, batch: Any) -> Iterator[tuple[Target, Any]]:
        """The rows of a batch, for each target a table with the columns of a write; the order is kept."""
        if not batch.num_rows:
            return
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        records = _records(columns)
        for topic, rows in self._by_topic(columns, batch.num_rows):
            chosen = records if rows is None else records.filter(rows)
            yield from self._by_partition(topic, chosen, columns, rows)

    def _by_topic(self, columns: dict[str, Any], count: int) -> Iterator[tuple[str, Any]]:
        if self._topic:
            yield self._topic, None
            return
        names = columns["topic"]
        if names.null_count:
            raise InvalidRequest("column topic is null in a row, and there is no option topic", field="topic")
        found = pc.unique(names).to_pylist()
        for name in found:
            yield name, None if len(found) == 1 else pc.equal(names, name)

    def _by_partition(
        self, topic: str, records: Any, columns: dict[str, Any], rows: Any
    ) -> Iterator[tuple[Target, Any]]:
        chosen = {name: columns[name] if rows is None else columns[name].filter(rows) for name in _ROUTING & {*columns}}
        # What is made here is a log: only jobs of a queue or a heap can wait, and only a heap has priorities.
        of_jobs = any(name in columns for name in (*_WAITS, "priority"))
        count = self._partition_count(topic, self._create and not of_jobs)
        if "priority" in columns and self._types[topic] != HEAP:
            raise InvalidRequest(
                f'column priority is for heaps, and topic "{topic}" is a {self._types[topic]}: drop the column, or '
                "write to a heap",
                field="priority",
                expected="a heap",
            )
        partitions = _partitions(chosen, records.num_rows, count)
        if partitions is None:
            yield Target(topic, 0), records
            return
        found = pc.unique(partitions).to_pylist()
        for partition in found:
            if not 0 <= partition < count:
                raise InvalidRequest(
                    f'topic "{topic}" has partitions 0 to {count - 1}, and a row is for {partition}',
                    field="partition",
                    expected=f"0 to {count - 1}",
                )
            yield (
                Target(topic, partition),
                records if len(found) == 1 else records.filter(pc.equal(partitions, partition)),
            )

    def _partition_count(self, topic: str, may_create: bool) -> int:
        """How many partitions a topic has; it is made when it is not there and may be."""
        if topic not in self._partition_counts:
            try:
                state = self._asked(topic)
            except TopicNotFound:
                if not may_create:
                    raise
                self._make(topic)
                state = self._asked(topic)
            self._partition_counts[topic] = state.partitions
            self._types[topic] = state.type
        return self._partition_counts[topic]

    def _asked(self, topic: str) -> PartitionState | StageState:
        """What a topic is. Whoever may write and not read is told so by a stage, which is given up at once."""
        try:
            return self._server.state(topic)
        except Forbidden:
            name = new_stage()
            state = self._server.stage(name, topic, 0, 0, _NOTHING)
            self._server.abort([name])
            return state

    def _make(self, topic: str) -> None:
        try:
            self._server.create(topic)
        except Forbidden as error:
            raise Forbidden(
                f'topic "{topic}" is not there, and it cannot be made: {error.message}; make it first', topic=topic
            ) from None


_ROUTING: Final = frozenset({"key", "partition"})
_NOTHING: Final = pa.table({"data": ["null"]})


def _records(columns: dict[str, Any]) -> Any:
    """The columns that the server stores."""
    found = {"data": json_texts(columns["data"])}
    found |= {name: columns[name] for name in ("tag", "node") if name in columns}
    if "meta" in columns:
        meta = columns["meta"]
        found["meta"] = pc.if_else(pc.is_valid(meta), json_texts(meta), pa.scalar(None, pa.string()))
    if "priority" in columns:
        found["meta"] = _with_priority(found.get("meta"), columns["priority"])
    if "delay_ms" in columns:
        found["delay_ms"] = columns["delay_ms"]
    if "not_before" in columns:
        found["not_before"] = _whole_ms(columns["not_before"])
    return pa.table(found)


def _with_priority(metas: Any | None, priorities: Any) -> Any:
    """The metas with what makes a record a message of this priority; 0 and null need no word."""
    nothing = pa.scalar(None, pa.string())
    given = pa.nulls(len(priorities), pa.string()) if metas is None else metas
    said = pc.binary_join_element_wise(f'{{"{PRIORITY}":"', priorities.cast(pa.string()), '"', "")
    # The rest of an object that has something in it, or its end.
    inner = pc.utf8_ltrim_whitespace(pc.utf8_slice_codeunits(pc.utf8_ltrim_whitespace(given), 1))
    rest = pc.if_else(pc.starts_with(inner, "}"), inner, pc.binary_join_element_wise(",", inner, ""))
    joined = pc.binary_join_element_wise(said, pc.coalesce(rest, pa.scalar("}")), "")
    plain = pc.fill_null(pc.equal(priorities, 0), True)
    return pc.if_else(plain, pc.coalesce(given, nothing), joined)


def _whole_ms(times: Any) -> Any:
    """Milliseconds; what lies between two of them is the later one."""
    if not pa.types.is_timestamp(times.type):
        return times
    microseconds = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    return pc.divide(pc.add(microseconds, _US_PER_MS - 1), _US_PER_MS)


def _partitions(columns: dict[str, Any], count: int, partition_count: int) -> Any | None:
    """The partition of each row; None when all go to the first. A partition goes before a key."""
    if partition_count == 1 and "partition" not in columns:
        return None
    by_key = pa.repeat(pa.scalar(0, pa.int64()), count)
    if "key" in columns:
        keys = columns["key"].dictionary_encode()
        homes = [partition_of(key, partition_count) for key in keys.dictionary.to_pylist()]
        by_key = pc.fill_null(pa.array(homes, pa.int64()).take(keys.indices), 0)
    if "partition" not in columns:
        return by_key if "key" in columns else None
    said = columns["partition"].cast(pa.int64())
    assert partition_count <= PARTITIONS_MAX
    return pc.coalesce(said, by_key)
