"""The waiting messages of a heap in order: pairs of (rank, seq), lowest first, sixteen bytes each.

A rank is a priority turned so that the lowest is best. Seqs of one log go up with the time of enqueueing, so (rank,
seq) is (priority, time). A pair is one number, its *key*: the rank above the lowest 64 bits, the seq in them.

Most pairs lie in *runs*: sorted columns that never change, passed from the front. A small heap of the runs' first keys
says which run is next, so that taking the best costs a step in that heap, whatever the backlog. What comes one by one
gathers in a heap of its own, the *young*, which becomes a run when it is full; a large batch is a run at once. Small
runs are merged when there are many. Since a run never changes it is stored once, under a number that is no other
run's; how far it is passed is stored with the rest of the heap (`engine/heapimages.py`).

Nothing is ever looked for or taken out of the middle: a pair may stand for a message that is gone, or has another
priority now. Whoever takes the first one asks whether it still means something (`core/heap.py`). A pair may be here
twice.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace, merge
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topics.limits import HEAP_RUN_MESSAGES, HEAP_YOUNG_BATCH_MAX, HEAP_YOUNG_MESSAGES
from topics.model import Mode

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

SEQ_BITS = 64
SEQ_MASK = 2**SEQ_BITS - 1
_SIGN = 1 << 63
_SMALL_MESSAGES = HEAP_YOUNG_MESSAGES
_SMALL_RUNS_MAX = HEAP_RUN_MESSAGES // _SMALL_MESSAGES
"""As many small runs as fit into one."""


def rank_of(priority: int, mode: Mode) -> int:
    """The rank of a priority: an unsigned number, the lower the better."""
    return priority + _SIGN if mode is Mode.MIN else _SIGN - 1 - priority


def priority_of(rank: int, mode: Mode) -> int:
    return rank - _SIGN if mode is Mode.MIN else _SIGN - 1 - rank


def ranks_of(priorities: I64, mode: Mode) -> U64:
    """`rank_of` for a column."""
    bits = priorities.view(np.uint64)
    return (bits if mode is Mode.MIN else ~bits) ^ np.uint64(_SIGN)


class SortedRun:
    """Sorted pairs, of which those from `at` up to `end` count."""

    __slots__ = ("at", "end", "ranks", "seqs")

    def __init__(self, ranks: array[int], seqs: array[int], at: int = 0, end: int | None = None) -> None:
        self.ranks = ranks
        self.seqs = seqs
        self.at = at
        self.end = len(seqs) if end is None else end

    def __len__(self) -> int:
        return self.end - self.at

    def keys(self, start: int | None = None) -> Iterator[int]:
        ranks, seqs = self.ranks, self.seqs
        return (ranks[at] << SEQ_BITS | seqs[at] for at in range(self.at if start is None else start, self.end))

    def first(self) -> int:
        return self.ranks[self.at] << SEQ_BITS | self.seqs[self.at]

    def stored(self) -> bytes:
        """The whole run, passed pairs included: ranks, then seqs, eight bytes each."""
        return self.ranks.tobytes() + self.seqs.tobytes()

    @classmethod
    def parse(cls, stored: bytes, at: int = 0, end: int | None = None) -> SortedRun:
        half = len(stored) // 2
        return cls(array("Q", stored[:half]), array("Q", stored[half:]), at, end)


class OrderImage(NamedTuple):
    """What is stored of an order beside its runs."""

    young: bytes
    """Ranks, then seqs."""
    runs: list[tuple[int, int, int]]
    """Number of each run, and from where to where its pairs count."""
    next_number: int


class Order:
    __slots__ = ("_heads", "_runs", "_stored", "_young", "count", "gone", "next_number")

    def __init__(self) -> None:
        self.count = 0
        """Pairs, those included that stand for nothing any more."""
        self._young: list[int] = []
        self._runs: dict[int, SortedRun] = {}
        self._heads: list[tuple[int, int]] = []
        """The first key of each run, and the run's number."""
        self.next_number = 1
        self._stored: dict[int, None] = {}
        """Runs that the newest snapshot holds."""
        self.gone: list[int] = []
        """Runs that it need not hold any more."""

    @property
    def run_count(self) -> int:
        return len(self._runs)

    # ---- in and out

    def push(self, rank: int, seq: int) -> None:
        heappush(self._young, rank << SEQ_BITS | seq)
        self.count += 1
        if len(self._young) >= HEAP_YOUNG_MESSAGES:
            self._settle_young()

    def push_many(self, ranks: U64, seqs: U64) -> None:
        """The seqs are ascending."""
        if len(seqs) <= HEAP_YOUNG_BATCH_MAX:
            for rank, seq in zip(ranks.tolist(), seqs.tolist(), strict=True):
                self.push(rank, seq)
            return
        self.count += len(seqs)
        for begin in range(0, len(seqs), HEAP_RUN_MESSAGES):
            end = begin + HEAP_RUN_MESSAGES
            self._add_sorted(ranks[begin:end], seqs[begin:end])

    def first(self) -> int | None:
        """The lowest key."""
        young, heads = self._young, self._heads
        if heads and (not young or heads[0][0] < young[0]):
            return heads[0][0]
        return young[0] if young else None

    def pop(self) -> None:
        """Take the lowest key out, which is there."""
        self.count -= 1
        young, heads = self._young, self._heads
        if not heads or (young and young[0] <= heads[0][0]):
            heappop(young)
            return
        number = heads[0][1]
        run = self._runs[number]
        run.at += 1
        if run.at < run.end:
            heapreplace(heads, (run.first(), number))
        else:
            heappop(heads)
            self._forget(number)

    def take_last(self, most: int) -> list[int]:
        """Take out up to so many keys of the oldest run, its highest ones: who calls this puts back what counts."""
        if not self._runs:
            keys, self._young = self._young, []
            self.count -= len(keys)
            return keys
        number = min(self._runs)
        run = self._runs[number]
        start = max(run.at, run.end - most)
        keys = list(run.keys(start))
        run.end = start
        self.count -= len(keys)
        if not len(run):
            self._drop_heads({number})
            self._forget(number)
        return keys

    def clear(self) -> None:
        self.count = 0
        self._young.clear()
        self._heads.clear()
        for number in list(self._runs):
            self._forget(number)

    def in_order(self) -> Iterator[int]:
        """All keys in order, one at a time; nothing may change while one looks for the next."""
        return merge(sorted(self._young), *(run.keys() for run in self._runs.values()))

    def columns(self) -> list[U64]:
        """The ranks of all pairs as sorted columns; those of runs are not copied, and stay as they are."""
        found = [np.frombuffer(run.ranks, np.uint64)[run.at : run.end] for run in self._runs.values()]
        return [*found, np.array(sorted([key >> SEQ_BITS for key in self._young]), np.uint64)]

    # ---- runs

    def _settle_young(self) -> None:
        keys = sorted(self._young)
        self._young.clear()
        ranks = array("Q", [key >> SEQ_BITS for key in keys])
        self._add(SortedRun(ranks, array("Q", [key & SEQ_MASK for key in keys])))

    def _add_sorted(self, ranks: U64, seqs: U64) -> None:
        order = np.lexsort((seqs, ranks))
        self._add(SortedRun(array("Q", ranks[order].tobytes()), array("Q", seqs[order].tobytes())))

    def _add(self, run: SortedRun) -> None:
        number = self.next_number
        self.next_number += 1
        self._runs[number] = run
        heappush(self._heads, (run.first(), number))
        small = [number for number, run in self._runs.items() if len(run) <= _SMALL_MESSAGES]
        if len(small) >= _SMALL_RUNS_MAX:
            self._merge(small)

    def _merge(self, numbers: Sequence[int]) -> None:
        runs = [self._runs[number] for number in numbers]
        ranks = np.concatenate([np.array(run.ranks[run.at : run.end], np.uint64) for run in runs])
        seqs = np.concatenate([np.array(run.seqs[run.at : run.end], np.uint64) for run in runs])
        for number in numbers:
            self._forget(number)
        self._drop_heads(set(numbers))
        self._add_sorted(ranks, seqs)

    def _drop_heads(self, numbers: set[int]) -> None:
        self._heads = [head for head in self._heads if head[1] not in numbers]
        heapify(self._heads)

    def _forget(self, number: int) -> None:
        del self._runs[number]
        if number in self._stored:
            del self._stored[number]
            self.gone.append(number)

    # ---- snapshots

    def image(self) -> OrderImage:
        ranks = array("Q", [key >> SEQ_BITS for key in self._young])
        seqs = array("Q", [key & SEQ_MASK for key in self._young])
        runs = [(number, run.at, run.end) for number, run in self._runs.items()]
        return OrderImage(ranks.tobytes() + seqs.tobytes(), runs, self.next_number)

    def unstored(self) -> Iterator[tuple[int, bytes]]:
        """Runs that no snapshot holds: number and stored form."""
        return ((number, run.stored()) for number, run in self._runs.items() if number not in self._stored)

    def stored(self, numbers: Sequence[int]) -> None:
        """A snapshot with these runs is durable; those that went meanwhile need not stay in it."""
        self._stored.update((number, None) for number in numbers if number in self._runs)
        self.gone += [number for number in numbers if number not in self._runs and number not in self.gone]

    def store_anew(self) -> None:
        """The next snapshot builds on no other: it holds all runs."""
        self._stored.clear()

    def forget_stored(self) -> None:
        """The next snapshot holds none of the runs."""
        self.gone += sorted(self._stored)
        self._stored.clear()

    def take_gone(self) -> list[int]:
        gone, self.gone = self.gone, []
        return gone

    @classmethod
    def of(cls, image: OrderImage, stored: dict[int, bytes]) -> Order:
        """The order whose image and runs were kept."""
        order = cls()
        order.next_number = image.next_number
        young = SortedRun.parse(image.young)
        order._young = list(young.keys())
        heapify(order._young)
        for number, at, end in image.runs:
            run = order._runs[number] = SortedRun.parse(stored[number], at, end)
            heappush(order._heads, (run.first(), number))
        order.count = len(order._young) + sum(map(len, order._runs.values()))
        order._stored = dict.fromkeys(order._runs)
        return order
