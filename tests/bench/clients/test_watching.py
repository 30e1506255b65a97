from __future__ import annotations

import struct
from pathlib import Path

import msgspec
import pytest

from bench.clients.requests import Protocol
from bench.clients.watching import (
    STAMP,
    Watching,
    blocking_reads,
    event_streams,
    push_consumers,
    stamped,
    subscriptions,
    web_sockets,
)

SIDES = [
    event_streams("t", ["/v0/watch/a", "/v0/watch/b"]),
    web_sockets("t", 2),
    blocking_reads(b"t", 2),
    subscriptions(b"t", 2),
    push_consumers(b"t", 2),
]


def test_the_data_is_json_with_a_stamp() -> None:
    for data in stamped():
        assert len(msgspec.json.decode(data)["live"]) == 46
        assert data.count(STAMP) == 1
    assert len(set(stamped())) > 1


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.protocol.value)
def test_everybody_gets_the_same_data(side: Watching) -> None:
    assert len(side.watchers) == 2
    for write, data in zip(side.writes, stamped(), strict=True):
        assert data in write


def test_a_web_socket_subscribes_behind_its_handshake() -> None:
    head, _, frame = web_sockets("t", 1).watchers[0].partition(b"\r\n\r\n")
    assert head.startswith(b"GET /v0/ws ")
    assert frame[:2] == bytes([0x81, 0x80 | len(frame) - 6]) and frame[2:6] == bytes(4)
    assert msgspec.json.decode(frame[6:]) == {"op": "subscribe", "topic": "t"}


def test_each_consumer_has_its_own_subject() -> None:
    first, second = push_consumers(b"t", 2).watchers
    assert b"SUB to.0 1\r\n" in first and b'"deliver_subject":"to.0"' in first
    assert b"SUB to.1 1\r\n" in second and b'"deliver_subject":"to.1"' in second


def test_it_is_saved_in_the_order_in_which_the_client_reads(tmp_path: Path) -> None:
    side = Watching(
        protocol=Protocol.RESP, watchers=[b"c", b"d"], writes=[b"e"], writer_greeting=b"w", ready=b"r", again=b"aa"
    )
    side.save(tmp_path / "file")
    pieces = [b"aa", b"r", b"w", b"c", b"d", b"e"]
    expected = b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces)
    assert (tmp_path / "file").read_bytes() == expected
