"""The ranges of a consumer group: whose each seq is, from the first that is not committed to the last handed out.

Ranges lie side by side without a gap, ascending. Each is in one of five states:

    CLAIMED   somebody has it, until `due_ms`
    DELAYED   nobody may have it before `due_ms`: it was given back with a delay
    FREE      to be handed out again, lowest first: its claim ran out, or it was given back
    ACKED     done, while something below is not; neighbours are one range
    LEAVING   on its way to the dead-letter topic

Time alone makes CLAIMED and DELAYED ranges FREE, in `expire`, from one heap of due times. A claim that ran out still
names its consumer, who may ack or extend it until somebody else gets it. A range that is cut in two leaves both parts
to the same claim. Heaps keep items of ranges that have changed, which are passed over when met.

`due_ms` is the first millisecond at which a range may be handed out again; a claim's deadline is the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final

CLAIMED: Final = 0
DELAYED: Final = 1
FREE: Final = 2
ACKED: Final = 3
LEAVING: Final = 4

OPEN: Final = (CLAIMED, DELAYED, FREE)
"""States of what has still to be acked."""

_SLACK = 1024
"""Dead items that are not worth making a heap anew for."""

_first = attrgetter("first")


@dataclass(slots=True)
class Range:
    first: int
    last: int
    state: int
    due_ms: int = 0
    consumer: str = ""
    token: int = 0
    """Of the claim it was handed out with; 0 when it was given back since, or never handed out."""
    claim_first: int = 0
    """Where that claim began."""
    deliveries: int = 0

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def _is_skipped(found: Range) -> bool:
    return found.state == FREE and not found.deliveries


class Ranges:
    __slots__ = ("_due", "_free", "_has_skipped", "_ranges", "next_seq")

    def __init__(self, next_seq: int, ranges: Iterable[Range] = ()) -> None:
        self.next_seq = next_seq
        """The first seq behind all ranges: it was never handed out."""
        self._ranges = list(ranges)
        self._due: list[tuple[int, int]] = []
        self._free: list[int] = []
        self._has_skipped = True
        """Whether there may be ranges that were never handed out."""
        self._plan_anew()

    # ---- looking

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    def at(self, seq: int) -> Range | None:
        """The range that holds a seq."""
        index = self._index(seq)
        return self._ranges[index] if index >= 0 and seq <= self._ranges[index].last else None

    def between(self, first: int, last: int) -> Iterator[Range]:
        """The ranges that hold a seq from `first` to `last`."""
        for index in range(max(self._index(first), 0), len(self._ranges)):
            found = self._ranges[index]
            if found.first > last:
                return
            if found.last >= first:
                yield found

    def skipped(self, first: int, last: int) -> list[Range]:
        """Ranges that were never handed out, because something behind them was acked before: from `first` to `last`."""
        if not self._has_skipped:
            return []
        self._has_skipped = any(_is_skipped(found) for found in self._ranges)
        return [found for found in self.between(first, last) if _is_skipped(found)] if self._has_skipped else []

    def _index(self, seq: int) -> int:
        return bisect_right(self._ranges, seq, key=_first) - 1

    def next_due_ms(self) -> int | None:
        """When `expire` has something to do."""
        due = self._due
        while due and not self._is_due(*due[0]):
            heappop(due)
        return due[0][0] if due else None

    def _is_due(self, due_ms: int, first: int) -> bool:
        found = self.at(first)
        return found is not None and found.first == first and found.due_ms == due_ms and found.state <= DELAYED

    # ---- time

    def expire(self, now_ms: int) -> None:
        """Free what is due by now."""
        due = self._due
        while due and due[0][0] <= now_ms:
            due_ms, first = heappop(due)
            if self._is_due(due_ms, first):
                found = self.at(first)
                assert found is not None
                found.state = FREE
                heappush(self._free, first)

    def take_free(self) -> Range | None:
        """The lowest free range. The caller leases it, lets it pass or gives it back at once."""
        free = self._free
        while free:
            first = heappop(free)
            while free and free[0] == first:
                heappop(free)  # It was freed, taken and freed again.
            found = self.at(first)
            if found is not None and found.first == first and found.state == FREE:
                return found
        return None

    def give_back(self, firsts: Iterable[int]) -> None:
        for first in firsts:
            heappush(self._free, first)

    def free_upto(self, found: Range) -> int:
        """Up to where free ranges that were delivered as often follow on this one."""
        last = found.last
        for other in self.between(last + 1, self.next_seq):
            if other.state != FREE or other.deliveries != found.deliveries:
                break
            last = other.last
        return last

    # ---- changes

    def grow(self, last: int, state: int, due_ms: int = 0, consumer: str = "", token: int = 0) -> None:
        """A range for all seqs up to `last` that have none."""
        if last < self.next_seq:
            return
        first, self.next_seq = self.next_seq, last + 1
        found = Range(first, last, state, due_ms, consumer, token, first, 1 if state == CLAIMED else 0)
        before = self._ranges[-1] if self._ranges else None
        if state == ACKED and before is not None and before.state == ACKED:
            before.last = last
            return
        self._ranges.append(found)
        self._plan(found)

    def claim(self, first: int, last: int, due_ms: int, consumer: str, token: int) -> None:
        """Hand out again what lies from `first` to `last`, each range delivered once more."""
        start, end = self._cut(first, last)
        claimed: list[Range] = []
        for found in self._ranges[start:end]:
            before = claimed[-1] if claimed else None
            if found.state not in OPEN:
                claimed.append(found)
            elif before is not None and before.token == token and before.deliveries == found.deliveries + 1:
                before.last = found.last
            else:
                deliveries = found.deliveries + 1
                claimed.append(Range(found.first, found.last, CLAIMED, due_ms, consumer, token, first, deliveries))
        self._ranges[start:end] = claimed
        for found in claimed:
            self._plan(found)

    def ack(self, first: int, last: int) -> int:
        """These are done; how many were not. What no range held is handed out to nobody any more."""
        if first > self.next_seq:
            self.grow(first - 1, FREE)
            self._has_skipped = True
        start, end = self._cut(first, last)
        acked = sum(found.size for found in self._ranges[start:end] if found.state != ACKED)
        if start < end:
            done = Range(self._ranges[start].first, self._ranges[end - 1].last, ACKED)
            if start and self._ranges[start - 1].state == ACKED:
                start -= 1
                done.first = self._ranges[start].first
            if end < len(self._ranges) and self._ranges[end].state == ACKED:
                done.last = self._ranges[end].last
                end += 1
            self._ranges[start:end] = [done]
        acked += max(0, last - self.next_seq + 1)
        self.grow(last, ACKED)
        return acked

    def free(self, first: int, last: int, due_ms: int, now_ms: int) -> None:
        """Nobody has these any more; to be handed out again from `due_ms` on."""
        for found in self._open(first, last):
            found.state = DELAYED if due_ms > now_ms else FREE
            found.due_ms, found.consumer, found.token = due_ms, "", 0
            self._plan(found)

    def keep(self, first: int, last: int, due_ms: int) -> None:
        """Those who had these have them until `due_ms`."""
        for found in self._open(first, last):
            if found.token:
                found.state, found.due_ms = CLAIMED, due_ms
                self._plan(found)

    def leave(self, first: int, last: int) -> None:
        for found in self._open(first, last):
            found.state, found.due_ms, found.consumer, found.token = LEAVING, 0, "", 0

    def commit(self) -> int | None:
        """Forget what is acked at the front; up to where, None when nothing is."""
        if not self._ranges or self._ranges[0].state != ACKED:
            return None
        return self._ranges.pop(0).last

    def _open(self, first: int, last: int) -> list[Range]:
        start, end = self._cut(first, last)
        return [found for found in self._ranges[start:end] if found.state in OPEN]

    def _cut(self, first: int, last: int) -> tuple[int, int]:
        """Where the ranges lie, from and to before, that hold exactly the seqs from `first` to `last`."""
        self._cut_before(first)
        self._cut_before(last + 1)
        start = max(self._index(first), 0)
        if start < len(self._ranges) and self._ranges[start].last < first:
            start += 1
        return start, max(start, self._index(last) + 1)

    def _cut_before(self, seq: int) -> None:
        index = self._index(seq - 1)
        if index < 0 or self._ranges[index].last < seq:
            return
        whole = self._ranges[index]
        rest = replace(whole, first=seq)
        whole.last = seq - 1
        self._ranges.insert(index + 1, rest)
        self._plan(rest)

    def _plan(self, found: Range) -> None:
        if found.state == FREE:
            heappush(self._free, found.first)
        elif found.state <= DELAYED:
            heappush(self._due, (found.due_ms, found.first))
        if len(self._due) + len(self._free) > 2 * len(self._ranges) + _SLACK:
            self._plan_anew()

    def _plan_anew(self) -> None:
        self._due = [(found.due_ms, found.first) for found in self._ranges if found.state <= DELAYED]
        self._free = [found.first for found in self._ranges if found.state == FREE]
        heapify(self._due)
        heapify(self._free)
