from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Thread

import pytest

from topics.sqlengine.channel import Channel, ChannelClosed, Head, Kind

Ends = tuple[Channel, Channel]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = map(Channel, socket.socketpair())
    yield one, other
    one.close()
    other.close()


def test_frame_arrives_as_it_was_sent(ends: Ends) -> None:
    one, other = ends
    one.send(Kind.BATCHES, 7, b"ab", bytearray(b"c"), memoryview(b"d"))
    one.send(Kind.NEXT, 8)
    assert other.head() == Head(Kind.BATCHES, 7, 4)
    assert other.read(4) == b"abcd"
    assert other.head() == Head(Kind.NEXT, 8, 0)


def test_large_frame_is_read_in_pieces(ends: Ends) -> None:
    one, other = ends
    body = bytes(range(256)) * 8192
    sending = Thread(target=one.send, args=(Kind.ANSWER, 0, body, b"end"))
    sending.start()
    head = other.head()
    assert other.read(head.length) == body + b"end"
    sending.join()


def test_skipped_body_does_not_hide_the_next_frame(ends: Ends) -> None:
    one, other = ends
    sending = Thread(target=lambda: (one.send(Kind.BATCHES, 1, b"x" * 1_000_000), one.send(Kind.LAST, 2)))
    sending.start()
    other.skip(other.head().length)
    assert other.head() == Head(Kind.LAST, 2, 0)
    sending.join()


def test_closed_end_is_noticed_by_reader_and_writer(ends: Ends) -> None:
    one, other = ends
    one.close()
    with pytest.raises(ChannelClosed):
        other.head()
    with pytest.raises(ChannelClosed):
        other.send(Kind.ANSWER, 0, b"x" * 1_000_000)


def test_frame_cut_in_half_is_a_closed_channel(ends: Ends) -> None:
    one, other = ends
    one.send(Kind.ANSWER, 0, b"abc")
    one.close()
    with pytest.raises(ChannelClosed):
        other.read(100)
