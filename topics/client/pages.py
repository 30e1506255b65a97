"""Pages out of JSON: of the answer to a read, and of the events of a stream.

A stream's events say less than a page does: not the epoch, and of what was lost before it began not why. Whoever reads
the stream knows these, or finds out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from topics.errors import Internal
from topics.jsontext import NOT_UNDERSTOOD
from topics.model import Page, Reason, Tombstone, parse_records


class Frame(msgspec.Struct):
    """One event of one log; each kind of event has some of the fields."""

    topic: str = ""
    partition: int = 0
    records: msgspec.Raw = msgspec.Raw(b"[]")
    to_seq: int = 0
    head_seq: int = 0
    earliest_seq: int = 0
    gap_from: int = 0
    gap_to: int = 0
    reason: str = ""
    code: int = 0
    error: str = ""
    retry_after_ms: int | None = None


_frames = msgspec.json.Decoder(Frame)


def parse_frame(text: bytes) -> Frame:
    """An event's data, or `Internal` when it is nothing that a server of ours says."""
    try:
        return _frames.decode(text)
    except NOT_UNDERSTOOD as error:
        raise Internal(f"the server's event is not one that this client understands: {error}") from None


def parsed_page(records: msgspec.Raw, topic: str, **fields: Any) -> Page:
    """A page out of the text of an array of records. Counting takes parsing them, so they are kept."""
    body = bytes(records)[1:-1]
    try:
        parsed = parse_records(body)
    except NOT_UNDERSTOOD as error:
        raise Internal(f"the server's records are none that this client understands: {error}") from None
    page = Page(topic=topic, body=body, count=len(parsed), **fields)
    page.__dict__["records"] = parsed
    return page


def page_of_records(frame: Frame, epoch: int) -> Page:
    return parsed_page(
        frame.records,
        frame.topic,
        partition=frame.partition,
        next_from_seq=frame.to_seq,
        head_seq=frame.head_seq,
        earliest_seq=frame.earliest_seq,
        epoch=epoch,
    )


def page_of_loss(frame: Frame, epoch: int, reason: Reason) -> Page:
    """The news that records are lost; or that another topic has the name now, which is read from its beginning."""
    gap_from, gap_to = frame.gap_from, frame.gap_to
    return Page(
        topic=frame.topic,
        partition=frame.partition,
        body=b"",
        count=0,
        next_from_seq=0 if reason is Reason.RECREATED else gap_to,
        head_seq=frame.head_seq,
        earliest_seq=frame.earliest_seq,
        tombstone=Tombstone(gap_from, gap_to, reason, gap_to - gap_from + 1, frame.earliest_seq, frame.head_seq),
        epoch=epoch,
    )
