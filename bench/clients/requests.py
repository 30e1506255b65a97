"""Requests as they go over the wire, for each protocol: the same records to every server."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from bench.bodies import bodies

INBOX_NUMBER = b"######"
"""The client puts a connection's number here."""


class Protocol(StrEnum):
    HTTP = "http"
    RESP = "resp"
    NATS = "nats"


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """What connections send, over and over; a request may be several commands in one piece."""

    protocol: Protocol
    sent: Sequence[bytes]
    greeting: bytes = b""
    replies: int = 1
    """That many replies answer one request."""
    records: int = 1
    """That many records one request writes or reads."""

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            for piece in (self.greeting, *self.sent):
                file.write(struct.pack("<I", len(piece)) + piece)


class _Record(msgspec.Struct):
    data: msgspec.Raw


class _Body(msgspec.Struct):
    records: list[_Record]


_decoder = msgspec.json.Decoder(_Body)


def payloads(body: bytes) -> list[bytes]:
    """The data of a body's records."""
    return [bytes(record.data) for record in _decoder.decode(body).records]


def http(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def resp(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def nats(subject: bytes, payload: bytes) -> bytes:
    return b"PUB %b inbox.%b %d\r\n%b\r\n" % (subject, INBOX_NUMBER, len(payload), payload)


def http_writes(topic: str, count: int, records: int) -> Requests:
    sent = [http("POST", f"/v0/topics/{topic}", body) for body in bodies(count, records=records)]
    return Requests(protocol=Protocol.HTTP, sent=sent, records=records)


def http_reads(topic: str, pages: int, page: int) -> Requests:
    path = f"/v0/topics/{topic}/diff"
    sent = [http("POST", path, b'{"from_seq":%d,"limit":%d}' % (number * page, page)) for number in range(pages)]
    return Requests(protocol=Protocol.HTTP, sent=sent, records=page)


def group_consumes(topic: str, group: str, records: int, batch: int, together: bool) -> Requests:
    """A consume and its ack, one after the other; or the ack with the next consume."""
    path = f"/v0/topics/{topic}/groups/{group}"
    sent = []
    for upto_seq in range(0, records, batch):
        if together and upto_seq:
            body = b'{"limit":%d,"ack_upto_seq":%d}' % (batch, upto_seq)
        else:
            body = b'{"limit":%d}' % batch
        sent.append(http("POST", f"{path}/consume", body))
        if not together:
            sent.append(http("POST", f"{path}/ack", b'{"upto_seq":%d}' % (upto_seq + batch)))
    return Requests(protocol=Protocol.HTTP, sent=sent, records=batch if together else batch // 2)


def numbered_xadds(stream: bytes, records: int, batch: int) -> Requests:
    """Entries whose ids are their numbers, from 1."""
    datas = [data for body in bodies(records // batch, records=batch) for data in payloads(body)]
    sent = [
        b"".join(
            resp(b"XADD", stream, b"%d-0" % (first + at + 1), b"data", data)
            for at, data in enumerate(datas[first : first + batch])
        )
        for first in range(0, records, batch)
    ]
    return Requests(protocol=Protocol.RESP, sent=sent, replies=batch, records=batch)


def xreadgroups(stream: bytes, group: bytes, records: int, batch: int, together: bool) -> Requests:
    """The same as `group_consumes`, of a stream with numbered entries."""
    read = resp(b"XREADGROUP", b"GROUP", group, b"c1", b"COUNT", b"%d" % batch, b"STREAMS", stream, b">")
    sent = []
    for first in range(0, records, batch):
        ack = resp(b"XACK", stream, group, *(b"%d-0" % number for number in range(first + 1, first + batch + 1)))
        sent += [read + ack] if together else [read, ack]
    return Requests(
        protocol=Protocol.RESP, sent=sent, replies=2 if together else 1, records=batch if together else batch // 2
    )


def xadds(stream: bytes, count: int, records: int) -> Requests:
    """A batch is so many XADD in one piece, answered one by one."""
    sent = [
        b"".join(resp(b"XADD", stream, b"*", b"data", data) for data in payloads(body))
        for body in bodies(count, records=records)
    ]
    return Requests(protocol=Protocol.RESP, sent=sent, replies=records, records=records)


def xranges(stream: bytes, behind: Iterable[bytes], page: int) -> Requests:
    """A page behind each of these entries; `-` is the beginning."""
    starts = [b"-" if entry == b"-" else b"(" + entry for entry in behind]
    sent = [resp(b"XRANGE", stream, start, b"+", b"COUNT", b"%d" % page) for start in starts]
    return Requests(protocol=Protocol.RESP, sent=sent, records=page)


def jetstream_publishes(subject: bytes, count: int, records: int) -> Requests:
    greeting = b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB inbox.%b 1\r\n' % INBOX_NUMBER
    sent = [b"".join(nats(subject, data) for data in payloads(body)) for body in bodies(count, records=records)]
    return Requests(protocol=Protocol.NATS, sent=sent, greeting=greeting, replies=records, records=records)


def zadds(key: bytes, count: int, batch: int) -> Requests:
    """Ids in a sorted set by priority, their payloads in the hash `payloads`: a batch of both in one piece."""
    datas = [data for body in bodies(1, records=batch) for data in payloads(body)]
    sent = []
    for first in range(0, count, batch):
        numbers = range(first, min(first + batch, count))
        scores = [word for number in numbers for word in (b"%d" % (number * 7919 % 1000), b"%020d" % number)]
        fields = [word for number in numbers for word in (b"%020d" % number, datas[number % batch])]
        sent.append(resp(b"ZADD", key, *scores) + resp(b"HSET", b"payloads", *fields))
    return Requests(protocol=Protocol.RESP, sent=sent, replies=2, records=batch)


def zpops(key: bytes, popped: int) -> Requests:
    return Requests(protocol=Protocol.RESP, sent=[resp(b"ZPOPMIN", key, b"%d" % popped)], records=popped)
