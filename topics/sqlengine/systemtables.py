"""The system tables: what there is and how it stands, a row at a time.

Made on the loop when a statement asks, in slices, of the topics that whoever asks may touch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

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


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table as it was at one moment. Times are milliseconds since 1970; JSON is text."""

    columns: tuple[SqlColumn, ...]
    rows: list[Row]

    def arrow(self) -> Any:
        import pyarrow as pa

        types = {
            "VARCHAR": pa.string(),
            "JSON": pa.string(),
            "BIGINT": pa.int64(),
            "UBIGINT": pa.uint64(),
            "BOOLEAN": pa.bool_(),
            "DOUBLE": pa.float64(),
            "TIMESTAMP WITH TIME ZONE": pa.timestamp("ms", tz="UTC"),
        }
        json = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
        fields = [
            pa.field(column.name, types[column.type], metadata=json if column.type == "JSON" else None)
            for column in self.columns
        ]
        arrays = [pa.array([row[at] for row in self.rows], field.type) for at, field in enumerate(fields)]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


class SystemTables:
    def __init__(self, engine: Engine, metrics: Metrics = lambda: ()) -> None:
        self._engine = engine
        self._metrics = metrics

    async def table(self, name: str, access: Access, topic: str | None = None) -> SystemTable:
        """A system table, or what of it is about one topic."""
        columns = columns_of(name)
        if name == "metrics":
            rows = [(sample, msgspec.json.encode(labels).decode(), value) for sample, labels, value in self._metrics()]
            return SystemTable(columns, rows)
        if name in ("tables", "pipelines"):
            make_rows = catalogtables.table_rows if name == "tables" else catalogtables.pipeline_rows
            return SystemTable(columns, list(make_rows(self._engine, access)))
        make = self._rows_of(name)
        found: list[Row] = []
        for number, each in enumerate(self._topics(access, topic), 1):
            found += make(each)
            if number % SLICE == 0:
                await asyncio.sleep(0)
        return SystemTable(columns, found)

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
