"""The two ends of the query that archives topics: a source whose tasks write Parquet, and a sink that commits it.

Records do not pass through Spark: a task reads a range of a partition from the server, writes it into files of the
lake, and what Spark carries from the source to the sink is one row a range with the names of its files. The sink hands
those to the driver, which makes one commit of a batch. What a task wrote and nobody committed is swept later.

A query begins where the lake ends, not where a log begins: what was lost before it could be archived is a gap in the
lake, and a new query after a lost checkpoint goes on without a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import Row, StringType, StructField, StructType

from topics.clock import SystemClock
from topics.errors import Internal, TopicNotFound, TopicRecreated
from topics.spark.columns import BASE, GAP
from topics.spark.lakecolumns import lake_rows
from topics.spark.lakefile import Place, write_files
from topics.spark.laketable import Lake, Part
from topics.spark.offsets import EPOCH, Offset, put
from topics.spark.options import ROW, Options, parse_options
from topics.spark.pages import read_range
from topics.spark.ranges import SeqRange, partition_states
from topics.spark.server import Server
from topics.spark.stream import TopicsStreamReader

FORMAT: Final = "topics_lake"
SCHEMA: Final = StructType([StructField("part", StringType())])
_ARROW: Final = pa.schema([pa.field("part", pa.string())])
_QUERY_ID: Final = "sql.streaming.queryId"
_RECORDS: Final = StructType([*BASE, StructField("gap", GAP)])


class ArchiveReader(TopicsStreamReader):
    """Ranges of topics, archived by the task that reads them."""

    def __init__(self, options: Options, server: Server, root: str) -> None:
        super().__init__(replace(options, on_gap=ROW), server, _RECORDS)
        self._root = root
        self._layout = Lake.open(root).layout

    def initialOffset(self) -> dict[str, Any]:
        lake = Lake.open(self._root)
        offset: Offset = {}
        for state in partition_states(self._options, self._server):
            put(offset, state, lake.upto_seq(Place(state.topic, state.epoch, state.partition)))
        return offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return super().partitions(self._known(start, end), end)

    def _known(self, start: Offset, end: Offset) -> Offset:
        """Where a batch begins: a topic that its checkpoint has not seen may be in the lake all the same."""
        known = {topic: dict(places) for topic, places in start.items()}
        for topic, places in end.items():
            if topic not in known:
                lake = Lake.open(self._root)
                known[topic] = {EPOCH: places[EPOCH]}
                for name in places.keys() - {EPOCH}:
                    known[topic][name] = lake.upto_seq(Place(topic, places[EPOCH], int(name)))
        return known

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, SeqRange)
        pages = read_range(self._server, self._options, self._columns, partition)
        now_ms = SystemClock().now_ms()
        rows = (lake_rows(page, partition.epoch, now_ms) for page in pages)
        part = Part(
            partition.topic,
            partition.epoch,
            partition.partition,
            partition.from_seq,
            partition.to_seq,
            list(write_files(self._root, self._layout, rows)),
        )
        yield pa.RecordBatch.from_pylist([{"part": msgspec.json.encode(part).decode()}], schema=_ARROW)


@dataclass
class Parts(WriterCommitMessage):
    """What a task hands to the driver."""

    query_id: str
    texts: list[str]


class LakeWriter(DataSourceStreamWriter):
    def __init__(self, root: str, archive: str, server: Server) -> None:
        self._root = root
        self._archive = archive
        self._server = server

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
        if not query_id:
            raise Internal("Spark does not say which query this is, so nothing could be committed exactly once")
        return Parts(query_id, [row["part"] for row in iterator])

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        told = [message for message in messages if isinstance(message, Parts)]
        if not told:
            return
        parts = [msgspec.json.decode(text, type=Part) for message in told for text in message.texts]
        Lake.open(self._root).commit(told[0].query_id, batchId, parts)
        report(self._server, self._archive, self._root, {part.place for part in parts})

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Files that no commit names are nobody's: `topics lake vacuum` sweeps them."""


def report(server: Server, archive: str, root: str, places: set[Place]) -> None:
    """Tell the server how far the lake is; a topic that is gone or was made anew has nothing to wait for."""
    lake = Lake.open(root)
    for place in sorted(places):
        try:
            server.archived(place.topic, archive, lake.upto_seq(place), root, place.partition, place.epoch)
        except (TopicNotFound, TopicRecreated):
            continue


class LakeSource(DataSource):
    """Both ends, with the options of `format("topics")` and `location` and `archive` beside them."""

    preset: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return SCHEMA

    def _server(self, options: Options) -> Server:
        return Server(options.url, options.key, options.timeout_ms)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = parse_options(self.options, self.preset)
        return ArchiveReader(options, self._server(options), self.options["location"])

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = parse_options(self.options, self.preset)
        return LakeWriter(self.options["location"], self.options["archive"], self._server(options))


def preset_lake(**preset: str) -> type[LakeSource]:
    """The same with options that need not be said, and so are in no plan."""
    given = dict(preset)

    class PresetLake(LakeSource):
        preset: ClassVar[Mapping[str, str]] = given

    return PresetLake
