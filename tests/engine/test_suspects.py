"""What unreadable bytes still tell of the frames that stood there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from topics.core.facts import Appended, Deleted, encode
from topics.core.records import Records
from topics.engine.suspects import RECORD_BYTES_MIN, Suspect, suspects
from topics.storage import frame
from topics.storage.frame import Kind

SALT = 7


def appended(first_seq: int, count: int) -> bytes:
    records = Records.of([{"data": number} for number in range(count)]).encode(first_seq, 1_700_000_000_000)
    return b"".join(Appended(records).buffers())


def frames(*parts: tuple[int, int, int, bytes]) -> bytearray:
    """Frames of a kind, a log and a position, each with a body."""
    built = (frame.build(kind, log_id, position, 0, [body], SALT) for kind, log_id, position, body in parts)
    return bytearray(b"".join(buffer for buffers in built for buffer in buffers))


def look(content: bytearray) -> list[Suspect] | None:
    return suspects(memoryview(content), 0, len(content))


def test_whose_frames_they_were_and_how_many_records_they_held() -> None:
    content = frames(
        (Kind.APPENDED, 3, 11, appended(40, 5)),
        (Kind.FACT, 4, 12, encode(Deleted(9))),
        (Kind.SYNC_MARK, 0, 0, b""),
    )
    content[-1] ^= 1
    assert look(content) == [Suspect(3, 11, True, 5, 40), Suspect(4, 12, False, 0)]


def ending_elsewhere() -> Iterator[bytes]:
    """Five records with one bit flipped: all can be read, and the last one does not end with the text."""
    body = appended(40, 5)
    for at in range(len(body)):
        spoiled = bytearray(body)
        spoiled[at] ^= 1
        try:
            records = Appended.parse(memoryview(spoiled)).records
        except Exception:
            continue
        if records.ends[-1] != len(records.text):
            yield bytes(spoiled)
            return


@pytest.mark.parametrize("body", [b"\xff" * 200, b"", appended(40, 5)[:-20], *ending_elsewhere()])
def test_a_body_that_does_not_add_up_bounds_how_many_records_there_were(body: bytes) -> None:
    assert look(frames((Kind.APPENDED, 3, 11, body))) == [Suspect(3, 11, True, len(body) // RECORD_BYTES_MIN + 1)]


@pytest.mark.parametrize("spoiled", ["magic", "length", "kind", "cut"])
def test_bytes_that_do_not_lead_to_the_end_tell_nothing(spoiled: str) -> None:
    content = frames((Kind.APPENDED, 3, 11, appended(40, 5)), (Kind.FACT, 4, 12, encode(Deleted(9))))
    if spoiled == "cut":
        found = suspects(memoryview(content), 0, len(content) + 8)
    else:
        content[{"magic": 0, "length": 6, "kind": 12}[spoiled]] ^= 0xFF
        found = look(content)
    assert found is None
