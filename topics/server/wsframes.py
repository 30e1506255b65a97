"""What a WebSocket sends: JSON messages, and the frames they travel in.

A server's frames are not masked, so the frame of an event is the same bytes for everybody: `framed` is made once for
all connections in the same place. Who has agreed on compression has a state of its own, and gets the bare message to
compress it by itself.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

import msgspec

from topics.engine.events import Event, Kind
from topics.errors import TopicsError
from topics.wire.wscommand import RequestId

FINAL_TEXT: Final = 0x81
LENGTH_IN_16_BITS: Final = 126
LENGTH_IN_64_BITS: Final = 127

_SHORT = Struct(">BB")
_MIDDLE = Struct(">BBH")
_LONG = Struct(">BBQ")

_BEGINNINGS = {kind: b'{"op":"%b",' % kind.value.encode() for kind in Kind}


def text_frame(message: bytes) -> bytes:
    """A whole message in one frame."""
    size = len(message)
    if size < LENGTH_IN_16_BITS:
        return _SHORT.pack(FINAL_TEXT, size) + message
    if size < 1 << 16:
        return _MIDDLE.pack(FINAL_TEXT, LENGTH_IN_16_BITS, size) + message
    return _LONG.pack(FINAL_TEXT, LENGTH_IN_64_BITS, size) + message


def bare(event: Event) -> bytes:
    """An event as a message."""
    return _BEGINNINGS[event.kind] + event.text


def framed(event: Event) -> bytes:
    """An event as it goes over the wire to all who do not compress."""
    return text_frame(bare(event))


def message(op: str, request_id: RequestId, **fields: Any) -> bytes:
    return msgspec.json.encode({"op": op, "request_id": request_id, **fields})


def ack(request_id: RequestId, written: bytes) -> bytes:
    """The answer to a publish, made of the answer that a write over HTTP would get."""
    return b'{"op":"ack","request_id":%b,%b' % (msgspec.json.encode(request_id), written[1:])


def error(request_id: RequestId, refused: TopicsError, **more: Any) -> bytes:
    fields: dict[str, Any] = {"code": refused.code, "message": refused.message}
    if refused.detail:
        fields["detail"] = refused.detail
    return message("error", request_id, **fields, **more)


def error_of_answer(request_id: RequestId, envelope: bytes) -> bytes:
    """The same from the error that a request over HTTP would get."""
    fields: dict[str, Any] = msgspec.json.decode(envelope)["error"]
    return message("error", request_id, **fields)
