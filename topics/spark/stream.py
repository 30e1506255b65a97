"""`spark.readStream.format("topics")`: a query that stands at an exact place in each partition.

Spark asks for the latest offset before each batch, and asks again at once when there is nothing new. So the answer
waits: each partition is asked with a long-poll, and the first that has something ends the wait. A batch is what lies
between two offsets and is read again exactly so after a crash; the checkpoint is the truth, and nothing is acked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from copy import copy
from threading import Event, Thread
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from topics.errors import TopicsError
from topics.limits import SECOND_MS
from topics.spark.columns import Columns
from topics.spark.history import History, LakeRange, begins_in_lake, read_lake
from topics.spark.offsets import Offset, move, place, put, ranges_between
from topics.spark.options import LAKE, Options
from topics.spark.pages import read_range
from topics.spark.ranges import SeqRange, bounds, partition_states
from topics.spark.server import PartitionState, Server

WAITERS_MAX: Final = 32
"""Partitions that are waited for at once. What is new in others is seen when the wait is over."""


class TopicsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Options, server: Server, schema: StructType) -> None:
        self._options = options
        self._server = server
        self._columns = Columns(schema)
        self._ends: Offset | None = None
        """With AvailableNow: where the query stops."""

    def initialOffset(self) -> dict[str, Any]:
        offset: Offset = {}
        for state in partition_states(self._options, self._server):
            begins = 0 if begins_in_lake(self._options) else bounds(self._options, self._server, state)[0]
            put(offset, state, begins)
        return offset

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.rows_per_trigger_max:
            return ReadMaxRows(self._options.rows_per_trigger_max)
        if self._options.bytes_per_trigger_max:
            return ReadMaxBytes(self._options.bytes_per_trigger_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._ends = self.reportLatestOffset()

    def reportLatestOffset(self) -> dict[str, Any]:
        offset: Offset = {}
        for state in partition_states(self._options, self._server):
            put(offset, state, state.head_seq)
        return offset

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        states = partition_states(self._options, self._server)
        if self._ends is None and not _has_news(start, states):
            self._wait(start, states)
            states = partition_states(self._options, self._server)
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        bytes_max = 0 if isinstance(limit, ReadAllAvailable) else self._options.bytes_per_trigger_max
        return move(start, states, self._ends, rows_max, bytes_max)

    def _wait(self, start: Offset, states: list[PartitionState]) -> None:
        """Until one of the partitions has something new, or the time is over."""
        news = Event()
        for state in states[:WAITERS_MAX]:
            # Each has a connection of its own. It outlives the wait by at most as long as a wait may take.
            asked = (copy(self._server), state, place(start, state), news)
            Thread(target=self._poll, args=asked, daemon=True).start()
        news.wait(self._options.wait_ms / SECOND_MS)

    def _poll(self, server: Server, state: PartitionState, cursor: int, news: Event) -> None:
        wanted = {"from_seq": cursor, "partition": state.partition, "limit": 1, "wait_ms": self._options.wait_ms}
        with closing(server):
            try:
                page = server.read(state.topic, **wanted)
            except TopicsError:
                # Whatever it is, the next look at the state says it to who can do something about it.
                news.set()
                return
        if page.facts.head_seq > cursor or page.facts.epoch != state.epoch:
            news.set()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ranges = ranges_between(start, end, self._options.rows_per_task)
        return list(History(self._options, self._server).divided(ranges)) if self._options.history == LAKE else ranges

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, LakeRange):
            return read_lake(partition, self._options, self._columns)
        assert isinstance(partition, SeqRange)
        return read_range(self._server, self._options, self._columns, partition)


def _has_news(start: Offset, states: list[PartitionState]) -> bool:
    return any(place(start, state) < state.head_seq for state in states)
