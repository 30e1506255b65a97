"""What a snapshot holds of a heap's partition beside what it holds of a queue.

    in `l/<log id>`     the order without its runs, changed priorities, failures, counts
    h/<log id>/<n>      run n of the order: ranks, then seqs, eight bytes little endian each. Written once

When a run is missing, as after a repair, the order is made anew from the records: all of them are admitted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from topics.core.heap import Counts, Heap
from topics.core.heaporder import Order, OrderImage, SortedRun
from topics.core.leases import LeaseTable
from topics.core.log import Log
from topics.core.volatile import Volatile
from topics.heapmodel import Failure

if TYPE_CHECKING:
    from topics.engine.images import LogImage
    from topics.engine.job import Job

KEY = b"h/"


class HeapImage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    order: OrderImage
    changed: dict[int, int]
    history: dict[int, tuple[Failure, ...]]
    counts: Counts


def run_key(log_id: int, number: int) -> bytes:
    return b"%b%d/%d" % (KEY, log_id, number)


def heap_image(heap: Heap, volatile: Volatile | None = None) -> HeapImage:
    """Of messages that are in memory only nothing is kept: the order of the others is made again from the records."""
    counts = msgspec.structs.replace(heap.counts)
    if volatile is None:
        return HeapImage(heap.order.image(), dict(heap.changed), dict(heap.history), counts)
    changed = {seq: priority for seq, priority in heap.changed.items() if seq not in volatile}
    history = {seq: failures for seq, failures in heap.history.items() if seq not in volatile}
    order = OrderImage(b"", [], heap.order.next_number)
    return HeapImage(order, changed, history, counts)


def capture(job: Job, log: Log) -> None:
    """The runs of a log that the snapshot lacks, and those it need not have any more."""
    if isinstance(log.queue, Heap):
        order = log.queue.order
        if log.volatile is not None:
            order.forget_stored()
            job.removes.update(run_key(log.log_id, number) for number in order.take_gone())
            return
        job.puts.update((run_key(log.log_id, number), stored) for number, stored in order.unstored())
        job.removes.update(run_key(log.log_id, number) for number in order.take_gone())


def installed(log: Log, image: LogImage) -> None:
    """The snapshot with this image is durable."""
    if isinstance(log.queue, Heap) and image.heap is not None:
        log.queue.order.stored([number for number, _, _ in image.heap.order.runs])


def write_anew(logs: Iterable[Log]) -> None:
    """The next snapshot builds on no other."""
    for log in logs:
        if isinstance(log.queue, Heap):
            log.queue.order.store_anew()


def gone(job: Job, log: Log) -> None:
    """A log went, and its runs with it."""
    if isinstance(log.queue, Heap):
        log.queue.order.clear()
        job.removes.update(run_key(log.log_id, number) for number in log.queue.order.take_gone())


def check_run(stored: bytes) -> None:
    """Raises `ValueError` when it is no run."""
    SortedRun.parse(stored)


def restore(log: Log, image: LogImage, state: Mapping[bytes, bytes]) -> None:
    """Put an image into the heap of a fresh log, if it is one's."""
    if not isinstance(log.queue, Heap) or image.queue is None:
        return
    heap, kept = log.queue, image.heap
    heap.dead_lettered = image.queue.dead_lettered
    if image.queue.leases.seqs:
        heap.leases = LeaseTable.of(image.queue.leases)
        heap.is_touched = True
    if kept is None:
        return
    heap.changed = dict(kept.changed)
    heap.history = dict(kept.history)
    heap.counts = kept.counts
    runs = {number: state.get(run_key(log.log_id, number)) for number, _, _ in kept.order.runs}
    whole = {number: stored for number, stored in runs.items() if stored is not None}
    if len(whole) == len(runs):
        heap.order = Order.of(kept.order, whole)
        heap.cursor = image.queue.cursor
