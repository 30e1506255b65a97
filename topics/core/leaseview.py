"""What a queue's leases look like from outside: who holds what, since when and until when; nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core.claim import find_queue
from topics.core.groupview import ts_of
from topics.core.leases import DELAYED, LEASED, Lease, lease_id
from topics.core.log import Log
from topics.core.queue import Queue
from topics.leasemodel import JobLease, LeasePage, ReadyJob

if TYPE_CHECKING:
    from topics.core.machine import Machine


def lease_page(
    machine: Machine, name: str, partition: int, after: int, limit: int, now_ms: int, delayed: bool = False
) -> LeasePage:
    """Jobs that somebody has, or those with a delay, behind a seq."""
    topic, log, queue = find_queue(machine, name, partition, now_ms)
    seqs, next_after = queue.leases.page(after, limit, DELAYED if delayed else LEASED)
    found = [lease for seq in seqs if (lease := queue.leases.get(seq)) is not None]
    return LeasePage(
        topic=topic.name,
        partition=partition,
        leases=[_shown(queue, lease) for lease in found],
        next_after=next_after,
        oldest_ready=_oldest_ready(log, queue),
    )


def _shown(queue: Queue, lease: Lease) -> JobLease:
    if lease.state == DELAYED:
        return JobLease(seq=lease.seq, deadline=lease.due_ms, deliveries=lease.deliveries)
    return JobLease(
        seq=lease.seq,
        node=lease.node,
        lease_id=lease_id(lease.token),
        since=queue.token_times.since_ms(lease.token),
        # The lease is good until the millisecond before others can have the job.
        deadline=lease.due_ms - 1,
        deliveries=lease.deliveries,
    )


def _oldest_ready(log: Log, queue: Queue) -> ReadyJob | None:
    free = queue.leases.take_free(1, log.visible_seq)
    queue.leases.give_back(free)
    fresh, _ = queue.find_fresh(log, 1)
    if not free and not fresh:
        return None
    seq = min(free + fresh)
    return ReadyJob(seq=seq, ts=ts_of(log, seq), deliveries=queue.leases.deliveries(seq))
