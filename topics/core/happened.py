"""What a stored fact changes in its log: one place that knows all of them, appends apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from topics.core.facts import (
    Acked,
    Archived,
    ArchiveDropped,
    Claimed,
    Deleted,
    Extended,
    FloorsMoved,
    HeadMoved,
    LogFact,
    MoveDecided,
    MoveFinished,
    ProducerForgotten,
    Released,
    SeqsSkipped,
)
from topics.core.groupfacts import GroupFact
from topics.core.heapfacts import Nacked, PriorityChanged
from topics.model import Reason

if TYPE_CHECKING:
    from topics.core.log import Log


def apply(log: Log, fact: LogFact) -> None:
    if isinstance(fact, GroupFact):
        log.groups.apply(fact, log)
        return
    match fact:
        case Deleted():
            log.apply_deleted(fact)
        case FloorsMoved():
            log.apply_floors(fact.floors())
        case SeqsSkipped():
            log.add_hole(fact.gap_from, fact.gap_to, fact.reason)
        case HeadMoved():
            if fact.next_seq > log.next_seq:
                log.add_hole(log.next_seq, fact.next_seq - 1, Reason.RESTART)
        case Claimed() | Released() | Extended():
            if log.queue is not None:
                log.queue.apply(fact)
        case Nacked() | PriorityChanged():
            if log.queue is not None:
                log.queue.apply_message(fact)
        case Acked():
            log.delete_seqs(fact.seqs)
            if log.queue is not None and not fact.called_off:
                log.queue.acked(len(fact.seqs))
        case MoveDecided():
            _begin_move(log, fact)
        case MoveFinished():
            _finish_move(log, fact.number)
        case Archived() | ArchiveDropped():
            log.holds.apply(fact)
        case ProducerForgotten():
            log.dedupe.forget(fact.producer_id, fact.at_ms)
        case _:
            assert_never(fact)


def _begin_move(log: Log, fact: MoveDecided) -> None:
    log.transit.decided(fact)
    if log.queue is not None:
        log.queue.leases.leave(fact.seqs)
    group = log.groups.get(fact.group) if fact.group else None
    if group is not None:
        group.leave(fact.ranges)


def _finish_move(log: Log, number: int) -> None:
    move = log.transit.finished(number)
    if move is None:
        return
    log.delete_seqs(move.seqs)
    if move.dead_letter and log.queue is not None:
        log.queue.dead_lettered += len(move.seqs)
    group = log.groups.get(move.group) if move.group else None
    if group is not None:
        group.left(move.ranges, sum(part.count() for part in move.parts), log)
        log.groups.hold(group, log)
