"""How long each record of a batch waits before anybody gets it: eight bytes a record, as they are staged and stored.

    0        it does not wait
    above 0  nobody gets it before this time, in milliseconds
    below 0  nobody gets it for so many milliseconds after it is written, or its batch is published

A batch in which nothing waits has no bytes at all. In a topic there are times only, since it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from topics.errors import InvalidRequest

WAIT_MS_LIMIT: Final = 2**62
"""Times and delays are below this, so that the two together are a number of eight bytes."""
_KIND: Final = np.dtype("<i8")


def waits_of(column: Any) -> bytes:
    """The bytes for an array of numbers."""
    found = np.asarray(column, _KIND)
    return found.tobytes() if found.any() else b""


def uniform_waits(count: int, wait: int) -> bytes:
    """The same for each of so many records."""
    return waits_of(np.full(count, wait, _KIND)) if wait else b""


def named_waits(delays: Sequence[object], times: Sequence[object]) -> bytes:
    """What each record says of itself: `delay_ms`, or `not_before`, or neither, which is None."""
    waits = []
    for place, (delay_ms, not_before) in enumerate(zip(delays, times, strict=True)):
        if delay_ms is not None and not_before is not None:
            raise InvalidRequest(
                f"records[{place}] has delay_ms and not_before, which both say how long it waits: give one of them",
                field=f"records[{place}].delay_ms",
                expected="delay_ms or not_before",
            )
        if not_before is None:
            waits.append(-_milliseconds(delay_ms, f"records[{place}].delay_ms"))
        else:
            waits.append(_milliseconds(not_before, f"records[{place}].not_before"))
    return waits_of(waits)


def waits_in(items: Sequence[Mapping[str, Any]]) -> bytes:
    """The same of records as Python objects, of which most say nothing about it."""
    delays = [item.get("delay_ms") for item in items]
    times = [item.get("not_before") for item in items]
    if delays.count(None) == times.count(None) == len(items):
        return b""
    return named_waits(delays, times)


def _milliseconds(value: object, field: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < WAIT_MS_LIMIT:
        expected = f"a whole number from 0 to {WAIT_MS_LIMIT - 1}"
        raise InvalidRequest(f"{field} must be {expected}, not {value!r}", field=field, expected=expected)
    return value


def staged_waits(count: int, delay_ms: int, not_before_ms: int, waits: bytes) -> bytes:
    """Of records for a stage, all of them or each. A delay counts from the publish and a time does not, so that the
    later one is not known yet: each record has one of them."""
    if bool(delay_ms) + bool(not_before_ms) + bool(waits) > 1:
        expected = "one of delay_ms and not_before, for all records or for each"
        raise InvalidRequest(f"staged records wait in one way: {expected}", field="delay_ms", expected=expected)
    if max(delay_ms, not_before_ms) >= WAIT_MS_LIMIT:
        field = "delay_ms" if delay_ms else "not_before"
        raise InvalidRequest("no time is that far away", field=field, expected=f"less than {WAIT_MS_LIMIT}")
    return waits or uniform_waits(count, not_before_ms or -delay_ms)


def times_of(waits: bytes | bytearray, start: int, count: int, now_ms: int, not_before_ms: int = 0) -> bytes:
    """The times of records `start` to `start + count` that are written now, none of them before `not_before_ms`.

    The last ones may not be named in `waits`: they do not wait.
    """
    found = np.zeros(count, _KIND)
    named = np.frombuffer(bytes(waits[start * _KIND.itemsize : (start + count) * _KIND.itemsize]), _KIND)
    found[: len(named)] = np.where(named < 0, now_ms - named, named)
    found = np.maximum(found, not_before_ms)
    found[found <= now_ms] = 0
    return waits_of(found)


def put_waits(kept: bytearray, waits: bytes, start: int) -> None:
    """Keep the waits of records from place `start` on."""
    begin = start * _KIND.itemsize
    kept.extend(bytes(max(0, begin - len(kept))))
    kept[begin : begin + len(waits)] = waits


def due_seqs(waits: bytes, first_seq: int) -> Iterator[tuple[int, list[int]]]:
    """Times, each with the seqs that wait for it; `first_seq` is that of the first record."""
    times = np.frombuffer(waits, _KIND)
    waiting = np.flatnonzero(times > 0)
    order = waiting[np.argsort(times[waiting], kind="stable")]
    found, begins = np.unique(times[order], return_index=True)
    ends = np.append(begins[1:], len(order))
    for due_ms, begin, end in zip(found.tolist(), begins.tolist(), ends.tolist(), strict=False):
        yield due_ms, (order[begin:end] + first_seq).tolist()
