"""The program of a query process: it runs one query after the other, on tables that the engine sends it.

It starts, loads everything a query can need, gives up files, sockets and memory beyond a bound (`confinement.py`), says
READY, and then answers each QUERY with ANSWER or REFUSED. A second socket carries the number of a query that should
stop; when it closes, the engine is gone and so is the process.

What a query leaves behind may be memory that its allocator keeps. When that is too much, or the database is broken, the
answer says so, and the engine starts another process.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from os import _exit
from threading import Lock, Thread
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa

from topics.errors import InvalidSql
from topics.sql.quoting import identifier
from topics.sqlengine.answers import ArrowAnswer, Bounds, GrowingAnswer, JsonAnswer, Refused, pieces
from topics.sqlengine.channel import STOP, Channel, ChannelClosed, Kind
from topics.sqlengine.confinement import confine, ignore_signals
from topics.sqlengine.feed import Feed, ScanFailed
from topics.sqlengine.querymessages import (
    EXIT_NO_MEMORY,
    Confinement,
    Explained,
    Failure,
    Query,
    TimeExpression,
    encode,
)
from topics.sqlengine.sandbox import PREPARING, Sandbox, failure_of, is_broken, is_located
from topics.sqlengine.tables import EngineTable
from topics.sqlmodel import SqlColumn
from topics.storage.fs import ProcessMemory

FETCH_ROWS: Final = 2048
"""A vector of DuckDB."""

KEPT_SHARE: Final = 4
"""A process that keeps more than this part of its memory after a query is replaced."""

_WARM_UP = (
    "SELECT 1::tinyint a, 2.5::decimal(4, 2) b, 'nan'::double c, 'x'::blob d, [1, NULL] e, {'k': 1.5} f, "
    "TIMESTAMPTZ '2026-01-28 12:00:00.123+02' g, DATE '2026-01-28' h, INTERVAL 3 DAY i, '[1]'::json j, NULL k, "
    "1::hugeint l, TIMESTAMP '2026-01-28 12:00:00.000001' m, true n, uuid() o, TIME '12:00:00' p, "
    "MAP {'a': 1} q, '2026-01-28'::timestamp_ns r, '2026-01-28'::timestamp_s s, 'a'::ENUM ('a', 'b') t, "
    "'101'::bit u, 1::ubigint v, union_value(num := 2) w, 1::uhugeint x, TIMETZ '12:00:00+01' y, "
    "strftime(now(), '%A') || regexp_replace('a', 'b', 'c') || date_trunc('month', now())::varchar z"
)
"""A value of each type, so that nothing has to be loaded when files cannot be opened any more."""


class Running:
    """The query that runs, for whoever stops it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._number = 0
        self._stopped = False
        self._connection: duckdb.DuckDBPyConnection | None = None

    def begin(self, number: int, connection: duckdb.DuckDBPyConnection) -> None:
        with self._lock:
            self._number, self._connection, self._stopped = number, connection, False

    def end(self) -> None:
        with self._lock:
            self._connection = None

    def stop(self, number: int) -> None:
        with self._lock:
            if self._connection is not None and self._number == number:
                self._stopped = True
                self._connection.interrupt()

    def check(self) -> None:
        if self._stopped:
            raise Refused(Failure("interrupted"))


class Worker:
    """Queries, one after the other."""

    def __init__(self, sandbox: Sandbox, channel: Channel, running: Running, memory: ProcessMemory) -> None:
        self._sandbox = sandbox
        self._channel = channel
        self._running = running
        self._memory = memory
        self._used_at_start = memory.data_bytes()

    def serve(self) -> None:
        """Until the channel closes."""
        while True:
            try:
                head = self._channel.head()
                text = self._channel.read(head.length)
            except ChannelClosed:
                return
            assert head.kind is Kind.QUERY, head
            self._answer(msgspec.json.decode(text, type=Query))

    def warm_up(self) -> None:
        connection = self._sandbox.connect()
        relation = connection.sql(_WARM_UP)
        answer = JsonAnswer(_columns(relation))
        for batch in relation.to_arrow_reader(1):
            answer.add(batch)
        connection.close()

    def _answer(self, query: Query) -> None:
        feed = Feed(self._channel)
        broken = False
        try:
            parts, kind = _Run(self._sandbox, query, feed, self._running).parts(), Kind.ANSWER
        except Refused as refused:
            parts, kind = [encode(refused.failure)], Kind.REFUSED
        except ChannelClosed:
            raise
        except BaseException as error:
            parts, kind = [encode(_failure(error, feed))], Kind.REFUSED
            broken = is_broken(error)
        feed.finish()
        self._channel.send(kind, int(broken or self._keeps_too_much()), *parts)

    def _keeps_too_much(self) -> bool:
        pa.default_memory_pool().release_unused()
        kept = self._memory.data_bytes() - self._used_at_start
        return kept > self._sandbox.memory_bytes // KEPT_SHARE


class _Run:
    """One query."""

    def __init__(self, sandbox: Sandbox, query: Query, feed: Feed, running: Running) -> None:
        self._sandbox = sandbox
        self._query = query
        self._feed = feed
        self._running = running
        self._tables: list[tuple[str, EngineTable, str | None]] = []

    def parts(self) -> list[Any]:
        connection = self._sandbox.connect()
        self._running.begin(self._query.number, connection)
        try:
            connection.begin()
            self._tables = [self._table(connection, at) for at in range(len(self._query.tables))]
            _give(connection, self._tables)
            return self._explained(connection) if self._query.explain else self._fetched(connection)
        except duckdb.Error as error:
            if is_located(error) or is_broken(error) or self._feed.error is not None:
                raise
            raise Refused(self._located(connection, error)) from error
        finally:
            self._running.end()
            connection.close()

    def _table(self, connection: duckdb.DuckDBPyConnection, index: int) -> tuple[str, EngineTable, str | None]:
        table = self._query.tables[index]
        after = [time for each in table.times if each.after and (time := _time_us(connection, each)) is not None]
        before = [time for each in table.times if not each.after and (time := _time_us(connection, each)) is not None]
        schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
        made = EngineTable(self._feed, index, schema, max(after, default=None), min(before, default=None))
        return table.name, made, table.view

    def _fetched(self, connection: duckdb.DuckDBPyConnection) -> list[Any]:
        query = self._query
        relation = connection.sql(query.text, params=query.parameters)
        reader: Any = relation.to_arrow_reader(FETCH_ROWS)
        bounds = Bounds(query.rows_max, query.answer_bytes_max)
        answer: GrowingAnswer = ArrowAnswer(reader.schema) if query.arrow else JsonAnswer(_columns(relation))
        for batch in reader:
            bounds.take_rows(batch.num_rows)
            for piece in pieces(batch):
                self._running.check()
                bounds.take_bytes(answer.add(piece))
        return answer.parts()

    def _explained(self, connection: duckdb.DuckDBPyConnection) -> list[Any]:
        plan = connection.execute(f"EXPLAIN {self._query.text}", self._query.parameters).fetchall()
        return [encode(Explained([line for _, drawn in plan for line in drawn.splitlines()]))]

    def _located(self, connection: duckdb.DuckDBPyConnection, error: duckdb.Error) -> Failure:
        """The failure with its place: where no relation can be made, only preparing the text finds it."""
        try:
            connection.rollback()
            _give(connection, self._tables)
            connection.execute(PREPARING + self._query.text)
        except duckdb.Error as again:
            return failure_of(again, prepared=True)
        return failure_of(error)


def _columns(relation: duckdb.DuckDBPyRelation) -> tuple[SqlColumn, ...]:
    return tuple(SqlColumn(*each) for each in zip(relation.columns, map(str, relation.types), strict=True))


def _give(connection: duckdb.DuckDBPyConnection, tables: list[tuple[str, EngineTable, str | None]]) -> None:
    """Put the tables where the query finds them."""
    for name, table, view in tables:
        if view is None:
            connection.register(name, table)
        else:
            connection.register(f"{name} scanned", table)
            connection.execute(f"CREATE TEMP VIEW {identifier(name)} AS {view}").fetchall()


def _time_us(connection: duckdb.DuckDBPyConnection, time: TimeExpression) -> int | None:
    """A time as a number; None when it cannot be evaluated, which is for the query itself to report."""
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


def _failure(error: BaseException, feed: Feed) -> Failure:
    if isinstance(feed.error, ScanFailed | MemoryError):
        return Failure("memory" if isinstance(feed.error, MemoryError) else "internal")
    if isinstance(error, InvalidSql):
        return Failure("sql", error.message)
    return failure_of(error)


def _listen(control: socket.socket, running: Running, end: Callable[[int], None]) -> None:
    """Stop queries when the engine says so, and the process when there is no engine."""
    channel = Channel(control)
    try:
        while True:
            (number,) = STOP.unpack(channel.read(STOP.size))
            running.stop(number)
    except ChannelClosed:
        end(0)


def main(data_fd: int, control_fd: int, confinement: str) -> None:
    """The whole life of a process."""
    ignore_signals()
    memory = ProcessMemory()
    memory.expendable()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(2)
    about = msgspec.json.decode(confinement, type=Confinement)
    channel = Channel(socket.socket(fileno=data_fd))
    running = Running()
    sandbox = Sandbox(about.memory_bytes)
    worker = Worker(sandbox, channel, running, memory)
    worker.warm_up()
    Thread(target=_listen, args=(socket.socket(fileno=control_fd), running, _exit), daemon=True).start()
    confine(memory, about.memory_bytes)
    worker = Worker(sandbox, channel, running, memory)
    channel.send(Kind.READY)
    try:
        worker.serve()
    except MemoryError:
        _exit(EXIT_NO_MEMORY)
    _exit(0)
