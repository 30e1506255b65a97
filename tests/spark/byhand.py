"""The query of an archive without Spark: the same calls in the same order, and any of them can be left out."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from topics.spark.lakequery import ArchiveReader, LakeWriter, Parts
from topics.spark.laketable import Lake
from topics.spark.options import Options
from topics.spark.server import Server


class Archiver:
    """A query with a checkpoint of its own."""

    def __init__(self, server: Server, root: str, rows_per_task: int = 4) -> None:
        Lake.create(root)
        options = Options(url="", topics=("*",), rows_per_task=rows_per_task, wait_ms=0)
        self.query_id = uuid4().hex
        self.reader = ArchiveReader(options, server, root)
        self.writer = LakeWriter(root, "lake", server)
        self.offsets: list[dict[str, Any]] = [self.reader.initialOffset()]
        """Those of the batches that Spark has logged, whether they were committed or not."""
        self.committed = 0

    def plan(self, limit: ReadLimit | None = None) -> None:
        """Log the next batch, as Spark does before it runs it."""
        end = self.reader.latestOffset(self.offsets[-1], limit or ReadAllAvailable())
        self.offsets.append(end)

    def tasks(self) -> list[Parts]:
        """Run the tasks of the batch that is due; their files are there when this is over."""
        start, end = self.offsets[self.committed : self.committed + 2]
        found = []
        for partition in self.reader.partitions(start, end):
            texts = [text for batch in self.reader.read(partition) for text in batch.column("part").to_pylist()]
            found.append(Parts(self.query_id, texts))
        return found

    def commit(self, messages: list[Parts], told: bool = True) -> None:
        """The driver's part; without `told` it dies before Spark notes that the batch is done."""
        self.writer.commit([*messages], self.committed)
        if told:
            self.committed += 1

    def batch(self) -> None:
        self.plan()
        self.commit(self.tasks())
