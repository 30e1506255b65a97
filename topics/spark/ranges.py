"""What a task reads: a range of seqs of one partition. Few large ones, because a task has a price of its own.

Batch and stream plan alike. Within a range everything is read in order; ranges of a partition follow each other, so
that the rows of a DataFrame that is read in the order of its tasks are in the order of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import InputPartition

from topics.spark.options import EARLIEST, LATEST, Options
from topics.spark.server import PartitionState, Server

BYTES_PER_TASK: Final = 128 << 20


@dataclass(frozen=True)
class SeqRange(InputPartition):
    """Behind `from_seq`, up to and with `to_seq`, of one life of a topic."""

    topic: str
    partition: int
    from_seq: int
    to_seq: int
    epoch: int
    recreated: bool = False
    """Whether the reader stood in an earlier life of the topic, and has to be told."""
    dead_of: str = ""
    """The queue whose dead letters are wanted, when this is their topic."""


def partition_states(options: Options, server: Server) -> list[PartitionState]:
    """All partitions that the options name, in order."""
    found: dict[str, PartitionState] = {}
    for name in options.topics:
        if name.endswith("*"):
            found |= {state.topic: state for state in server.topics(name[:-1])}
        else:
            found[name] = server.state(name)
    states: list[PartitionState] = []
    for topic, first in sorted(found.items()):
        for partition in range(first.partitions):
            if not options.partitions or partition in options.partitions:
                states.append(first if partition == first.partition else server.state(topic, partition))
    return states


def bounds(options: Options, server: Server, state: PartitionState) -> tuple[int, int]:
    """The cursor before the first record wanted, and the seq of the last."""
    start = _place(options.starting_seq, state, -1)
    if options.starting_ms is not None:
        start = max(start, _seq_before(server, state, options.starting_ms))
    end = min(_place(options.ending_seq, state, 0), state.head_seq)
    if options.ending_ms is not None:
        end = min(end, _seq_before(server, state, options.ending_ms))
    return max(0, start), end


def _place(said: int | str, state: PartitionState, shift: int) -> int:
    if said == EARLIEST:
        return state.earliest_seq - 1
    if said == LATEST:
        return state.head_seq
    return int(said) + shift


def _seq_before(server: Server, state: PartitionState, ms: int) -> int:
    """The last seq before the first record stamped `ms` or later."""
    page = server.read(state.topic, partition=state.partition, from_ts=ms, limit=1)
    seqs: list[int] = page.records.column("seq").to_pylist()
    return seqs[0] - 1 if seqs else page.facts.head_seq


def split(topic: str, partition: int, epoch: int, start: int, end: int, rows_max: int) -> list[SeqRange]:
    """The ranges of about equal size that lie between two places of a log."""
    count = max(1, -(-(end - start) // rows_max))
    cuts = [start + (end - start) * part // count for part in range(count + 1)]
    return [SeqRange(topic, partition, cuts[part], cuts[part + 1], epoch) for part in range(count)]


def rows_per_task(options: Options, state: PartitionState) -> int:
    """As many as the options say, and fewer where records are large."""
    record_bytes = state.bytes // state.count if state.count else 0
    return min(options.rows_per_task, max(1, BYTES_PER_TASK // max(1, record_bytes)))


def match_of(tags: tuple[str, ...]) -> dict[str, Any]:
    """The filter that a server applies itself: for one tag, or one prefix."""
    if len(tags) != 1:
        return {}
    return {"match": ["tag", "Glob" if tags[0].endswith("*") else "Eq", tags[0]]}
