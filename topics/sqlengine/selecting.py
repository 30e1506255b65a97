"""Running a query: the loop plans it, a thread makes batches of its tables, a process of its own runs it.

    loop     names become extents of logs and rows of system tables; a process is free
    process  evaluates constants, and asks for batches when DuckDB pulls at a table
    thread   asks the loop which blocks come next, makes batches of them and sends them
    process  answers with text, or an Arrow stream, within its bounds
    loop     the answer

A process has its own memory and a hard bound on it, so a query that needs too much ends alone. All of a query happens
in one transaction, so `now()` is the same wherever it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TypeVar

import msgspec

from topics.core.match import Match
from topics.engine.engine import Engine
from topics.errors import Internal, ShuttingDown, TopicsError
from topics.limits import SECOND_MS
from topics.settings import Settings
from topics.sql import query
from topics.sql.grammar import Origin
from topics.sql.narrowing import Narrowed, narrowed
from topics.sql.quoting import identifier, quoted_string
from topics.sql.statements import Select
from topics.sqlengine import batches, queryerrors
from topics.sqlengine.aside import is_long
from topics.sqlengine.cancelling import Cancelling
from topics.sqlengine.querymessages import Explained, Failure, Open, Query, Table, TimeExpression
from topics.sqlengine.querypool import QueryPool
from topics.sqlengine.queryprocess import Batches, ProcessEnded, QueryProcess, QueryRefused
from topics.sqlengine.result import Result, columns
from topics.sqlengine.scan import Extent, PartitionScan, Scan, Wanted, extents
from topics.sqlengine.systemtables import SystemTable
from topics.sqlmodel import SqlTombstone

US_PER_MS = 1000
START_SECONDS = 60
"""A process that is not ready by then never will be."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """A table of a query: a topic and what of it is needed, or a system table that is made already."""

    table: query.TableName
    narrowed: Narrowed
    extents: tuple[Extent, ...] = ()
    system: SystemTable | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """For whom a query runs, and in which form it is answered."""

    answer_bytes_max: int
    owner: str = ""
    """The key that the processes are shared out by."""
    arrow: bool = False
    explain: bool = False


class Selecting:
    """All queries of one engine."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.sql_queries_max, "sql")
        make = partial(QueryProcess, settings.sql_memory_bytes)
        self._pool = QueryPool(settings.sql_queries_max, make, self._threads)
        self._numbers = count(1)
        self._running: set[Cancelling] = set()
        self._quiet: asyncio.Future[None] | None = None
        """Done when nothing runs any more; None unless `close` waits for it."""

    def source(self, table: query.TableName, needed: Narrowed) -> Source:
        """On the loop: a topic of a query as it is now."""
        return Source(table, needed, tuple(extents(self._engine, table.name, needed.partitions)))

    def counted(self, select: Select, sources: Sequence[Source]) -> Result | None:
        """The answer to a plain `SELECT count(*)`, which each log knows; None when it has to be looked for."""
        if is_long(select.text) or len(sources) != 1 or sources[0].system is not None:
            return None
        name = query.plain_count(query.parse(select.text))
        if name is None:
            return None
        machine = self._engine.machine
        logs = [machine.log(machine.topic(extent.topic), extent.partition) for extent in sources[0].extents]
        if any(log.visible_seq != log.head_seq for log in logs):
            # Some of what is counted cannot be read yet.
            return None
        return Result(columns((name, "BIGINT")), [[sum(log.count for log in logs)]])

    async def run(self, select: Select, sources: Sequence[Source], origin: Origin, asking: Asking) -> Result:
        limit_ms = self._settings.sql_timeout_ms
        process = await self._pool.take(asking.owner, limit_ms)
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        cancelling = Cancelling(loop, process, number)
        job = _Job(self._engine, loop, self._settings, cancelling, number, select, sources, origin, asking)
        self._running.add(cancelling)
        try:
            try:
                if not process.started:
                    cancelling.after(START_SECONDS, queryerrors.not_started(START_SECONDS))
                    await self._on_thread(cancelling, partial(_start, process, cancelling))
                cancelling.after(limit_ms / SECOND_MS, queryerrors.too_long(limit_ms))
                return await self._on_thread(cancelling, partial(job.run, process))
            finally:
                cancelling.over()
        finally:
            self._pool.give(asking.owner, process)
            self._running.discard(cancelling)
            if self._quiet is not None and not self._running and not self._quiet.done():
                self._quiet.set_result(None)

    async def _on_thread(self, cancelling: Cancelling, work: Callable[[], T]) -> T:
        """Do a part of a query; when its client leaves, stop it and wait until it has stopped."""
        done = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            cancelling.cancel(ShuttingDown("the client no longer waits for this query"))
            while not done.done():
                # A second cancellation waits as well: thread and process are in use until the query has stopped.
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({done})
            done.exception()
            raise

    async def close(self) -> None:
        """Stop what runs, and end threads and processes."""
        self._pool.close()
        for cancelling in list(self._running):
            cancelling.cancel(ShuttingDown("the engine is closing"))
        loop = asyncio.get_running_loop()
        if self._running:
            self._quiet = loop.create_future()
            await self._quiet
        await loop.run_in_executor(None, self._threads.shutdown)


def tables_of(select: Select) -> list[tuple[query.TableName, Narrowed]]:
    """The tables of a query in the order of its text, and what is needed of each."""
    found = query.tables(query.parse(select.text))
    return list(zip(found, narrowed(found, select.parameters), strict=True))


@dataclass(slots=True)
class _Job:
    """One query, on its thread."""

    engine: Engine
    loop: asyncio.AbstractEventLoop
    settings: Settings
    cancelling: Cancelling
    number: int
    select: Select
    sources: Sequence[Source]
    origin: Origin
    asking: Asking
    parts: list[PartitionScan] = field(default_factory=list)

    def run(self, process: QueryProcess) -> Result:
        self.cancelling.check()
        names = [f"source {number}" for number in range(len(self.sources))]
        spliced = query.Spliced(self.select.text, [source.table for source in self.sources], names)
        asked = Query(
            self.number,
            spliced.text,
            list(self.select.parameters),
            [_table(name, source) for name, source in zip(names, self.sources, strict=True)],
            self.settings.sql_rows_max,
            self.asking.answer_bytes_max,
            self.asking.arrow,
            self.asking.explain,
        )
        try:
            answer = process.ask(asked, self._scan)
        except QueryRefused as refused:
            raise self._why(refused.failure, spliced) from refused
        except ProcessEnded as ended:
            if self.cancelling.reason is not None:
                raise self.cancelling.reason from ended
            raise queryerrors.crashed(ended.code, self.settings.sql_memory_bytes) from ended
        if self.asking.explain:
            return self._explained(msgspec.json.decode(answer, type=Explained).lines)
        if self.asking.arrow:
            return Result(tombstones=_told(self.parts), stream=answer)
        return Result(tombstones=_told(self.parts), text=answer)

    # ---- tables

    def _scan(self, opening: Open) -> Batches:
        with self.cancelling.failing():
            source = self.sources[opening.table]
            if source.system is not None:
                yield from batches.of_system_table(source.system, opening.columns)
                return
            wanted = _wanted(source.narrowed, opening)
            scans = [(extent.partition, PartitionScan(self.engine, extent, wanted)) for extent in source.extents]
            self.parts.extend(part for _, part in scans)
            for partition, spans, last in Scan(self.loop, scans):
                self.cancelling.check()
                if spans or last:
                    yield batches.of_spans(partition, spans, opening.columns), last

    # ---- answers

    def _explained(self, plan: Iterable[str]) -> Result:
        rows: list[list[object]] = []
        for source in self.sources:
            about = "a system table" if source.system is not None else str(source.narrowed)
            rows.append(["read", f"{_name_of(source)}: {about}"])
        rows += [["plan", line] for line in plan]
        return Result(columns(("step", "VARCHAR"), ("detail", "VARCHAR")), rows)

    def _why(self, failure: Failure, spliced: query.Spliced) -> TopicsError:
        """Why a query has no result, as an error that says where in the original text."""
        if self.cancelling.reason is not None:
            return self.cancelling.reason
        if isinstance(self.cancelling.error, TopicsError):
            return self.cancelling.error
        if self.cancelling.error is not None:
            return Internal(f"a query failed: {self.cancelling.error}")
        return queryerrors.of_failure(failure, self.settings, self.origin, spliced)


def _start(process: QueryProcess, cancelling: Cancelling) -> None:
    try:
        process.start()
    except ProcessEnded as ended:
        cancelling.check()
        raise queryerrors.not_started(START_SECONDS, ended.code) from ended


def _table(name: str, source: Source) -> Table:
    """A table of a query as its process is told of it."""
    if source.system is not None:
        return Table(name, batches.system_schema(source.system), None)
    times = [TimeExpression(time.text, list(time.parameters), time.after) for time in source.narrowed.times]
    view = batches.VIEW.format(topic=quoted_string(_name_of(source)), scanned=identifier(f"{name} scanned"))
    return Table(name, batches.TOPIC_SCHEMA, view, times)


def _wanted(needed: Narrowed, opening: Open) -> Wanted:
    """What a scan has to read, with its times in whole milliseconds."""
    return Wanted(
        needed.first_seq,
        needed.last_seq,
        None if opening.from_us is None else opening.from_us // US_PER_MS,
        None if opening.to_us is None else -(-opening.to_us // US_PER_MS),
        None if needed.tag is None else Match(needed.tag.encode(), needed.tag_prefix),
    )


def _name_of(source: Source) -> str:
    """The topic's own name, also where the query has its alias."""
    return source.extents[0].topic if source.extents else source.table.name


def _told(parts: Sequence[PartitionScan]) -> tuple[SqlTombstone, ...]:
    """What was lost while it was read; once, however often a table was."""
    return tuple(dict.fromkeys(part.tombstone for part in parts if part.tombstone is not None))
