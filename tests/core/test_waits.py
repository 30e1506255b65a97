from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.encoded import EncodedRecords
from topics.core.facts import Appended
from topics.core.records import Records
from topics.core.waits import (
    WAIT_MS_LIMIT,
    due_seqs,
    named_waits,
    put_waits,
    staged_waits,
    times_of,
    uniform_waits,
    waits_in,
    waits_of,
)
from topics.errors import InvalidRequest

NOW_MS = 1_700_000_000_000
WAITS = st.lists(st.one_of(st.just(0), st.integers(-(10**6), NOW_MS + 10**6)), min_size=1, max_size=20)


def test_nothing_that_waits_is_no_bytes() -> None:
    assert waits_of([0, 0]) == uniform_waits(3, 0) == times_of(b"", 0, 5, NOW_MS) == b""
    assert uniform_waits(2, -5) == waits_of([-5, -5])


@given(WAITS, st.integers(0, 5), st.integers(0, 5))
def test_times_follow_from_the_moment_of_the_write(waits: list[int], start: int, more: int) -> None:
    """As one record after the other says it; records behind the last that waits are not named."""
    count = max(0, len(waits) - start) + more
    named = [*waits, *[0] * (start + count)][start : start + count]
    times = [NOW_MS - wait if wait < 0 else wait for wait in named]
    expected = [time if time > NOW_MS else 0 for time in times]
    assert times_of(waits_of(waits), start, count, NOW_MS) == waits_of(expected)
    later = [max(time, NOW_MS + 7) for time in times]
    assert times_of(waits_of(waits), start, count, NOW_MS, NOW_MS + 7) == waits_of(later)
    found = {seq: due_ms for due_ms, seqs in due_seqs(waits_of(expected), 7) for seq in seqs}
    assert found == {7 + at: time for at, time in enumerate(expected) if time}


def test_waits_are_kept_at_their_places() -> None:
    kept = bytearray()
    put_waits(kept, waits_of([1, 2]), 3)
    put_waits(kept, waits_of([3]), 4)
    assert kept == waits_of([0, 0, 0, 1, 3])


@given(WAITS)
def test_a_fact_keeps_them(waits: list[int]) -> None:
    records: EncodedRecords = Records.of([{"data": wait} for wait in waits]).encode(1, NOW_MS)
    fact = Appended(records, stage_log_id=3, waits=waits_of(waits))
    parsed = Appended.parse(memoryview(b"".join(bytes(part) for part in fact.buffers())))
    assert (parsed.waits, parsed.stage_log_id, parsed.records.count) == (fact.waits, 3, len(waits))


# ---- what records say


def test_each_record_says_how_long_it_waits() -> None:
    assert named_waits([None, 5, None, 0], [7, None, None, None]) == waits_of([7, -5, 0, 0])
    records: list[dict[str, Any]] = [{"data": 1}, {"data": 2, "delay_ms": 5, "not_before": None}, {"not_before": 9}]
    assert waits_in(records) == waits_of([0, -5, 9])
    assert waits_in([{"data": 1}, {"data": 2, "delay_ms": None}]) == b""


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        ({"delay_ms": 1, "not_before": 1}, "records[1].delay_ms", "give one of them"),
        ({"delay_ms": -1}, "records[1].delay_ms", "must be a whole number from 0 to"),
        ({"delay_ms": True}, "records[1].delay_ms", "not True"),
        ({"delay_ms": 1.5}, "records[1].delay_ms", "not 1.5"),
        ({"not_before": "soon"}, "records[1].not_before", "not 'soon'"),
        ({"not_before": WAIT_MS_LIMIT}, "records[1].not_before", "must be a whole number from 0 to"),
    ],
)
def test_what_says_no_time_is_refused_with_its_place(record: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        waits_in([{"data": 1}, record])
    assert caught.value.detail["field"] == field


def test_staged_records_wait_in_one_way() -> None:
    assert staged_waits(2, 5, 0, b"") == waits_of([-5, -5])
    assert staged_waits(2, 0, 9, b"") == waits_of([9, 9])
    assert staged_waits(2, 0, 0, waits_of([1, -2])) == waits_of([1, -2])
    assert staged_waits(2, 0, 0, b"") == b""
    for said in ((5, 9, b""), (5, 0, waits_of([1, 1])), (0, 9, waits_of([1, 1]))):
        with pytest.raises(InvalidRequest, match="wait in one way"):
            staged_waits(2, *said)
    with pytest.raises(InvalidRequest, match="that far away"):
        staged_waits(2, WAIT_MS_LIMIT, 0, b"")
