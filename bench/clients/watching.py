"""Who follows a log and who writes to it, as it goes over the wire, for each server: the same records to everybody."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.bodies import DIFFERENT, bodies
from bench.clients.requests import INBOX_NUMBER, Protocol, http, nats, payloads, resp

STAMP = b'"live":"' + b"0" * 20 + b"-" + b"0" * 12 + b"-" + b"0" * 12 + b'"'
"""What a writer fills in, and a watcher looks for; see `live.c`."""
_NOTE_BYTES = 36
"""Left out of the data for it, so that a record is as long as everywhere."""


class Watching(msgspec.Struct, frozen=True, kw_only=True):
    protocol: Protocol
    """How acks are framed."""
    watchers: Sequence[bytes]
    """What each watcher says to follow the log."""
    writes: Sequence[bytes]
    writer_greeting: bytes = b""
    ready: bytes = b""
    """What a watcher is sent when it follows; empty when it does at once."""
    again: bytes = b""
    """How a watcher asks for more, without the place to go on from; empty when it is sent more by itself."""

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            for piece in (self.again, self.ready, self.writer_greeting, *self.watchers, *self.writes):
                file.write(struct.pack("<I", len(piece)) + piece)


def stamped() -> list[bytes]:
    """The data of the records."""
    found = []
    for body in bodies(DIFFERENT, records=1):
        (data,) = payloads(body)
        note = data.index(b'"note":"') + len(b'"note":"')
        found.append(b"{%b,%b%b" % (STAMP, data[1:note], data[note + _NOTE_BYTES :]))
    return found


def _http_writes(topic: str) -> list[bytes]:
    return [http("POST", f"/v0/topics/{topic}", b'{"records":[{"data":%b}]}' % data) for data in stamped()]


def event_streams(topic: str, paths: Sequence[str]) -> Watching:
    """A stream for each of the paths, which belong to watch sessions."""
    streams = [
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode() for path in paths
    ]
    return Watching(
        protocol=Protocol.HTTP, watchers=streams, writes=_http_writes(topic), ready=b"event: caught-up\ndata: "
    )


def web_sockets(topic: str, count: int) -> Watching:
    """The subscription goes right behind the handshake; writes are HTTP."""
    key = b64encode(b"0123456789abcdef").decode()
    head = "GET /v0/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    head += f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    message = msgspec.json.encode({"op": "subscribe", "topic": topic})
    # A mask of zeros changes nothing.
    frame = struct.pack(">BB", 0x81, 0x80 | len(message)) + b"\0\0\0\0" + message
    return Watching(
        protocol=Protocol.HTTP,
        watchers=[head.encode() + frame] * count,
        writes=_http_writes(topic),
        ready=b'"op":"caught_up"',
    )


def blocking_reads(stream: bytes, count: int) -> Watching:
    """XREAD BLOCK, again and again, each behind the last entry of the one before."""
    again = b"*6\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in (b"XREAD", b"BLOCK", b"0", b"STREAMS", stream))
    writes = [resp(b"XADD", stream, b"*", b"data", data) for data in stamped()]
    return Watching(protocol=Protocol.RESP, watchers=[again + b"$3\r\n0-0\r\n"] * count, writes=writes, again=again)


def subscriptions(channel: bytes, count: int) -> Watching:
    """SUBSCRIBE and PUBLISH: nothing is stored."""
    writes = [resp(b"PUBLISH", channel, data) for data in stamped()]
    return Watching(
        protocol=Protocol.RESP, watchers=[resp(b"SUBSCRIBE", channel)] * count, writes=writes, ready=b":1\r\n"
    )


def push_consumers(subject: bytes, count: int) -> Watching:
    """A JetStream push consumer for each watcher; writes wait for their ack."""
    greeting = b'CONNECT {"verbose":false,"pedantic":false}\r\n'
    watchers = []
    for number in range(count):
        config = {"deliver_subject": f"to.{number}", "ack_policy": "none", "deliver_policy": "all"}
        asked = msgspec.json.encode({"stream_name": subject.decode(), "config": config})
        create = b"PUB $JS.API.CONSUMER.CREATE.%b made.%d %d\r\n%b\r\n" % (subject, number, len(asked), asked)
        watchers.append(greeting + b"SUB to.%d 1\r\nSUB made.%d 2\r\n" % (number, number) + create)
    return Watching(
        protocol=Protocol.NATS,
        watchers=watchers,
        writes=[nats(subject, data) for data in stamped()],
        writer_greeting=greeting + b"SUB inbox.%b 1\r\n" % INBOX_NUMBER,
        ready=b'"config"',
    )
