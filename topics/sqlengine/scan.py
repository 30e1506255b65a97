"""Reading a topic beside the loop: the loop plans, a thread makes batches of it.

The state of a log belongs to the loop, so each step of a scan is planned there: which blocks, and which records of
them. That costs no more than a page of a diff. The blocks themselves never change, and stay readable as long as
somebody has them, so their columns are made on the query's thread, one step ahead of which the next is planned.

A scan sees each partition up to where it ended when the query began. What is lost from under it is told, what was lost
before is not part of the table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from topics.core.log import Log
from topics.core.match import Match
from topics.core.read import Span, cursor_at, plan_read
from topics.engine.engine import Engine
from topics.errors import TopicRecreated
from topics.limits import MIB
from topics.model import Tombstone
from topics.sqlmodel import SqlTombstone

STEP_RECORDS = 65_536
STEP_BYTES = 8 * MIB
"""What one step plans at most, so that the loop is soon free again."""
STEP_RUNS = 64
"""Runs whose tags one step looks up."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Extent:
    """A partition of a topic as it is when a query begins."""

    topic: str
    epoch: int
    partition: int
    end_seq: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a partition has to be read."""

    first_seq: int = 0
    last_seq: int = 2**64 - 1
    from_ms: int | None = None
    to_ms: int | None = None
    match: Match | None = None


@dataclass(frozen=True, slots=True)
class Step:
    spans: list[Span]
    done: bool


def extents(engine: Engine, topic_name: str, partitions: frozenset[int] | None = None) -> list[Extent]:
    """On the loop: the partitions of a topic, or those of these numbers that there are."""
    topic = engine.machine.topic(topic_name)
    found = []
    for number in range(topic.config.partitions):
        if partitions is None or number in partitions:
            state = engine.state(topic.name, number)
            found.append(Extent(topic.name, topic.epoch, number, state.head_seq))
    return found


class PartitionScan:
    """One partition, step by step. On the loop only."""

    def __init__(self, engine: Engine, extent: Extent, wanted: Wanted) -> None:
        self._engine = engine
        self._extent = extent
        self._wanted = wanted
        self._cursor = -1
        """-1 before the first step."""
        self._end = min(extent.end_seq, wanted.last_seq)
        self.tombstone: SqlTombstone | None = None

    def step(self) -> Step:
        log = self._log()
        if self._cursor < 0:
            self._begin(log)
        if self._cursor >= self._end:
            return Step([], True)
        if self._wanted.match is not None:
            return self._step_tagged(log, self._wanted.match)
        plan = plan_read(log, self._end, self._cursor, STEP_RECORDS, STEP_BYTES)
        if plan.tombstone is not None:
            self._tell(plan.tombstone)
        self._cursor = plan.next_from_seq
        return Step(plan.spans, self._cursor >= self._end)

    def _log(self) -> Log:
        machine = self._engine.machine
        topic = machine.topic(self._extent.topic)
        if topic.epoch != self._extent.epoch:
            raise TopicRecreated(
                f'topic "{topic.name}" was dropped and made anew while it was read', topic=topic.name, epoch=topic.epoch
            )
        log = machine.log(topic, self._extent.partition)
        log.observe(topic.config, self._engine.now_ms())
        return log

    def _begin(self, log: Log) -> None:
        """Behind all that is gone already, and behind what the conditions leave out."""
        self._cursor = max(log.evict_floor - 1, self._wanted.first_seq - 1, 0)
        if self._wanted.from_ms is not None:
            self._cursor = max(self._cursor, cursor_at(log, self._wanted.from_ms))
        if self._wanted.to_ms is not None:
            self._end = min(self._end, cursor_at(log, self._wanted.to_ms + 1))

    def _step_tagged(self, log: Log, match: Match) -> Step:
        """Through the index of tags, a run at a time."""
        spans: list[Span] = []
        count = 0
        if self._cursor + 1 < log.evict_floor:
            lost = plan_read(log, self._end, self._cursor, 1, 1).tombstone
            assert lost is not None, "what is behind the floor is lost"
            self._tell(lost)
            self._cursor = log.evict_floor - 1
        for number, run in enumerate(log.parts_from(max(self._cursor + 1, log.low))):
            if run.first_seq > self._end:
                break
            if number == STEP_RUNS or count >= STEP_RECORDS:
                return Step(spans, False)
            seqs = run.find(match, self._end + 1)
            seqs = seqs[int(np.searchsorted(seqs, np.uint64(max(self._cursor + 1, log.low)))) :]
            count += len(seqs)
            while len(seqs):
                block, _ = run.block_at(int(seqs[0]))
                upto = int(np.searchsorted(seqs, np.uint64(block.last_seq), side="right"))
                chosen = (seqs[:upto] - np.uint64(block.first_seq)).astype(np.int64)
                spans.append(Span(block, int(chosen[0]), int(chosen[-1]) + 1, chosen))
                seqs = seqs[upto:]
            self._cursor = min(run.last_seq, self._end)
        return Step(spans, True)

    def _tell(self, lost: Tombstone) -> None:
        extent = self._extent
        told = SqlTombstone(
            topic=extent.topic,
            partition=extent.partition,
            gap_from=lost.gap_from,
            gap_to=lost.gap_to,
            reason=lost.reason,
            missed_estimate=lost.missed_estimate,
            earliest_seq=lost.earliest_seq,
            head_seq=lost.head_seq,
        )
        before = self.tombstone
        if before is not None:
            missed = before.missed_estimate + told.missed_estimate
            told = msgspec.structs.replace(told, gap_from=before.gap_from, missed_estimate=missed)
        self.tombstone = told


class Scan:
    """Several partitions, from a thread: of each step its partition, its spans, and whether it is the last one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, parts: Sequence[tuple[int, PartitionScan]]) -> None:
        self._loop = loop
        self._parts = parts

    def __iter__(self) -> Iterator[tuple[int, list[Span], bool]]:
        for number, (partition, part) in enumerate(self._parts, 1):
            done = False
            ahead = self._plan(part.step)
            while not done:
                step = ahead.result()
                done = step.done
                if not done:
                    ahead = self._plan(part.step)
                yield partition, step.spans, done and number == len(self._parts)

    def _plan(self, work: Callable[[], T]) -> Future[T]:
        """Have the loop do something."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return future
