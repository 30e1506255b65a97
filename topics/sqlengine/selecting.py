"""Running a query: its tables found on the loop, its work done on a thread.

    loop     names become extents and rows of system tables; a thread is free
    thread   constants are evaluated, tables given to DuckDB, the query run, its batches gathered
    loop     the answer

All of it happens in one transaction, so that `now()` is the same wherever it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from topics.core.match import Match
from topics.engine.engine import Engine
from topics.errors import Internal, QueryTooExpensive, ShuttingDown, TopicsError
from topics.settings import Settings
from topics.sql import query
from topics.sql.grammar import Origin
from topics.sql.narrowing import Narrowed, TimeBound, narrowed
from topics.sql.quoting import identifier, quoted_string
from topics.sql.statements import Select
from topics.sqlengine.aside import is_long
from topics.sqlengine.cancelling import Cancelling
from topics.sqlengine.result import Result, columns
from topics.sqlengine.sandbox import PREPARING, Sandbox, is_located, refusal
from topics.sqlengine.scan import Extent, PartitionScan, Scan, Wanted, extents
from topics.sqlengine.systemtables import SystemTable
from topics.sqlengine.tables import VIEW, TopicTable
from topics.sqlmodel import SqlColumn, SqlTombstone

US_PER_MS = 1000
FETCH_ROWS = 10_000


Tables = dict[str, tuple[Any, str | None]]
"""By name, what DuckDB scans, and the view of it that the query sees; None when it sees the scanned itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table of a query: a topic and what of it is needed, or a system table that is made already."""

    table: query.TableName
    narrowed: Narrowed
    extents: tuple[Extent, ...] = ()
    system: SystemTable | None = None


class Selecting:
    """All queries of one engine."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.sql_queries_max, "sql")
        self._sandbox: Sandbox | None = None
        self._running: set[Cancelling] = set()
        self._closed = False

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

    async def run(self, select: Select, sources: Sequence[Source], origin: Origin, explain: bool = False) -> Result:
        if self._closed:
            raise ShuttingDown("the engine is closing")
        loop = asyncio.get_running_loop()
        cancelling = Cancelling(loop)
        limit_ms = self._settings.sql_timeout_ms
        job = _Job(self._engine, loop, self._settings, cancelling, select, sources, origin, explain)
        self._running.add(cancelling)
        try:
            work = loop.run_in_executor(self._threads, self._on_thread, job)
            cancelling.after(limit_ms / 1000, _too_long(limit_ms))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                cancelling.cancel(ShuttingDown("nobody waits for this query any more"))
                await asyncio.wait({work})
                work.exception()
                raise
        finally:
            cancelling.over()
            self._running.discard(cancelling)

    def _on_thread(self, job: _Job) -> Result:
        if self._sandbox is None:
            # Two threads may come here at once; the one that is late closes its own.
            made = Sandbox(self._settings.sql_memory_bytes)
            if self._sandbox is None:
                self._sandbox = made
            else:
                made.close()
        return job.run(self._sandbox)

    async def close(self) -> None:
        """End what runs, and let go of the threads."""
        self._closed = True
        for cancelling in list(self._running):
            cancelling.cancel(ShuttingDown("the engine is closing"))
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


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
    select: Select
    sources: Sequence[Source]
    origin: Origin
    explain: bool

    def run(self, sandbox: Sandbox) -> Result:
        names = [f"source {number}" for number in range(len(self.sources))]
        spliced = query.Spliced(self.select.text, [source.table for source in self.sources], names)
        parts: list[PartitionScan] = []
        tables: Tables = {}
        connection = sandbox.connect()
        try:
            self.cancelling.running_on(connection)
            connection.begin()
            for name, source in zip(names, self.sources, strict=True):
                tables[name] = self._table(connection, source, parts), _view(name, source)
            _give(connection, tables)
            if self.explain:
                return self._explained(connection, spliced.text)
            return self._fetched(connection.sql(spliced.text, params=list(self.select.parameters)), parts)
        except TopicsError:
            raise
        except duckdb.Error as error:
            located = _located(error, connection, tables, spliced.text)
            raise self._why(located, spliced, prepared=located is not error) from error
        except Exception as error:
            # An error of a scan comes back in the words of whoever pulled at it.
            raise self._why(error, spliced) from error
        finally:
            connection.close()

    # ---- tables

    def _table(self, connection: duckdb.DuckDBPyConnection, source: Source, parts: list[PartitionScan]) -> Any:
        if source.system is not None:
            return source.system.arrow()
        wanted = _wanted(connection, source.narrowed)

        def scan() -> Scan:
            """From the beginning: a query may read a table more than once."""
            scans = [(extent.partition, PartitionScan(self.engine, extent, wanted)) for extent in source.extents]
            parts.extend(part for _, part in scans)
            return Scan(self.loop, scans)

        return TopicTable(scan, self.cancelling)

    # ---- answers

    def _fetched(self, relation: duckdb.DuckDBPyRelation, parts: Sequence[PartitionScan]) -> Result:
        named = tuple(SqlColumn(*each) for each in zip(relation.columns, map(str, relation.types), strict=True))
        reader: Any = relation.to_arrow_reader(FETCH_ROWS)
        batches = []
        count = size = 0
        for batch in reader:
            self.cancelling.check()
            count += batch.num_rows
            size += batch.nbytes
            if count > self.settings.sql_rows_max:
                raise _too_many(self.settings.sql_rows_max)
            if size > self.settings.sql_memory_bytes:
                raise _too_large(self.settings.sql_memory_bytes)
            batches.append(batch)
        table = pa.Table.from_batches(batches, reader.schema)
        return Result(named, table=table, tombstones=_told(parts))

    def _explained(self, connection: duckdb.DuckDBPyConnection, text: str) -> Result:
        rows: list[list[object]] = []
        for source in self.sources:
            about = "a system table" if source.system is not None else str(source.narrowed)
            rows.append(["read", f"{_name_of(source)}: {about}"])
        plan = connection.execute(f"EXPLAIN {text}", list(self.select.parameters)).fetchall()
        rows += [["plan", line] for _, drawn in plan for line in drawn.splitlines()]
        return Result(columns(("step", "VARCHAR"), ("detail", "VARCHAR")), rows)

    def _why(self, error: Exception, spliced: query.Spliced, prepared: bool = False) -> TopicsError:
        if self.cancelling.reason is not None:
            return self.cancelling.reason
        if isinstance(self.cancelling.error, TopicsError):
            return self.cancelling.error
        # Of rows that are fetched one batch after the other, Arrow says what DuckDB said.
        if isinstance(error, duckdb.Error | OSError) and self.cancelling.error is None:
            return refusal(error, self.origin, spliced, self.settings.sql_memory_bytes, prepared)
        return Internal(f"a query failed: {self.cancelling.error or error}")


def _give(connection: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """Put the tables of a query where it finds them."""
    for name, (table, view) in tables.items():
        if view is None:
            connection.register(name, table)
        else:
            connection.register(f"{name} scanned", table)
            connection.execute(f"CREATE TEMP VIEW {identifier(name)} AS {view}").fetchall()


def _view(name: str, source: Source) -> str | None:
    """What a topic looks like to a query; None of a system table, which is as it is."""
    if source.system is not None:
        return None
    return VIEW.format(topic=quoted_string(_name_of(source)), scanned=identifier(f"{name} scanned"))


def _located(error: duckdb.Error, connection: duckdb.DuckDBPyConnection, tables: Tables, text: str) -> duckdb.Error:
    """The same error with its place: what no relation can be made of is only located by preparing it."""
    if is_located(error):
        return error
    try:
        connection.rollback()
        _give(connection, tables)
        connection.execute(PREPARING + text)
    except duckdb.Error as again:
        return again
    return error


def _wanted(connection: duckdb.DuckDBPyConnection, needed: Narrowed) -> Wanted:
    """What is needed with its times as numbers; a time that cannot be evaluated is left to the query itself."""
    after = [_time_us(connection, time) for time in needed.times if time.after]
    before = [_time_us(connection, time) for time in needed.times if not time.after]
    return Wanted(
        needed.first_seq,
        needed.last_seq,
        max((us // US_PER_MS for us in after if us is not None), default=None),
        min((-(-us // US_PER_MS) for us in before if us is not None), default=None),
        None if needed.tag is None else Match(needed.tag.encode(), needed.tag_prefix),
    )


def _time_us(connection: duckdb.DuckDBPyConnection, time: TimeBound) -> int | None:
    text = f"SELECT epoch_us(CAST(({time.text}) AS TIMESTAMPTZ))"
    try:
        rows = connection.execute(text, list(time.parameters)).fetchall()
    except duckdb.Error:
        connection.rollback()
        connection.begin()
        return None
    value = rows[0][0]
    assert value is None or isinstance(value, int)
    return value


def _name_of(source: Source) -> str:
    """The topic's own name, also where the query has its alias."""
    return source.extents[0].topic if source.extents else source.table.name


def _told(parts: Sequence[PartitionScan]) -> tuple[SqlTombstone, ...]:
    """What was lost while it was read; once, however often a table was."""
    return tuple(dict.fromkeys(part.tombstone for part in parts if part.tombstone is not None))


def _too_long(limit_ms: int) -> QueryTooExpensive:
    return QueryTooExpensive(
        f"this query took longer than the {limit_ms} ms it may (TOPICS_SQL_TIMEOUT_MS): narrow it by seq, ts or tag",
        limit="time_ms",
        max=limit_ms,
    )


def _too_many(rows_max: int) -> QueryTooExpensive:
    return QueryTooExpensive(
        f"the answer has more than {rows_max} rows (TOPICS_SQL_ROWS_MAX): give the query a LIMIT, or read the topic "
        "page by page with a diff",
        limit="rows",
        max=rows_max,
    )


def _too_large(memory_bytes: int) -> QueryTooExpensive:
    return QueryTooExpensive(
        f"the answer is larger than {memory_bytes} bytes (TOPICS_SQL_MEMORY_BYTES): select fewer columns or rows",
        limit="memory_bytes",
        max=memory_bytes,
    )
