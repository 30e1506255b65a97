"""Records as lines of JSON, both ways.

Out: a record is `{"$seq":1,"$ts":…,"$node":…,"$tag":…,"meta":{…},"data":…}` and a gap `{"gap_from":1,"gap_to":3,
"reason":"cap"}`, a line each; `topic` and `partition` stand in front where they are not clear without. The data of a
page is the bytes that were received, digit for digit.

In: a line is the data of one record, or with `as_records` an object as it comes out, of which data, tag, node and meta
are taken. So what was read from one topic can be written to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from topics.client.fields import RecordFields
from topics.model import Gap, Page, Reason, Record

T = TypeVar("T")

_raws = msgspec.json.Decoder(list[msgspec.Raw])
_value = msgspec.json.Decoder(msgspec.Raw)
_encoder = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a line says of where it comes from."""

    topic: str | None = None
    partition: int | None = None

    @property
    def prefix(self) -> bytes:
        """The fields that stand in front, each with its comma."""
        parts = [] if self.topic is None else [b'"topic":%b,' % msgspec.json.encode(self.topic)]
        parts += [] if self.partition is None else [b'"partition":%d,' % self.partition]
        return b"".join(parts)


# ---- out


def page_lines(page: Page, origin: Origin) -> Iterator[bytes]:
    """A page: what was lost first, then the records as they were received."""
    if page.tombstone is not None:
        yield gap_line(Gap(page.tombstone.gap_from, page.tombstone.gap_to, page.tombstone.reason), origin)
    prefix = origin.prefix
    for raw in _raws.decode(b"[%b]" % page.body):
        yield _in_front(prefix, _one_line(bytes(raw)))


def record_line(record: Record, origin: Origin) -> bytes:
    """A record that has been parsed."""
    fields: dict[str, object] = {"$seq": record.seq, "$ts": record.ts}
    if record.node is not None:
        fields["$node"] = record.node
    if record.tag is not None:
        fields["$tag"] = record.tag
    if record.meta is not None:
        fields["meta"] = record.meta
    fields["data"] = record.data
    return _in_front(origin.prefix, encode(fields))


def gap_line(gap: Gap, origin: Origin) -> bytes:
    return _in_front(origin.prefix, msgspec.json.encode(gap))


def encode(value: object) -> bytes:
    """JSON of any value that came out of JSON, also of numbers that no machine word holds."""
    return _encoder.encode(value)


def _in_front(prefix: bytes, line: bytes) -> bytes:
    return b"{" + prefix + line[1:]


def _one_line(text: bytes) -> bytes:
    """The same JSON without line breaks, which may stand between its tokens."""
    if b"\n" not in text and b"\r" not in text:
        return text
    return msgspec.json.format(text, indent=-1)


# ---- in


class _Line(msgspec.Struct, forbid_unknown_fields=True, rename={"seq": "$seq", "ts": "$ts"}):
    """An object as it comes out; seq, ts, topic and partition are those of where it came from."""

    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tag: str | None = None
    node: str | None = None
    meta: dict[str, str] | None = None
    stored_tag: str | None = msgspec.field(name="$tag", default=None)
    stored_node: str | None = msgspec.field(name="$node", default=None)
    seq: int = 0
    ts: int = 0
    topic: str = ""
    partition: int = 0
    gap_from: int = 0
    gap_to: int = 0
    reason: Reason = Reason.MIXED


_line = msgspec.json.Decoder(_Line)


def parse_data(text: bytes) -> RecordFields:
    """A line that is the data of one record."""
    return {"data": _decode(_value, text)}


def parse_record(text: bytes) -> RecordFields | Gap:
    """A line that is a record, or a gap that somebody read."""
    line = _decode(_line, text)
    if line.gap_from:
        return Gap(line.gap_from, line.gap_to, line.reason)
    if line.data is msgspec.UNSET:
        raise ValueError('it has no "data"')
    fields: RecordFields = {"data": line.data}
    tag, node = line.tag or line.stored_tag, line.node or line.stored_node
    if tag:
        fields["tag"] = tag
    if node:
        fields["node"] = node
    if line.meta:
        fields["meta"] = line.meta
    return fields


def _decode(decoder: msgspec.json.Decoder[T], text: bytes) -> T:
    """The value of a line, or `ValueError` with what is wrong with it."""
    try:
        # The parser passes raw parts on without a look at their encoding.
        text.decode()
        return decoder.decode(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start + 1}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"it is no record: {error}") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"it is not JSON: {str(error).removeprefix('JSON is malformed: ')}") from None
