"""`spark.read.format("topics")`: a table of what is in the topics now.

The heads of the logs are looked at once, when the query is planned, so the table does not move while it is read.
With the option `pushdown`, filters on seq, ts, tag, partition and topic narrow down what is read at all. It is an
option because Spark keeps the narrowed read on the table, and reads it again wherever else that table stands: a
DataFrame that takes filters is good for one query that names it once. Without it Spark filters what was read, and a
DataFrame can be used as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from math import floor
from typing import Any, Final, assert_never

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from topics.limits import SECOND_MS
from topics.spark.columns import Columns
from topics.spark.history import History, LakeRange, begins_in_lake, read_lake
from topics.spark.jobs import dead_letters
from topics.spark.options import LAKE, ROW, Options
from topics.spark.pages import read_range
from topics.spark.ranges import SeqRange, bounds, partition_states, rows_per_task, split
from topics.spark.server import PartitionState, Server

_US_PER_MS: Final = 1000
_NEVER_NULL: Final = frozenset({"topic", "partition", "seq", "ts", "data"})


class TopicsReader(DataSourceReader):
    def __init__(self, options: Options, server: Server, schema: StructType) -> None:
        self._options = options
        self._server = server
        self._columns = Columns(schema)
        self._narrowed = Narrowed()

    def partitions(self) -> Sequence[InputPartition]:
        ranges: list[SeqRange] = []
        states = partition_states(self._options, self._server)
        for state in states:
            if self._narrowed.excludes(state.topic, state.partition):
                continue
            options = self._narrowed.options(self._options)
            start, end = bounds(options, self._server, state)
            start = 0 if begins_in_lake(options) else start
            start, end = max(start, self._narrowed.from_seq), min(end, self._narrowed.to_seq)
            if start < end:
                size = rows_per_task(options, state)
                ranges += split(state.topic, state.partition, state.epoch, start, end, size)
        if self._columns.has_jobs:
            ranges += self._dead(states)
        return list(History(self._options, self._server).divided(ranges)) if self._options.history == LAKE else ranges

    def _dead(self, states: list[PartitionState]) -> Iterator[SeqRange]:
        """The dead letters of the queues, whatever range of living jobs is asked for."""
        for queue, state in dead_letters(self._server, states):
            if state.earliest_seq <= state.head_seq:
                start, end = state.earliest_seq - 1, state.head_seq
                yield SeqRange(state.topic, state.partition, start, end, state.epoch, dead_of=queue)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, LakeRange):
            return read_lake(partition, self._narrowed.options(self._options), self._columns)
        # Spark makes a task without a range when there is nothing to read.
        if not isinstance(partition, SeqRange):
            return iter(())
        return read_range(self._server, self._narrowed.options(self._options), self._columns, partition)


class PushdownReader(TopicsReader):
    """A reader that takes filters. Spark itself says what to set where it is not allowed to hand them over."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that the read keeps exactly; the others are Spark's.

        A gap's row must not fall to one, and dead letters are not where their seqs say.
        """
        if self._options.on_gap == ROW or self._columns.has_jobs:
            return list(filters)
        # What must not be null comes last: by then it is known whether tags are asked for.
        filters = sorted(filters, key=lambda each: isinstance(each, IsNotNull))
        return [each for each in filters if not self._narrowed.take(each, bool(self._options.tags))]


class Narrowed:
    """What the filters of a query leave of what its options name."""

    def __init__(self) -> None:
        self.from_seq = 0
        self.to_seq = 2**63 - 1
        self._from_ms: int | None = None
        self._before_ms: int | None = None
        self._tags: tuple[str, ...] = ()
        self._allowed: dict[str, frozenset[Any]] = {}

    def excludes(self, topic: str, partition: int) -> bool:
        found = {"topic": topic, "partition": partition}
        return any(found[name] not in allowed for name, allowed in self._allowed.items())

    def options(self, options: Options) -> Options:
        return replace(
            options,
            starting_ms=_largest(options.starting_ms, self._from_ms),
            ending_ms=_smallest(options.ending_ms, self._before_ms),
            tags=self._tags or options.tags,
        )

    def take(self, each: Filter, has_tags: bool) -> bool:
        """Whether this filter is taken care of from now on."""
        name = getattr(each, "attribute", ("",))[0]
        match each:
            case IsNotNull():
                return name in _NEVER_NULL or (name == "tag" and (has_tags or bool(self._tags)))
            case EqualTo() if name in ("topic", "partition"):
                return self._allow(name, [each.value])
            case In() if name in ("topic", "partition"):
                return self._allow(name, each.value)
            case EqualTo() | In() | StringStartsWith() if name == "tag" and not (has_tags or self._tags):
                return self._take_tag(each)
            case EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual() if name == "seq":
                return self._take_seq(each)
            case GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual() if name == "ts":
                return self._take_time(each)
            case _:
                return False

    def _allow(self, name: str, values: Iterable[Any]) -> bool:
        self._allowed[name] = self._allowed.get(name, frozenset(values)) & frozenset(values)
        return True

    def _take_tag(self, each: EqualTo | In | StringStartsWith) -> bool:
        tags = tuple(each.value) if isinstance(each, In) else (each.value,)
        # A star at the end means a prefix further down, so a tag that ends in one stays Spark's to compare.
        if not all(isinstance(tag, str) and tag and not tag.endswith("*") for tag in tags):
            return False
        self._tags = (f"{each.value}*",) if isinstance(each, StringStartsWith) else tags
        return True

    def _take_seq(self, each: EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual) -> bool:
        if not isinstance(each.value, int):
            return False
        if isinstance(each, EqualTo | GreaterThan | GreaterThanOrEqual):
            self.from_seq = max(self.from_seq, each.value - (not isinstance(each, GreaterThan)))
        if isinstance(each, EqualTo | LessThan | LessThanOrEqual):
            self.to_seq = min(self.to_seq, each.value - isinstance(each, LessThan))
        return True

    def _take_time(self, each: GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual) -> bool:
        if not isinstance(each.value, datetime) or each.value.tzinfo is None:
            return False
        # No record is older than the epoch.
        second = max(0, floor(each.value.timestamp()))
        whole_ms = second * SECOND_MS + each.value.microsecond // _US_PER_MS
        at_or_after_ms = whole_ms + (each.value.microsecond % _US_PER_MS > 0)
        match each:
            case GreaterThanOrEqual():
                self._from_ms = _largest(self._from_ms, at_or_after_ms)
            case GreaterThan():
                self._from_ms = _largest(self._from_ms, whole_ms + 1)
            case LessThan():
                self._before_ms = _smallest(self._before_ms, at_or_after_ms)
            case LessThanOrEqual():
                self._before_ms = _smallest(self._before_ms, whole_ms + 1)
            case _:
                assert_never(each)
        return True


def _largest(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)


def _smallest(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else min(one, other)
