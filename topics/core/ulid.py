"""Message ids of heaps: ULIDs whose time is that of enqueueing and whose other 80 bits are the place of the message.

    48 bits  milliseconds since 1970      16 bits  partition      64 bits  seq

So an id sorts by time, is unique in its topic, and finds its message without an index. As text it has 26 characters of
Crockford's base 32, which has no I, L, O and U.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ID_CHARS: Final = 26
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_NO_DIGIT: Final = b"!"
_DIGITS: Final = bytes.maketrans(_ALPHABET.encode(), b"0123456789abcdefghijklmnopqrstuv")
"""What Python takes for the digits of base 32, by those of ours; every other character becomes none at all."""
_TO_DIGITS: Final = bytes(_DIGITS[at] if chr(at) in _ALPHABET else _NO_DIGIT[0] for at in range(256))
_PAIRS: Final = [high + low for high in _ALPHABET for low in _ALPHABET]
_SHIFTS: Final = range(120, -1, -10)
_LAST_CHARS: Final = 4
_LAST_BITS: Final = 5 * _LAST_CHARS
_LAST_MASK: Final = (1 << _LAST_BITS) - 1
_PARTITION_BITS: Final = 16
_SEQ_BITS: Final = 64
_TIME_BITS: Final = 48


class MessagePlace(NamedTuple):
    """What an id says."""

    ts: int
    partition: int
    seq: int


def message_id(ts: int, partition: int, seq: int) -> str:
    value = (ts << _PARTITION_BITS | partition) << _SEQ_BITS | seq
    return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


def message_ids(ts: int, partition: int, first_seq: int, count: int) -> list[str]:
    """Ids of messages that follow on each other, of which mostly only the end differs."""
    found: list[str] = []
    seq, end = first_seq, first_seq + count
    while seq < end:
        begin = message_id(ts, partition, seq)[:-_LAST_CHARS]
        upto = min(end, (seq | _LAST_MASK) + 1)
        lasts = range(seq & _LAST_MASK, (seq & _LAST_MASK) + upto - seq)
        found += [begin + _PAIRS[last >> 10] + _PAIRS[last & 1023] for last in lasts]
        seq = upto
    return found


def parse_message_id(text: str) -> MessagePlace | None:
    """What an id says; None when it is none."""
    if len(text) != ID_CHARS or not text.isascii():
        return None
    try:
        value = int(text.encode().translate(_TO_DIGITS), 32)
    except ValueError:
        return None
    if value >> (_TIME_BITS + _PARTITION_BITS + _SEQ_BITS):
        return None
    place = value >> _SEQ_BITS
    return MessagePlace(place >> _PARTITION_BITS, place & (1 << _PARTITION_BITS) - 1, value & (1 << _SEQ_BITS) - 1)
