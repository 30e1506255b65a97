"""Finding the best messages of a heap: chosen in memory, best first, then read together.

Which messages are the best is known without reading any: the order of each partition says so (`core/heaporder.py`), and
between partitions the spine does (`core/spine.py`). Only where two partitions have the same priority is it looked up
when the messages came, which may take a block from the disk.

What was chosen is read in the order it is stored in, so that a block, and the file it is in, is looked for once however
many of its messages are wanted. How many may travel together depends on what they weigh, which is not known before they
are read: as many are chosen as would fit if they were as heavy as most, and then more, or the last go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topics.core.heaporder import SEQ_BITS, SEQ_MASK
from topics.core.heapplace import Part
from topics.core.heaprecord import Stored, read_many, ts_at
from topics.core.spine import Candidate, Spine
from topics.errors import TopicsError
from topics.limits import CLAIM_BYTES_MAX


class Found:
    """Messages in order, each with its partition and its key, taken out of the order of their partition."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.keys: list[int] = []
        self.messages: list[Stored] = []

    def add(self, part: Part, key: int, message: Stored) -> None:
        self.parts.append(part)
        self.keys.append(key)
        self.messages.append(message)
        part.heap.sizes[key & SEQ_MASK] = message.size_bytes


def find_best(parts: Sequence[Part], limit: int) -> Found:
    """Take the best messages out of the order, as many as are asked for and as may travel together.

    When one of them cannot be read all go back, and it is told why.
    """
    found, heads = Found(), _Heads(parts)
    left_bytes = CLAIM_BYTES_MAX
    weight_bytes = _weight_bytes(parts)
    while len(found.keys) < limit and left_bytes > 0:
        chosen = heads.take(min(limit - len(found.keys), 1 + left_bytes // weight_bytes))
        if not chosen:
            break
        try:
            messages = _read(chosen)
        except TopicsError:
            _give_back(chosen)
            _give_back(zip(found.parts, found.keys, strict=True))
            raise
        for at, ((part, key), message) in enumerate(zip(chosen, messages, strict=True)):
            left_bytes -= len(message.payload)
            if left_bytes < 0 and found.keys:
                _give_back(chosen[at:])
                break
            found.add(part, key, message)
    return found


class _Heads:
    """The best message of each partition, and the best of these."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = {part.log.partition: part for part in parts}
        self._spine = Spine()
        self._same: dict[int, list[Part]] = {}
        """By rank, the partitions whose best message has it."""
        if len(parts) > 1:
            for part in parts:
                self._show(part)

    def take(self, count: int) -> list[tuple[Part, int]]:
        """The best so many, or all there are, out of their orders: partition and key of each."""
        if len(self._parts) == 1:
            (part,) = self._parts.values()
            return [(part, key) for key in part.heap.take_best(part.log, count)]
        taken: list[tuple[Part, int]] = []
        while len(taken) < count and (best := self._spine.take()) is not None:
            part = self._parts[best.partition]
            self._same[best.rank].remove(part)
            (key,) = part.heap.take_best(part.log, 1)
            taken.append((part, key))
            self._show(part)
        return taken

    def _show(self, part: Part) -> None:
        key = part.heap.head(part.log)
        if key is None:
            return
        same = self._same.setdefault(key >> SEQ_BITS, [])
        same.append(part)
        if len(same) == 1:
            self._show_as(part, key, 0)
            return
        # The time decides. The first one had nobody beside it until now.
        for each in same if len(same) == 2 else (part,):
            head = each.heap.head(each.log)
            assert head is not None
            self._show_as(each, head, _time(each, head))

    def _show_as(self, part: Part, key: int, ts: int) -> None:
        partition = part.log.partition
        self._spine.show(partition, (Candidate(key >> SEQ_BITS, ts, partition, key & SEQ_MASK),))


def _time(part: Part, key: int) -> int:
    """When the best message of a partition came."""
    heap = part.heap
    if heap.head_time[0] != key:
        heap.head_time = key, ts_at(part.log, key & SEQ_MASK)
    return heap.head_time[1]


def _weight_bytes(parts: Sequence[Part]) -> int:
    """What a message weighs, as most do."""
    count = sum(part.log.count for part in parts)
    return max(1, sum(part.log.bytes for part in parts) // count) if count else 1


def _read(chosen: Sequence[tuple[Part, int]]) -> list[Stored]:
    """The messages in the order they were chosen in, read in that in which they are stored."""
    by_partition: dict[int, list[int]] = {}
    for at, (part, _) in enumerate(chosen):
        by_partition.setdefault(part.log.partition, []).append(at)
    found: dict[int, Stored] = {}
    for places in by_partition.values():
        places.sort(key=lambda at: chosen[at][1] & SEQ_MASK)
        log = chosen[places[0]][0].log
        found.update(zip(places, read_many(log, [chosen[at][1] & SEQ_MASK for at in places]), strict=True))
    return [found[at] for at in range(len(chosen))]


def _give_back(taken: Iterable[tuple[Part, int]]) -> None:
    for part, key in taken:
        part.heap.give_back((key,))
