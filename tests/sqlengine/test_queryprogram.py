"""The program of a query process, on a thread of the test."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest

from topics.sqlengine import feed as feeding
from topics.sqlengine import queryprogram
from topics.sqlengine.channel import STOP, Channel, Head, Kind
from topics.sqlengine.querymessages import Failure, Open, Query, Table, TimeExpression, encode
from topics.sqlengine.queryprogram import Running, Worker
from topics.sqlengine.sandbox import Sandbox
from topics.storage.fs import ProcessMemory

MIB = 1 << 20
SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


class Engine:
    """The engine's end of a channel whose other end a worker serves."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.sandbox = Sandbox(64 * MIB)
        self.running = Running()
        self.worker = Worker(self.sandbox, Channel(theirs), self.running, ProcessMemory())
        self._theirs = theirs
        self._thread = Thread(target=self.worker.serve)
        self._thread.start()

    def ask(self, text: str, tables: int = 0, **changes: Any) -> None:
        made = [Table(f"t{at}", bytes(SCHEMA.serialize()), None) for at in range(tables)]
        asked = Query(1, text, [], made, 1000, MIB)
        self.channel.send(Kind.QUERY, 0, encode(msgspec.structs.replace(asked, **changes)))

    def expect(self, kind: Kind) -> tuple[Head, bytearray]:
        head = self.channel.head()
        assert head.kind is kind, (head, bytes(self.channel.read(head.length)))
        return head, self.channel.read(head.length)

    def rows(self) -> Any:
        return msgspec.json.decode(self.expect(Kind.ANSWER)[1])["rows"]

    def failure(self) -> Failure:
        return msgspec.json.decode(self.expect(Kind.REFUSED)[1], type=Failure)

    def send(self, kind: Kind, number: int, numbers: range, names: list[str]) -> None:
        batch = pa.record_batch({"n": list(numbers), "text": list(map(str, numbers))}, schema=SCHEMA).select(names)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        self.channel.send(kind, number, bytes(sink.getvalue()))

    def close(self) -> None:
        self.channel.close()
        self._thread.join()
        self._theirs.close()
        self.sandbox.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.close()


def test_warm_up_touches_every_type(engine: Engine) -> None:
    engine.worker.warm_up()


def test_answer_is_text_or_a_stream_or_a_plan(engine: Engine) -> None:
    engine.ask("SELECT 1 AS one, 'x' AS text")
    assert engine.rows() == [[1, "x"]]
    engine.ask("SELECT 1 AS one", arrow=True)
    assert pa.ipc.open_stream(engine.expect(Kind.ANSWER)[1]).read_all().to_pydict() == {"one": [1]}
    engine.ask("SELECT 1 AS one", explain=True)
    assert msgspec.json.decode(engine.expect(Kind.ANSWER)[1])["lines"]


def test_table_is_asked_for_the_columns_and_times_that_matter(engine: Engine) -> None:
    times = [
        TimeExpression("TIMESTAMPTZ '2026-01-01 00:00:00+00'", [], True),
        TimeExpression("?", ["2025-01-01"], True),
        TimeExpression("'no time'", [], False),
        TimeExpression("TIMESTAMPTZ '2026-01-02 00:00:00+00'", [], False),
    ]
    table = Table("t0", bytes(SCHEMA.serialize()), 'SELECT n AS number, text FROM "t0 scanned"', times)
    asked = Query(1, "SELECT max(number) FROM t0 WHERE text <> '3'", [], [table], 1000, MIB)
    engine.channel.send(Kind.QUERY, 0, encode(asked))
    head, body = engine.expect(Kind.OPEN)
    day_us = 86_400_000_000
    first_us = 20_454 * day_us
    assert msgspec.json.decode(body, type=Open) == Open(0, ["n", "text"], first_us, first_us + day_us)
    engine.send(Kind.LAST, head.number, range(4), ["n", "text"])
    assert engine.rows() == [[2]]


def test_next_batches_are_asked_for_one_step_ahead(engine: Engine) -> None:
    engine.ask("SELECT sum(n) FROM t0", tables=1)
    head, _ = engine.expect(Kind.OPEN)
    engine.send(Kind.BATCHES, head.number, range(10), ["n"])
    assert engine.expect(Kind.NEXT)[0].number == head.number
    engine.channel.send(Kind.BATCHES, head.number)
    engine.expect(Kind.NEXT)
    engine.channel.send(Kind.LAST, head.number)
    assert engine.rows() == [[45]]


def test_query_that_ends_early_leaves_the_channel_empty(engine: Engine) -> None:
    engine.ask("SELECT n FROM t0 LIMIT 1", tables=1)
    head, _ = engine.expect(Kind.OPEN)
    engine.send(Kind.BATCHES, head.number, range(100), ["n"])
    engine.expect(Kind.NEXT)
    engine.send(Kind.LAST, head.number, range(1000), ["n"])
    assert engine.rows() == [[0]]
    engine.ask("SELECT 2")
    assert engine.rows() == [[2]]


def test_failed_scan_is_for_the_engine_to_explain(engine: Engine) -> None:
    engine.ask("SELECT sum(n) FROM t0", tables=1)
    head, _ = engine.expect(Kind.OPEN)
    engine.channel.send(Kind.FAILED, head.number)
    assert engine.failure().kind == "internal"


def test_batches_that_do_not_fit_into_memory_end_the_query(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoMemory:
        ipc = pa.ipc

        @staticmethod
        def allocate_buffer(size: int) -> Any:
            raise pa.ArrowMemoryError(f"malloc of size {size} failed")

    monkeypatch.setattr(feeding, "pa", NoMemory)
    engine.ask("SELECT sum(n) FROM t0", tables=1)
    head, _ = engine.expect(Kind.OPEN)
    engine.send(Kind.LAST, head.number, range(100_000), ["n"])
    assert engine.failure().kind == "memory"
    engine.ask("SELECT 1")
    assert engine.rows() == [[1]], "the frame was read"


@pytest.mark.parametrize(
    ("text", "kind", "position"),
    [
        ("SELECT missing", "sql", 7),
        ("SELECT 1 + 'x'::int", "sql", 14),
        ("SELECT * FROM range(1001)", "rows", None),
        ("SELECT repeat('x', 2000) FROM range(1000)", "answer", None),
        ("SELECT '12000-01-01'::date AS day", "sql", None),
        ("SELECT DISTINCT hash(range)::varchar FROM range(20000000) ORDER BY 1", "memory", None),
    ],
)
def test_refused_query_says_why(engine: Engine, text: str, kind: str, position: int | None) -> None:
    engine.ask(text)
    failure = engine.failure()
    assert (failure.kind, failure.position) == (kind, position), failure


def test_broken_database_asks_to_be_replaced(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise duckdb.InternalException("INTERNAL Error: a bug")

    monkeypatch.setattr(queryprogram, "_give", broken)
    engine.ask("SELECT 1")
    head, _ = engine.expect(Kind.REFUSED)
    assert head.number == 1


def test_only_the_query_that_runs_is_stopped() -> None:
    class Connection:
        interrupted = 0

        def interrupt(self) -> None:
            self.interrupted += 1

    running, connection = Running(), Connection()
    running.stop(1)
    running.begin(1, connection)  # type: ignore[arg-type]
    running.stop(2)
    running.check()
    running.stop(1)
    with pytest.raises(queryprogram.Refused) as refused:
        running.check()
    assert refused.value.failure.kind == "interrupted"
    running.begin(2, connection)  # type: ignore[arg-type]
    running.check()
    running.end()
    running.stop(2)
    assert connection.interrupted == 1


def test_process_ends_when_its_engine_is_gone() -> None:
    ours, theirs = socket.socketpair()
    ended, stopped = Event(), []

    class Watching(Running):
        def stop(self, number: int) -> None:
            stopped.append(number)

    def end(status: int) -> None:
        assert status == 0
        ended.set()

    listening = Thread(target=queryprogram._listen, args=(theirs, Watching(), end))
    listening.start()
    ours.sendall(STOP.pack(5))
    ours.close()
    assert ended.wait(60) and stopped == [5]
    listening.join()
    theirs.close()
