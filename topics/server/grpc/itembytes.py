"""Messages on their way to a `Work` stream as the bytes of a `WorkResponse` with `items`.

A stream gets thousands of messages a second, and to make an object of protobuf for each takes longer than all else that
is done for it here. So what most messages have is written as protobuf would: a tag, a length, the value, by the numbers
of `topics/proto/topics/v1/heaps.proto`; what is 0 or empty is left out. A message that has more than a payload and a
priority is left to protobuf.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from topics.heapmodel import PoppedMessage
from topics.limits import U64_MAX
from topics.server.grpc import values

ITEMS: Final = b"\x12"
"""Tags: the number of a field times 8, and 2 for what has a length, 0 for a number."""
ITEM: Final = b"\x0a"
_SEVEN_BITS: Final = 0x7F
_MORE: Final = 0x80


def items_bytes(messages: Iterable[PoppedMessage]) -> bytes:
    """A `WorkResponse` with these items."""
    return _field(ITEMS, b"".join([_field(ITEM, _item(message)) for message in messages]))


def _item(message: PoppedMessage) -> bytes:
    if message.meta is not None or message.producer_id is not None:
        return bytes(values.message(message).SerializeToString())
    return b"".join(
        (
            _field(b"\x0a", message.message_id.encode()),
            _text(b"\x12", message.topic),
            _number(b"\x18", message.partition),
            _field(b"\x22", message.payload) if message.payload else b"",
            _number(b"\x28", message.priority),
            _moment(b"\x32", message.enqueued_ms),
            _field(b"\x3a", message.lease_token.encode()),
            _moment(b"\x42", message.lease_deadline_ms),
            _number(b"\x48", message.attempts),
            _number(b"\x50", message.max_retries),
            b"\x70\x01" if message.is_json else b"",
        )
    )


def _field(tag: bytes, value: bytes) -> bytes:
    return b"%b%b%b" % (tag, _varint(len(value)), value)


@lru_cache(maxsize=256)
def _text(tag: bytes, text: str) -> bytes:
    """Of a text that many messages have."""
    return _field(tag, text.encode())


@lru_cache(maxsize=4096)
def _moment(tag: bytes, ms: int) -> bytes:
    return _field(tag, values.timestamp(ms).SerializeToString())


@lru_cache(maxsize=4096)
def _number(tag: bytes, number: int) -> bytes:
    return tag + _varint(number & U64_MAX) if number else b""


@lru_cache(maxsize=4096)
def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the highest bit set."""
    written = bytearray()
    while number > _SEVEN_BITS:
        written.append(number & _SEVEN_BITS | _MORE)
        number >>= 7
    written.append(number)
    return bytes(written)
