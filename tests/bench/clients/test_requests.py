from __future__ import annotations

from pathlib import Path

from bench.bodies import bodies
from bench.clients.requests import (
    Protocol,
    Requests,
    http,
    http_reads,
    http_writes,
    jetstream_publishes,
    payloads,
    resp,
    xadds,
    xranges,
)


def test_http_says_how_long_its_body_is() -> None:
    assert http("PUT", "/x", b"{}").endswith(b"Content-Length: 2\r\n\r\n{}")


def test_resp_is_an_array_of_words() -> None:
    assert resp(b"PING", b"") == b"*2\r\n$4\r\nPING\r\n$0\r\n\r\n"


def test_everybody_gets_the_same_data() -> None:
    (body,) = bodies(1, records=3)
    ours, redis, nats = http_writes("t", 1, 3), xadds(b"t", 1, 3), jetstream_publishes(b"t", 1, 3)
    assert len(payloads(body)) == 3
    for data in payloads(body):
        assert all(data in made.sent[0] for made in (ours, redis, nats))
    assert [made.replies for made in (ours, redis, nats)] == [1, 3, 3]
    assert [made.records for made in (ours, redis, nats)] == [3, 3, 3]


def test_pages_follow_each_other() -> None:
    assert [sent.partition(b"\r\n\r\n")[2] for sent in http_reads("t", 2, 10).sent] == [
        b'{"from_seq":0,"limit":10}',
        b'{"from_seq":10,"limit":10}',
    ]
    first, second = xranges(b"t", [b"-", b"5-0"], 10).sent
    assert b"\r\n-\r\n" in first and b"\r\n(5-0\r\n" in second


def test_pieces_are_saved_with_their_lengths(tmp_path: Path) -> None:
    Requests(protocol=Protocol.HTTP, sent=[b"abc"], greeting=b"").save(tmp_path / "pieces")
    assert (tmp_path / "pieces").read_bytes() == b"\0\0\0\0\3\0\0\0abc"
