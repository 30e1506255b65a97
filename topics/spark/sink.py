"""Writing a DataFrame or a stream into topics, each row once, in order.

Tasks *stage* their rows: durable on the server and seen by nobody, under names that no other attempt uses. When all are
done, the driver *publishes* the stages in the order of the tasks, in one commit, for (query, batch) or for a job id.
Whatever happens to a task, a driver or the server: a batch is published once and whole, and what an attempt left
behind is aborted or expires. A batch that is done again after a crash, split differently or not, gets the answer of the
first time, and its own stages are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from topics.errors import TopicsError
from topics.limits import STAGES_PER_BATCH_MAX
from topics.producermodel import ONE_OFF_MARK
from topics.spark.options import Options
from topics.spark.outgoing import Outgoing, check_columns
from topics.spark.server import Server
from topics.spark.staging import Staging

_QUERY_ID: Final = "sql.streaming.queryId"
_JOB_EPOCH: Final = 0


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What one task put aside: its stages, in the order in which they are to be published."""

    task: int
    stages: tuple[str, ...]
    query_id: str


class _Writing:
    """What a batch and a stream have in common: what a task does, and how a driver ends it."""

    def __init__(self, options: Options, server: Server, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options
        self._server = server

    def _stage(self, batches: Iterator[Any]) -> Staged:
        context = TaskContext.get()
        staging = Staging(self._server)
        outgoing = Outgoing(self._options, self._server)
        try:
            for batch in batches:
                for target, records in outgoing.split(batch):
                    staging.add(target, records)
            staging.flush()
        except BaseException:
            # What cannot be aborted now expires; what went wrong is more important.
            with suppress(TopicsError):
                self._abort([*staging.stages])
            raise
        query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
        return Staged(context.partitionId() if context is not None else 0, tuple(staging.stages), query_id or "")

    def _publish(self, messages: list[WriterCommitMessage | None], producer_id: str, epoch: int) -> None:
        stages = _stages(messages)
        if stages and self._server.publish(stages, producer_id, epoch):
            self._abort(stages)

    def _abort(self, stages: list[str]) -> None:
        for at in range(0, len(stages), STAGES_PER_BATCH_MAX):
            self._server.abort(stages[at : at + STAGES_PER_BATCH_MAX])


class TopicsWriter(_Writing, DataSourceArrowWriter):
    """`df.write.format("topics")`. With a `jobId`, doing the same job again adds nothing."""

    def __init__(self, options: Options, server: Server, schema: StructType) -> None:
        super().__init__(options, server, schema)
        # Without a job id nothing repeats the job, so the server need not remember it for good.
        own_id = f"{ONE_OFF_MARK}spark-job:{uuid4().hex}"
        self._producer_id = f"spark-job:{options.job_id}" if options.job_id else own_id

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._publish(messages, self._producer_id, _JOB_EPOCH)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._abort(_stages(messages))


class TopicsStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """`df.writeStream.format("topics")`: each batch once, for as long as the query has its checkpoint."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        query_ids = {message.query_id for message in messages if isinstance(message, Staged)}
        producer_id = self._options.producer_id or f"spark:{max(query_ids, default='')}"
        self._publish(messages, producer_id, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._abort(_stages(messages))


def _stages(messages: list[WriterCommitMessage | None]) -> list[str]:
    """All stages in the order of their tasks."""
    staged = sorted((each for each in messages if isinstance(each, Staged)), key=lambda each: each.task)
    return [stage for each in staged for stage in each.stages]
