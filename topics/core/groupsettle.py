"""What a consumer says about records it has: done, not done, need more time.

Which ones is said by a seq: the claim that holds it, up to it. A consumer that names itself means all its own claims up
to there, and one that names a claim means what it still holds under that very claim. `from_seq` narrows all of these.
A claim that ran out counts until somebody else has got its range.

An ack also covers what was never handed out below its seq. It never covers what somebody else was handed, whether that
claim is alive or ran out: nobody's ack buries what another one had.

An ack of a group that does not exist creates it and commits there, unless it names a claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from topics.core.group import Group, parse_claim_id
from topics.core.groupcommands import AckGroup, ExtendGroup, NackGroup
from topics.core.groupfacts import AnyGroupFact, GroupAcked, GroupFreed, GroupKept, GroupPlaced, SeqRange
from topics.core.groupranges import OPEN, Range
from topics.core.groups import (
    check_consumer,
    check_room,
    cursor_of,
    find_group,
    find_log,
    store,
    store_floors,
    visibility_ms,
)
from topics.core.log import Log
from topics.core.names import check_group
from topics.core.outcome import Outcome
from topics.core.registry import Topic
from topics.errors import InvalidRequest, Throttled
from topics.groupmodel import EARLIEST, AckedGroup, ExtendedGroup, NackedGroup
from topics.limits import GROUP_RANGES_MAX, NACK_DELAY_MS_MAX
from topics.model import Durability

if TYPE_CHECKING:
    from topics.core.machine import Machine

Settle = AckGroup | NackGroup | ExtendGroup


def ack(machine: Machine, command: AckGroup, now_ms: int) -> Outcome:
    _check(command)
    facts: list[AnyGroupFact] = []
    # Of a claim there is a group, or it was dropped.
    if command.claim_id is None and (placed := _placed_by(machine, command, now_ms)) is not None:
        facts.append(placed)
    created = bool(facts)
    topic, log, group = find_group(machine, command, command.partition, now_ms)
    upto_seq = min(command.upto_seq, log.visible_seq)
    ranges = _held(group, command, upto_seq)
    known = _losses(group, command, upto_seq)
    if command.claim_id is None:
        ranges += _never_handed_out(group, command.from_seq, upto_seq)
    _check_room(group, command)
    acked = 0
    before_seq = group.committed
    if ranges or known:
        fact = GroupAcked(group.name, now_ms, ranges, known)
        acked = log.groups.apply(fact, log, now_ms)
        facts.append(fact)
    stored = store(topic, log, facts)
    if acked and group.name in topic.config.protect_groups:
        # Retention waited for this. A replay does it again when the floors behind the ack say so.
        log.observe(topic.config, now_ms)
        log.evict(topic.config)
        stored += store_floors(topic, log)
    reply = AckedGroup(
        topic=topic.name,
        partition=log.partition,
        group=group.name,
        acked=acked,
        committed_seq=group.committed,
        head_seq=log.visible_seq,
    )
    # Whoever acks again is told of what the first ack did, which may not be stored yet.
    follows = not stored and topic.config.durability is not Durability.EPHEMERAL
    must_sync = (follows or bool(stored)) and (created or topic.config.durability is Durability.FSYNC)
    return Outcome(
        reply,
        stored,
        must_sync,
        log,
        durability=topic.config.durability,
        before_seq=before_seq,
        follows=follows,
        group_created=created,
    )


def _placed_by(machine: Machine, command: AckGroup, now_ms: int) -> GroupPlaced | None:
    """Create the group that acks before it ever consumed: it begins with the earliest record, as a first consume would.
    None when the group exists."""
    check_group(command.group)
    _, log = find_log(machine, command.topic, command.partition, now_ms)
    if log.has_groups and log.groups.get(command.group) is not None:
        return None
    check_room(log, command.group)
    placed = GroupPlaced(command.group, cursor_of(log, EARLIEST), now_ms)
    log.groups.apply(placed, log, now_ms)
    return placed


def nack(machine: Machine, command: NackGroup, now_ms: int) -> Outcome:
    _check(command)
    if command.delay_ms < 0:
        raise InvalidRequest("delay_ms must not be negative", field="delay_ms", expected="a whole number from 0")
    topic, log, group = find_group(machine, command, command.partition, now_ms)
    ranges, losses = _named(log, group, command)
    due_ms = now_ms + min(command.delay_ms, NACK_DELAY_MS_MAX)
    facts: list[AnyGroupFact] = [GroupFreed(group.name, due_ms, ranges, losses)] if ranges or losses else []
    for fact in facts:
        log.groups.apply(fact, log, now_ms)
    reply = NackedGroup(
        topic=topic.name,
        partition=log.partition,
        group=group.name,
        nacked=_size(ranges),
        committed_seq=group.committed,
        head_seq=log.visible_seq,
    )
    return _outcome(topic, log, reply, facts)


def extend(machine: Machine, command: ExtendGroup, now_ms: int) -> Outcome:
    _check(command)
    topic, log, group = find_group(machine, command, command.partition, now_ms)
    deadline_ms = now_ms + visibility_ms(machine, topic, command.visibility_ms)
    ranges, losses = _named(log, group, command)
    facts: list[AnyGroupFact] = [GroupKept(group.name, deadline_ms + 1, ranges, losses)] if ranges or losses else []
    for fact in facts:
        log.groups.apply(fact, log, now_ms)
    reply = ExtendedGroup(
        topic=topic.name,
        partition=log.partition,
        group=group.name,
        extended=_size(ranges),
        deadline=deadline_ms if facts else 0,
    )
    return _outcome(topic, log, reply, facts)


def _outcome(topic: Topic, log: Log, reply: object, facts: list[AnyGroupFact]) -> Outcome:
    stored = store(topic, log, facts)
    return Outcome(reply, stored, bool(stored) and topic.config.leases_durable, log, durability=topic.config.durability)


def _check(command: Settle) -> None:
    check_consumer(command.consumer)
    if command.upto_seq is None:
        if not command.consumer and command.claim_id is None:
            raise InvalidRequest(
                "upto_seq, consumer or claim_id must say which records are meant",
                field="upto_seq",
                expected="upto_seq, consumer or claim_id",
            )
    elif command.upto_seq < 0:
        raise InvalidRequest("upto_seq must not be negative", field="upto_seq", expected="a whole number from 0")
    if command.from_seq < 0 or (command.upto_seq is not None and command.from_seq > max(command.upto_seq, 1)):
        raise InvalidRequest(
            "from_seq must not be behind upto_seq", field="from_seq", expected="a whole number from 0 to upto_seq"
        )


def _check_room(group: Group, command: Settle) -> None:
    """Acks and nacks of parts cut ranges; what is whole never does."""
    if command.from_seq and len(group.ranges) > 2 * GROUP_RANGES_MAX:
        raise Throttled(
            f'group "{group.name}" keeps {len(group.ranges)} ranges apart, as many as it may; ack without from_seq',
            limit="group_ranges",
            max=2 * GROUP_RANGES_MAX,
        )


def _named(log: Log, group: Group, command: NackGroup | ExtendGroup) -> tuple[list[SeqRange], list[SeqRange]]:
    upto_seq = log.visible_seq if command.upto_seq is None else min(command.upto_seq, log.visible_seq)
    ranges = _held(group, command, upto_seq)
    losses = _losses(group, command, upto_seq)
    _check_room(group, command)
    return ranges, losses


def _never_handed_out(group: Group, from_seq: int, upto_seq: int) -> list[SeqRange]:
    skipped = group.ranges.skipped(max(from_seq, group.committed + 1), upto_seq)
    ranges = [(max(found.first, from_seq), min(found.last, upto_seq)) for found in skipped]
    if upto_seq >= group.next_seq:
        ranges.append((max(group.next_seq, from_seq), upto_seq))
    return ranges


def _held(group: Group, command: Settle, upto_seq: int) -> list[SeqRange]:
    """The ranges that a command means, cut to what it names."""
    return [
        (max(found.first, command.from_seq), min(found.last, upto_seq))
        for found in _meant(group, command, upto_seq)
        if found.state in OPEN and found.last >= command.from_seq
    ]


def _meant(group: Group, command: Settle, upto_seq: int) -> Iterator[Range]:
    first = max(command.from_seq, group.committed + 1)
    if command.claim_id is not None:
        token = parse_claim_id(command.claim_id)
        found = (each for each in group.ranges.between(first, upto_seq) if each.token == token and token)
        return (each for each in found if not command.consumer or each.consumer == command.consumer)
    if command.consumer:
        return (each for each in group.ranges.between(first, upto_seq) if each.consumer == command.consumer)
    at = group.ranges.at(upto_seq)
    if at is None or not at.token:
        return iter(())
    return (each for each in group.ranges.between(max(at.claim_first, first), upto_seq) if each.token == at.token)


def _losses(group: Group, command: Settle, upto_seq: int) -> list[SeqRange]:
    """The losses that were told with what a command means: all of them with the end of a claim, else up to its seq."""
    if not len(group.losses):
        return []
    tokens = {found.token for found in _meant(group, command, upto_seq) if found.token}
    ended = tokens - {found.token for found in group.ranges.between(upto_seq + 1, group.next_seq)}
    if command.claim_id is not None:
        tokens = {parse_claim_id(command.claim_id)}
    elif command.consumer:
        tokens |= {loss.token for loss in group.losses if loss.consumer == command.consumer}
    else:
        tokens |= {loss.token for loss in group.losses if loss.first <= upto_seq <= loss.last}
    found = []
    for loss in group.losses:
        last = loss.last if loss.token in ended else min(loss.last, upto_seq)
        first = max(loss.first, command.from_seq)
        if loss.token in tokens - {0} and first <= last:
            found.append((first, last))
    return found


def _size(ranges: list[SeqRange]) -> int:
    return sum(last - first + 1 for first, last in ranges)
