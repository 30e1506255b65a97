"""Streams: frames and commands of a WebSocket, and the events that a client reads."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec
from websockets import frames, protocol
from websockets.extensions import permessage_deflate
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from proof.fuzz.pieces import cuttings
from proof.fuzz.target import Target
from topics.client import eventstream, pages
from topics.client.eventstream import EventParser, ServerEvent
from topics.errors import TopicsError
from topics.server import wsframes
from topics.wire import json, watch, wscommand
from topics.wire.wscommand import Publish, decode_command, request_id_of

MESSAGE_BYTES_MAX: Final = 64 * 1024
COMPRESSED: Final = re.compile(rb"[\x40-\x42\xc0-\xc2]")
"""How a compressed frame begins. Where nothing does, one who may compress reads the same as one who may not."""


def read_frames(data: bytes) -> int:
    """The library's reading with our bounds: each way of cutting leads to the same messages and the same end."""
    whole = _messages([data])
    for pieces in cuttings(data):
        assert _messages(pieces) == whole, "cut otherwise, other messages"
    for message in whole:
        _command(message)
    if COMPRESSED.search(data):
        for message in _messages([data], PerMessageDeflate(False, False, 15, 15)):
            _command(message)
    return len(whole)


def _messages(pieces: Iterable[bytes], *extensions: PerMessageDeflate) -> list[bytes]:
    server = ServerProtocol(state=OPEN, max_size=MESSAGE_BYTES_MAX)
    server.extensions = list(extensions)
    parts: list[bytes] = []
    messages: list[bytes] = []
    for piece in pieces:
        server.receive_data(piece)
        for event in server.events_received():
            assert isinstance(event, Frame)
            if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                parts.append(bytes(event.data))
                if event.fin:
                    messages.append(b"".join(parts))
                    parts.clear()
    assert all(len(message) <= MESSAGE_BYTES_MAX for message in messages)
    return messages


def _command(message: bytes) -> None:
    with contextlib.suppress(TopicsError):
        read_command(message)


def read_command(message: bytes) -> None:
    answered = request_id_of(message)
    try:
        command = decode_command(message)
    except TopicsError as error:
        msgspec.json.decode(wsframes.error(answered, error))
        raise
    assert command.request_id == answered or isinstance(command.request_id, bool), "it is answered under its own name"
    if isinstance(command, Publish):
        msgspec.json.decode(wsframes.ack(command.request_id, b'{"seqs":[]}'))


def _masked(first: int, payload: bytes) -> bytes:
    """A client's frame, whose mask is nought."""
    return bytes((first, 0x80 | len(payload), 0, 0, 0, 0)) + payload


COMMANDS: Final = (
    b'{"op":"publish","topic":"a","request_id":1,"records":[{"data":1}],"return_seqs":false,"config":{}}',
    b'{"op":"subscribe","request_id":"x","topics":{"a#1":{"from_seq":3,"match":"x"},"b:*":{"tail":true}},"limit":5}',
    b'{"op":"subscribe","topic":"a","from_seq":1,"node":["n"],"consistency":"strong"}',
    b'{"op":"unsubscribe","topics":["a","b:*"]}',
    b'{"op":"ping","request_id":null}',
)
WORDS: Final = (
    *(b'"op":', b'"topic":', b'"topics":', b'"request_id":', b'"records":', b'"from_seq":', b'"match":', b'"node":'),
    *(
        b"null",
        b"true",
        b"false",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b",",
        b":",
        b"#",
        b"*",
        b"\\u0061",
        b"\\ud800",
        b"\xff",
    ),
    *(b'"ping"', b'"publish"', b'"subscribe"', b'"limit":', b'"max_batch_bytes":', b'"partition":', b"[[[[[[[[" * 8),
)

COMMAND: Final = Target(
    name="ws-command",
    run=read_command,
    errors=(TopicsError,),
    modules=(wscommand, watch, json),
    seeds=COMMANDS,
    words=WORDS,
)
FRAMES: Final = Target(
    name="ws-frames",
    run=read_frames,
    errors=(),
    modules=(wscommand, frames, protocol, permessage_deflate),
    seeds=(
        *(_masked(0x81, command) for command in COMMANDS),
        _masked(0x01, b'{"op":') + _masked(0x89, b"ping") + _masked(0x80, b'"ping"}') + _masked(0x88, b"\x03\xe8"),
        _masked(0xC1, bytes.fromhex("aa562a4a2d2c4d2d2e01")),
    ),
    words=(b"\x81\x80", b"\x82\xfe", b"\x88\x82", b"\x89\xff", b"\xc1\xff\xff\xff\xff\xff", *WORDS),
    bytes_max=1024,
)


def read_events(data: bytes) -> int:
    whole = EventParser().feed(data)
    for pieces in cuttings(data):
        parser = EventParser()
        apart: list[ServerEvent] = []
        for piece in pieces:
            apart += parser.feed(piece)
        assert apart == whole, f"cut otherwise, {apart} in place of {whole}"
    for event in whole:
        with contextlib.suppress(TopicsError):
            pages.page_of_records(pages.parse_frame(event.data), 1)
    return len(whole)


EVENTS: Final = Target(
    name="sse-events",
    run=read_events,
    errors=(),
    modules=(eventstream, pages),
    seeds=(
        b'event: record\nid: eyJhIjo1fQ\ndata: {"topic":"a","records":[{"$seq":1,"$ts":2,"data":3}],"to_seq":1}\n\n',
        b": beat\n\ndata: a\ndata:b\r\n\r\nretry: 5\n\nevent\nid\ndata\n\n",
        b'event: tombstone\ndata: {"topic":"a","gap_from":1,"gap_to":5,"reason":"cap"}\n\n',
    ),
    words=(
        b"\n",
        b"\r\n",
        b"\n\n",
        b"data:",
        b"data: ",
        b"id:",
        b"event:",
        b'"records":[',
        b'"$seq":',
        b"\xff",
        b"[" * 64,
    ),
    bytes_max=1024,
)

TARGETS: Final = (FRAMES, COMMAND, EVENTS)
