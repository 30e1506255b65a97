"""The system tables: what there is and how it stands, a row at a time.

Made on the loop when a statement asks, of the topics that the client may touch. Rows are Python values for one slice at
a time only, so neither a turn of the loop nor a garbage collection grows with the number of topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from topics.core import config as configs
from topics.core.registry import Topic
from topics.engine.engine import Engine
from topics.limits import SECOND_MS
from topics.model import TopicState, TopicType
from topics.sql.systemcolumns import columns_of
from topics.sqlengine import catalogtables
from topics.sqlengine.access import Access
from topics.sqlmodel import SqlColumn

SLICE = 64
"""Topics looked at before the loop gets a turn."""

Row = tuple[Any, ...]
Metrics = Callable[[], Iterable[tuple[str, dict[str, str], float]]]
"""Name, labels and value of every sample that whoever asks may see."""


_ARROW: Final = {
    "VARCHAR": pa.string(),
    "JSON": pa.string(),
    "BIGINT": pa.int64(),
    "UBIGINT": pa.uint64(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("ms", tz="UTC"),
}
_JSON: Final = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}

# The first array loads pandas where it is installed. This module is loaded on a thread; tables are made on the loop.
pa.array([0])


class SystemTable:
    """A table as it was while its rows were made. Times are milliseconds since 1970; JSON is text."""

    def __init__(self, columns: Sequence[SqlColumn]) -> None:
        self.schema = pa.schema(
            [
                pa.field(column.name, _ARROW[column.type], metadata=_JSON if column.type == "JSON" else None)
                for column in columns
            ]
        )
        self._batches: list[Any] = []

    def add(self, rows: Sequence[Row]) -> None:
        if rows:
            arrays = [
                pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), self.schema, strict=True)
            ]
            self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def arrow(self) -> Any:
        """All rows, as a `pyarrow.Table`."""
        return pa.Table.from_batches(self._batches, self.schema)


class SystemTables:
    def __init__(self, engine: Engine, metrics: Metrics = lambda: ()) -> None:
        self._engine = engine
        self._metrics = metrics

    async def table(self, name: str, access: Access) -> SystemTable:
        """A whole system table."""
        table = SystemTable(columns_of(name))
        async for rows in self.slices(name, access):
            table.add(rows)
        return table

    async def slices(self, name: str, access: Access, topic: str | None = None) -> AsyncIterator[list[Row]]:
        """The rows of a system table, or those about one topic, slice by slice; between two the loop gets a turn."""
        columns_of(name)
        if name == "metrics":
            yield [(sample, msgspec.json.encode(labels).decode(), value) for sample, labels, value in self._metrics()]
            return
        if name in ("tables", "pipelines"):
            make_rows = catalogtables.table_rows if name == "tables" else catalogtables.pipeline_rows
            yield list(make_rows(self._engine, access))
            return
        make = self._rows_of(name)
        found: list[Row] = []
        for number, each in enumerate(self._topics(access, topic), 1):
            found += make(each)
            if number % SLICE == 0:
                yield found
                found = []
                await asyncio.sleep(0)
        yield found

    def _topics(self, access: Access, topic: str | None) -> Iterator[Topic]:
        """In order of their names; what is made or dropped meanwhile may be in it or not."""
        registry = self._engine.machine.topics
        if topic is not None:
            yield self._engine.machine.topic(topic)
            return
        after = ""
        while page := registry.page(after, "", SLICE):
            after = page[-1].name
            yield from (each for each in page if access.may_touch(each.name) and registry.named(each.name) is each)

    def _rows_of(self, name: str) -> Callable[[Topic], Iterator[Row]]:
        return {
            "topics": self._summary,
            "partitions": self._partitions,
            "topic_routes": self._routes,
            "topic_offsets": self._offsets,
            "groups": self._groups,
            "queues": self._queues,
            "heaps": self._heaps,
        }[name]

    # ---- the rows of a topic

    def _summary(self, topic: Topic) -> Iterator[Row]:
        states = [self._engine.state(topic.name, number, touch=False) for number in range(topic.config.partitions)]
        config = topic.config
        yield (
            topic.name,
            topic.name,
            config.alias,
            config.type.value,
            config.partitions,
            config.ttl_ms / SECOND_MS if config.ttl_ms else None,
            config.cap_bytes or None,
            config.durability.value,
            sum(state.count for state in states),
            sum(state.bytes for state in states),
            topic.created_ms,
            topic.updated_ms or topic.created_ms,
            catalogtables.routes_of(topic),
            msgspec.json.encode(configs.as_wire(config)).decode(),
        )

    def _partitions(self, topic: Topic) -> Iterator[Row]:
        for number in range(topic.config.partitions):
            state = self._engine.state(topic.name, number, touch=False)
            yield (
                topic.name,
                number,
                state.head_seq,
                state.earliest_seq,
                state.evict_floor,
                state.count,
                state.bytes,
                state.last_write_ts,
            )

    def _routes(self, topic: Topic) -> Iterator[Row]:
        yield from catalogtables.route_rows(self._engine, topic)

    def _offsets(self, topic: Topic) -> Iterator[Row]:
        for group in self._engine.groups.list(topic.name):
            yield topic.name, group.group, group.partition, group.committed_seq, group.updated_ms or None

    def _groups(self, topic: Topic) -> Iterator[Row]:
        for group in self._engine.groups.list(topic.name):
            yield (
                topic.name,
                group.group,
                group.partition,
                group.committed_seq,
                group.head_seq,
                group.lag,
                group.in_flight,
                group.member_count,
                group.oldest_unacked_ts,
                group.paused,
            )

    def _queues(self, topic: Topic) -> Iterator[Row]:
        if topic.config.type is TopicType.QUEUE:
            for state, jobs in self._jobs(topic):
                yield topic.name, state.partition, *jobs

    def _heaps(self, topic: Topic) -> Iterator[Row]:
        if topic.config.type is TopicType.HEAP:
            for state, jobs in self._jobs(topic):
                yield topic.name, state.partition, topic.config.mode.value, *jobs, state.count, state.bytes

    def _jobs(self, topic: Topic) -> Iterator[tuple[TopicState, Row]]:
        """Each partition, and how many of its jobs are in which state."""
        for number in range(topic.config.partitions):
            state = self._engine.state(topic.name, number, touch=False)
            queue = state.queue
            assert queue is not None, "queues and heaps have jobs"
            counts = (queue.ready, queue.in_flight, queue.delayed, queue.dead_lettered)
            yield state, (*counts, topic.config.dead_letter)
