"""The envelope of a change record: what happened to a row of a table, as a record of a topic.

Its data is an object with `source_table`, `op`, `payload_mode`, `payload`, `key`, `ts` and `message_id`, and its meta
says so by its content type. Any other record is its own payload.
"""

from __future__ import annotations

import msgspec

from topics.core.source import Operation, PayloadMode
from topics.model import CONTENT_TYPE

CHANGE_TYPE = "application/vnd.topics.change+json"
"""The content type of a change record."""


class Envelope(msgspec.Struct, frozen=True):
    source_table: str | None
    op: Operation | None
    payload_mode: PayloadMode | None
    payload: msgspec.Raw
    key: msgspec.Raw
    ts: int
    message_id: str | None


class _Change(msgspec.Struct):
    source_table: str
    op: Operation
    payload_mode: PayloadMode
    payload: msgspec.Raw = msgspec.Raw(b"null")
    key: msgspec.Raw = msgspec.Raw(b"null")
    ts: int | None = None
    message_id: str | None = None


class _Stored(msgspec.Struct, rename={"seq": "$seq", "ts": "$ts", "tag": "$tag"}):
    seq: int
    ts: int
    data: msgspec.Raw
    tag: str | None = None
    meta: dict[str, str] | None = None


_records = msgspec.json.Decoder(list[_Stored])
_change = msgspec.json.Decoder(_Change)


def envelopes(body: bytes, place: str) -> list[tuple[int, Envelope]]:
    """Seq and envelope of each record of a page's body; `place` is the beginning of the ids of those without one."""
    return [(stored.seq, _envelope(stored, place)) for stored in _records.decode(b"[%b]" % body)]


def _envelope(stored: _Stored, place: str) -> Envelope:
    message_id = f"{place}/{stored.seq}"
    if stored.meta is not None and stored.meta.get(CONTENT_TYPE) == CHANGE_TYPE:
        try:
            change = _change.decode(stored.data)
        except msgspec.DecodeError:
            # Whoever wrote it said what it is not: it is shown as what it is.
            pass
        else:
            return Envelope(
                change.source_table,
                change.op,
                change.payload_mode,
                change.payload,
                change.key,
                stored.ts if change.ts is None else change.ts,
                change.message_id or message_id,
            )
    key = msgspec.Raw(msgspec.json.encode(stored.tag))
    return Envelope(None, None, None, stored.data, key, stored.ts, message_id)
