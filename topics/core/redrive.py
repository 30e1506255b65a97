"""Moving dead letters back to where they came from: one bounded step, to be repeated until it is done.

A step looks at so many records behind a cursor and moves those that are dead letters and are asked for, without their
stamps, each to the queue its stamp names or to one for all. Records that are no dead letters are passed over. A dead
letter that somebody has (the dead-letter topic may itself be a queue), or whose queue is gone or full, stays and is
counted as skipped.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from topics.core import live, move, room
from topics.core.block import Block
from topics.core.commands import Discard, Redrive
from topics.core.copies import block_of, copies, meta_of
from topics.core.deadletter import FROM, REASON, unstamped
from topics.core.facts import MovePart
from topics.core.log import Log
from topics.core.outcome import BegunMove, Outcome
from topics.core.records import Records
from topics.core.registry import Topic
from topics.errors import InvalidRequest, TopicsError
from topics.limits import MOVE_BYTES_MAX, REDRIVE_SCANNED_MAX
from topics.model import Redriven

if TYPE_CHECKING:
    from topics.core.machine import Machine


def redrive(machine: Machine, command: Redrive, now_ms: int) -> Outcome:
    _check(machine, command)
    topic, log, last, source = find_stretch(machine, command, now_ms)
    by_destination: dict[str, list[int]] = {}
    scanned = moved = moved_bytes = skipped = 0
    reached = command.from_seq
    full = False
    for seq in islice(live.live_seqs(log, command.from_seq + 1, last), REDRIVE_SCANNED_MAX):
        block = block_of(log, seq)
        size_bytes = int(block.sizes[seq - block.first_seq])
        if moved == command.limit or (moved and moved_bytes + size_bytes > MOVE_BYTES_MAX):
            full = True
            break
        scanned += 1
        reached = seq
        came_from = origin(block, seq, command, source)
        if came_from is None:
            continue
        found = machine.topics.get(command.destination or came_from)
        if found is None or found is topic or is_busy(log, seq):
            skipped += 1
            continue
        by_destination.setdefault(found.name, []).append(seq)
        moved += 1
        moved_bytes += size_bytes
    done = not full and scanned < REDRIVE_SCANNED_MAX
    moves: list[BegunMove] = []
    if not command.dry_run:
        parts, seqs = _parts(machine, log, by_destination, now_ms)
        skipped += moved - len(seqs)
        moved = len(seqs)
        moves = [move.decide(machine, log, sorted(seqs), parts)] if parts else []
    reply = Redriven(
        topic=topic.name,
        partition=log.partition,
        moved=moved,
        skipped=skipped,
        scanned=scanned,
        next_from_seq=max(last, command.from_seq) if done else reached,
        head_seq=log.visible_seq,
        done=done,
        dry_run=command.dry_run,
    )
    return Outcome(reply, log=log, durability=topic.config.durability, moves=moves)


def find_stretch(machine: Machine, command: Redrive | Discard, now_ms: int) -> tuple[Topic, Log, int, str | None]:
    """The topic, its log as it is by now, the last seq that is looked at, and the name of where letters come from."""
    topic = machine.topic(command.topic)
    log = machine.log(topic, command.partition)
    log.observe(topic.config, now_ms)
    if log.queue is not None:
        log.queue.leases.expire(now_ms)
    last = log.visible_seq if command.before_seq is None else min(log.visible_seq, command.before_seq - 1)
    return topic, log, last, None if command.source is None else machine.topics.name_of(command.source)


def check_bounds(command: Redrive | Discard) -> None:
    if command.from_seq < 0:
        raise InvalidRequest("from_seq must be 0 or more", field="from_seq", expected="a whole number from 0")
    if not 1 <= command.limit <= REDRIVE_SCANNED_MAX:
        expected = f"a whole number from 1 to {REDRIVE_SCANNED_MAX}"
        raise InvalidRequest(f"limit must be {expected}, not {command.limit}", field="limit", expected=expected)


def _check(machine: Machine, command: Redrive) -> None:
    check_bounds(command)
    if command.destination is not None:
        if machine.topic(command.destination).name == machine.topics.name_of(command.topic):
            raise InvalidRequest("dead letters cannot be moved to where they are", field="destination")


def origin(block: Block, seq: int, command: Redrive | Discard, wanted: str | None) -> str | None:
    """Where a dead letter came from; None when it is none, or not asked for. It has to be from `wanted`, if any."""
    if command.match is not None and not command.match.matches(block.tag(seq - block.first_seq)):
        return None
    meta = meta_of(block, seq)
    source = meta.get(FROM)
    if source is None or (wanted is not None and source != wanted):
        return None
    if command.reason is not None and meta.get(REASON) != command.reason:
        return None
    return source


def is_busy(log: Log, seq: int) -> bool:
    """Whether somebody has it, or it is on its way already."""
    if log.queue is not None and not log.queue.leases.is_waiting(seq):
        return True
    return log.has_moves and any(seq in fact.seqs for fact in log.transit.leaving.values())


def _parts(
    machine: Machine, log: Log, by_destination: dict[str, list[int]], now_ms: int
) -> tuple[list[MovePart], list[int]]:
    """The records for each destination that takes them, and their seqs here."""
    parts: list[MovePart] = []
    moved: list[int] = []
    for name, seqs in by_destination.items():
        target_topic = machine.topic(name)
        target = machine.log(target_topic, log.partition % target_topic.config.partitions)
        records: Records = copies(log, seqs, lambda _, meta: unstamped(meta))
        try:
            target.observe(target_topic.config, now_ms)
            room.check_caps(name, target_topic.config, target, records)
        except TopicsError:
            continue
        parts.append(move.part(machine, name, target.partition, target, records, now_ms))
        moved += seqs
    return parts, moved
