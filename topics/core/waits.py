"""How long each record of a batch waits before anybody gets it: eight bytes a record, as they are staged and stored.

    0        it does not wait
    above 0  nobody gets it before this time, in milliseconds
    below 0  nobody gets it for so many milliseconds after its batch is published

A batch in which nothing waits has no bytes at all. In a topic there are times only, since it is published.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

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


def published_waits(waits: bytes | bytearray, start: int, count: int, published_ms: int) -> bytes:
    """The times of records `start` to `start + count` of a stage, whose last ones may not be named in `waits`."""
    found = np.zeros(count, _KIND)
    named = np.frombuffer(bytes(waits[start * _KIND.itemsize : (start + count) * _KIND.itemsize]), _KIND)
    found[: len(named)] = np.where(named < 0, published_ms - named, named)
    found[found <= published_ms] = 0
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
