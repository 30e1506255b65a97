from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topics.core.encoded import EncodedRecords
from topics.core.facts import Appended
from topics.core.records import Records
from topics.core.waits import due_seqs, published_waits, put_waits, uniform_waits, waits_of

NOW_MS = 1_700_000_000_000
WAITS = st.lists(st.one_of(st.just(0), st.integers(-(10**6), NOW_MS + 10**6)), min_size=1, max_size=20)


def test_nothing_that_waits_is_no_bytes() -> None:
    assert waits_of([0, 0]) == uniform_waits(3, 0) == published_waits(b"", 0, 5, NOW_MS) == b""
    assert uniform_waits(2, -5) == waits_of([-5, -5])


@given(WAITS, st.integers(0, 5), st.integers(0, 5))
def test_times_follow_from_the_moment_of_the_publish(waits: list[int], start: int, more: int) -> None:
    """As one record after the other says it; records behind the last that waits are not named."""
    count = max(0, len(waits) - start) + more
    named = [*waits, *[0] * (start + count)][start : start + count]
    times = [NOW_MS - wait if wait < 0 else wait for wait in named]
    expected = [time if time > NOW_MS else 0 for time in times]
    assert published_waits(waits_of(waits), start, count, NOW_MS) == waits_of(expected)
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
