"""Reading what stands in unreadable bytes of the WAL, as a witness that may be wrong.

A frame whose checksum fails usually still says whose it was: a flipped bit in its body leaves the header as it was.
Nothing of it is ever restored; it only tells which logs lost something behind their last good entry, and how many seqs
must not be assigned again. A header counts when the frames it leads over end exactly where the next good frame begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from topics.core.facts import Appended
from topics.storage import frame
from topics.storage.frame import Kind

RECORD_BYTES_MIN = 32
"""No record is stored in less: its text alone holds `$seq`, `$ts` and `data`."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A frame that was there."""

    log_id: int
    position: int
    appended: bool
    records_max: int
    """It held no more records than this."""
    first_seq: int = 0
    """Where its records began, when what it says adds up; 0 when it does not."""


def suspects(view: memoryview, start: int, end: int) -> list[Suspect] | None:
    """The frames that stood from `start` to `end`; None when they cannot be told."""
    found = []
    at = start
    while at < end:
        if at + frame.OVERHEAD_BYTES > len(view):
            return None
        magic, body_len, log_id, kind, _, _, position, _ = frame.HEADER.unpack_from(view, at)
        body_at = at + frame.HEADER_BYTES
        behind = frame.padded(body_at + body_len + frame.CHECKSUM.size)
        if magic != frame.MAGIC or behind > end or kind not in frozenset(Kind):
            return None
        if kind in (Kind.APPENDED, Kind.FACT):
            found.append(_suspect(log_id, position, kind, view[body_at : body_at + body_len]))
        at = behind
    return found


def _suspect(log_id: int, position: int, kind: int, body: memoryview) -> Suspect:
    if kind != Kind.APPENDED:
        return Suspect(log_id, position, False, 0)
    records_max = len(body) // RECORD_BYTES_MIN + 1
    try:
        records = Appended.parse(body).records
        if 0 < records.count <= records_max and records.ends[-1] == len(records.text):
            return Suspect(log_id, position, True, records.count, records.first_seq)
    except Exception:
        # Any of its numbers may be wrong, and so may whatever is made of them.
        pass
    return Suspect(log_id, position, True, records_max)
