"""A queue or a heap as a table: its jobs with their states, those that are dead included.

    state      ready, leased, delayed, or dead: in the queue's dead-letter topic
    attempts   how often it was handed out; of a heap, how many deliveries failed
    priority   of a heap only

Jobs that were completed are gone. A dead letter is shown as the job it was: with its topic, its seq and its meta there.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField

from topics.errors import TopicNotFound
from topics.spark.options import Options
from topics.spark.server import PartitionState, Server

QUEUE: Final = "queue"
HEAP: Final = "heap"
DEAD: Final = "dead"
JOB_FIELDS: Final = (StructField("state", StringType()), StructField("attempts", IntegerType()))
PRIORITY_FIELD: Final = StructField("priority", LongType())
PRIORITY: Final = "$priority"
"""Where a record says the priority of its message; 0 when it does not."""

_STAMP: Final = "$dead_letter_"
_FROM: Final = f"{_STAMP}from"
_DELIVERIES: Final = f"{_STAMP}deliveries"
_SOURCE_SEQ: Final = f"{_STAMP}src_seq"
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_meta = msgspec.json.Decoder(dict[str, str])


def job_fields(options: Options, server: Server) -> list[StructField]:
    """The columns of jobs, when one of the topics is a queue or a heap. One that is not there yet is neither."""
    types = set()
    for name in options.topics:
        try:
            states = server.topics(name[:-1]) if name.endswith("*") else [server.state(name)]
        except TopicNotFound:
            continue
        types |= {state.type for state in states}
    priority = [PRIORITY_FIELD] if HEAP in types else []
    return [*JOB_FIELDS, *priority] if types & {QUEUE, HEAP} else []


def dead_letters(server: Server, states: list[PartitionState]) -> list[tuple[str, PartitionState]]:
    """Where the dead letters of queues and heaps are: the queue, and each partition of its dead-letter topic."""
    found: list[tuple[str, PartitionState]] = []
    queues = {state.topic: state.config.get("dead_letter") for state in states if state.type in (QUEUE, HEAP)}
    for queue, name in queues.items():
        try:
            first = server.state(name) if name else None
        except TopicNotFound:
            continue
        if first is not None:
            found.append((queue, first))
            found += [(queue, server.state(first.topic, partition)) for partition in range(1, first.partitions)]
    return found


def as_jobs(records: Any, queue: str) -> Any:
    """Dead letters as the jobs of a queue that they were; those of others are left out."""
    metas = [_meta.decode(text) if text else {} for text in records.column("meta").to_pylist()]
    rows = [row for row, meta in enumerate(metas) if meta.get(_FROM) == queue]
    kept = [metas[row] for row in rows]
    own = [{name: text for name, text in meta.items() if not name.startswith(_STAMP)} for meta in kept]
    columns = {name: records.column(name).take(rows) for name in ("ts", "node", "tag", "data")}
    return pa.table(
        {
            **columns,
            "seq": pa.array([int(meta[_SOURCE_SEQ]) for meta in kept], pa.int64()),
            "meta": pa.array([msgspec.json.encode(meta).decode() if meta else None for meta in own], pa.string()),
            "state": pa.repeat(pa.scalar(DEAD), len(rows)),
            "attempts": pa.array([int(meta[_DELIVERIES]) for meta in kept], pa.int32()),
            "priority": pa.array([_priority(meta) for meta in kept], pa.int64()),
        }
    )


def _priority(meta: dict[str, str]) -> int:
    """As the server has it: what is no number of 64 bits is 0."""
    text = meta.get(PRIORITY, "0")
    number = int(text) if _NUMBER.fullmatch(text) else 0
    return number if -(2**63) <= number < 2**63 else 0
