"""Scans of one query over a channel: order, interleaving, and their end."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pyarrow as pa
import pytest

from topics.sqlengine.channel import Channel, Kind
from topics.sqlengine.feed import Feed, ScanFailed
from topics.sqlengine.querymessages import Open

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def engine() -> Iterator[tuple[Channel, Feed]]:
    ours, theirs = socket.socketpair()
    yield Channel(ours), Feed(Channel(theirs))
    ours.close()
    theirs.close()


def send(channel: Channel, kind: Kind, number: int, *numbers: int) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(pa.record_batch({"n": list(numbers)}, schema=SCHEMA))
    channel.send(kind, number, bytes(sink.getvalue()))


def kinds(channel: Channel, count: int) -> list[tuple[Kind, int]]:
    found = []
    for _ in range(count):
        head = channel.head()
        channel.skip(head.length)
        found.append((head.kind, head.number))
    return found


def values(batches: Iterator[object]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]  # type: ignore[attr-defined]


def test_scans_that_take_turns_get_their_own_batches(engine: tuple[Channel, Feed]) -> None:
    channel, feed = engine
    # What the engine answers, whichever is pulled at first.
    send(channel, Kind.BATCHES, 1, 1)
    send(channel, Kind.BATCHES, 2, 10)
    send(channel, Kind.LAST, 2, 20)
    send(channel, Kind.LAST, 1, 2)
    one, two = feed.scan(Open(0, ["n"])), feed.scan(Open(1, ["n"]))
    assert values(iter([next(one)])) == [1]
    assert values(iter([next(two)])) == [10]
    assert values(one) == [2]
    assert values(two) == [20]
    assert kinds(channel, 4) == [(Kind.OPEN, 1), (Kind.NEXT, 1), (Kind.OPEN, 2), (Kind.NEXT, 2)]


def test_scan_of_a_query_that_ended_asks_for_nothing(engine: tuple[Channel, Feed]) -> None:
    channel, feed = engine
    send(channel, Kind.BATCHES, 1, 1)
    send(channel, Kind.BATCHES, 1, 2)
    # Of the next query.
    channel.send(Kind.QUERY)
    scan = feed.scan(Open(0, ["n"]))
    next(scan)
    feed.finish()
    with pytest.raises(ScanFailed):
        next(scan)
    with pytest.raises(ScanFailed):
        next(feed.scan(Open(0, ["n"])))
    assert kinds(channel, 2) == [(Kind.OPEN, 1), (Kind.NEXT, 1)]
    assert feed._channel.head().kind is Kind.QUERY


def test_closed_scan_discards_what_comes(engine: tuple[Channel, Feed]) -> None:
    channel, feed = engine
    send(channel, Kind.BATCHES, 1, 1)
    scan = feed.scan(Open(0, ["n"]))
    next(scan)
    scan.close()  # type: ignore[attr-defined]
    assert feed.error is None
    send(channel, Kind.LAST, 1, 2)
    channel.send(Kind.LAST, 2)
    assert list(feed.scan(Open(1, ["n"]))) == []
