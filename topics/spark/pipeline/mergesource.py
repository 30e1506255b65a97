"""The sink that writes rows into a Delta table: `format("topics_rows")`.

Tasks put their rows aside as Parquet, beside the checkpoint; the driver reads those files in the order of the tasks and
makes one commit of a batch. Files of a batch that failed are found by no commit, and swept when the next one is done.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from topics.errors import Internal, InvalidRequest
from topics.spark.pipeline.mergetable import RowTable
from topics.spark.pipeline.spool import Spool

FORMAT: Final = "topics_rows"
_QUERY_ID: Final = "sql.streaming.queryId"
_PREFIX: Final = "rows-"


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task put aside: a file, or nothing."""

    task: int
    query_id: str
    name: str = ""


class RowWriter(DataSourceStreamArrowWriter):
    def __init__(self, location: str, key: tuple[str, ...], spool: str) -> None:
        self._table = RowTable(location, key)
        self._spool = spool

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
        if context is None or not query_id:
            raise Internal("Spark does not say which query this is, so nothing could be committed exactly once")
        name = f"{_PREFIX}{uuid4().hex}.parquet"
        writer: Any = None
        for batch in iterator:
            if not batch.num_rows:
                continue
            if writer is None:
                sink = Spool(self._spool).create(name)
                writer = pq.ParquetWriter(sink, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            return Written(context.partitionId(), query_id)
        writer.close()
        sink.close()
        return Written(context.partitionId(), query_id, name)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        written = sorted((each for each in messages if isinstance(each, Written)), key=lambda each: each.task)
        spool = Spool(self._spool)
        names = [each.name for each in written if each.name]
        if names:
            tables = []
            for name in names:
                with spool.open(name) as source:
                    tables.append(pq.read_table(source))
            self._table.commit(written[0].query_id, batchId, pa.concat_tables(tables))
        for name in spool.names(_PREFIX):
            spool.delete(name)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What the tasks left is swept with the next batch."""


class RowSink(DataSource):
    """Options: `location` of the table, `key` (columns with commas between, none to append), `spool`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        if overwrite:
            raise InvalidRequest(
                "a table of a pipeline is merged into or appended to: output_mode 'append' or 'update'"
            )
        key = tuple(name for name in self.options.get("key", "").split(",") if name)
        return RowWriter(self.options["location"], key, self.options["spool"])
