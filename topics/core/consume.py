"""Handing the next records of a group to a consumer.

What was handed out before and came back goes first, lowest first, then what never was. One consume is one range: text
that is cut as it is stored, one claim, one fact. Ranges that were delivered as often as the topic allows go to its
dead-letter topic on the way; ranges of which nothing is left are passed over. A loss is told with whatever is handed
out, or alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topics.core import groupletters, live
from topics.core.cut import PLAIN, Shape, cut
from topics.core.group import Group, claim_id
from topics.core.groupcommands import Consume
from topics.core.groupfacts import AnyGroupFact, GroupLeased, GroupPlaced
from topics.core.grouplosses import Loss
from topics.core.groupranges import Range
from topics.core.groups import check_consumer, check_room, cursor_of, find_log, store, visibility_ms
from topics.core.log import Log
from topics.core.names import check_group
from topics.core.outcome import Outcome
from topics.core.read import ReadPlan, plan_read
from topics.core.registry import Topic
from topics.errors import InvalidRequest, Throttled
from topics.groupmodel import EARLIEST, GroupBatch
from topics.limits import BYTE_BUDGET_DEFAULT, BYTE_BUDGET_MAX, DEAD_LETTERS_PER_PASS_MAX, GROUP_RANGES_MAX
from topics.model import Tombstone

if TYPE_CHECKING:
    from topics.core.machine import Machine

_WITH_TAGS = Shape(tags=True)


@dataclass(slots=True)
class _Found:
    """What there is to hand out."""

    plan: ReadPlan | None = None
    first_seq: int = 0
    last_seq: int = 0
    deliveries: int = 0
    exhausted: list[Range] = field(default_factory=list)
    """Delivered as often as they may be."""
    empty: list[tuple[int, int]] = field(default_factory=list)
    """Nothing is left of these."""


def consume(machine: Machine, command: Consume, now_ms: int) -> Outcome:
    """The reply is a `GroupBatch`."""
    check_consume(command)
    topic, log = find_log(machine, command.topic, command.partition, now_ms)
    lease_ms = visibility_ms(machine, topic, command.visibility_ms)
    facts: list[AnyGroupFact] = []
    group = log.groups.get(command.group) if log.has_groups else None
    is_new = group is None
    if group is None:
        check_room(log, command.group)
        placed = GroupPlaced(command.group, cursor_of(log, command.start or EARLIEST), now_ms)
        facts.append(placed)
        group = Group(command.group, placed.cursor, now_ms)
    group.observe(log)
    group.ranges.expire(now_ms)
    found = _Found() if group.paused else _find(machine, topic, log, group, command)
    # From here on nothing is refused.
    if is_new:
        log.groups.add(group, log)
    for first, last in found.empty:
        group.ranges.ack(first, last)
    moves = groupletters.bury(machine, topic, log, group, found.exhausted, facts, now_ms)
    loss = None if group.paused else group.losses.untold(now_ms)
    batch = _hand_out(machine, log, group, command, found, loss, facts, now_ms, lease_ms)
    log.groups.hold(group, log)
    stored = store(topic, log, facts)
    must_sync = bool(stored) and (is_new or topic.config.leases_durable)
    return Outcome(batch, stored, must_sync, log, durability=topic.config.durability, moves=moves)


def check_consume(command: Consume) -> None:
    """What can be told to be wrong before anything is looked up."""
    check_group(command.group)
    check_consumer(command.consumer)
    if command.limit < 1:
        raise InvalidRequest(
            f"limit must be 1 or more, not {command.limit}", field="limit", expected="a whole number from 1"
        )


def _find(machine: Machine, topic: Topic, log: Log, group: Group, command: Consume) -> _Found:
    """Look for what may be handed out; time and what is gone are all that changes the group here."""
    found = _Found()
    limit = min(command.limit, machine.bounds.claim_max)
    bytes_max = min(command.byte_budget or BYTE_BUDGET_DEFAULT, BYTE_BUDGET_MAX)
    taken: list[int] = []
    try:
        while (free := group.ranges.take_free()) is not None:
            taken.append(free.first)
            if groupletters.is_exhausted(topic, free):
                if live.next_live(log, free.first) > free.last:
                    # Nothing of it is left to bury.
                    found.empty.append((free.first, free.last))
                    continue
                found.exhausted.append(free)
                if len(found.exhausted) >= DEAD_LETTERS_PER_PASS_MAX:
                    break
                continue
            last = group.ranges.free_upto(free)
            plan = plan_read(log, min(last, log.visible_seq), free.first - 1, limit, bytes_max)
            if plan.spans:
                found.plan, found.deliveries = plan, free.deliveries + 1
                found.first_seq, found.last_seq = free.first, plan.next_from_seq
                return found
            found.empty.append((free.first, free.last))
    finally:
        group.ranges.give_back(taken)
    group.skip_gone(log)
    if group.next_seq <= log.visible_seq:
        if len(group.ranges) >= GROUP_RANGES_MAX:
            raise Throttled(
                f'group "{group.name}" has {len(group.ranges)} ranges out, as many as it may; ack some, or reset it',
                limit="group_ranges",
                max=GROUP_RANGES_MAX,
                retry_after_ms=1000,
            )
        found.plan = plan_read(log, log.visible_seq, group.next_seq - 1, limit, bytes_max)
        found.first_seq, found.last_seq, found.deliveries = group.next_seq, found.plan.next_from_seq, 1
    return found


def _hand_out(
    machine: Machine,
    log: Log,
    group: Group,
    command: Consume,
    found: _Found,
    loss: Loss | None,
    facts: list[AnyGroupFact],
    now_ms: int,
    lease_ms: int,
) -> GroupBatch:
    deadline_ms = now_ms + lease_ms
    body, count, token = b"", 0, 0
    tombstone = None
    if found.plan is not None:
        spans = found.plan.spans
        body = cut(spans, _WITH_TAGS if command.tags else PLAIN)
        count = sum(span.end - span.start if span.chosen is None else len(span.chosen) for span in spans)
    first_seq, last_seq = found.first_seq, found.last_seq
    if loss is not None:
        missed = loss.last - loss.first + 1
        tombstone = Tombstone(loss.first, loss.last, loss.reason, missed, log.earliest_seq(), log.visible_seq)
    if found.plan is not None or loss is not None:
        token = machine.next_token(1)
        told = [] if loss is None else [(loss.first, loss.last)]
        fact = GroupLeased(group.name, first_seq, last_seq, deadline_ms + 1, token, command.consumer, told)
        log.groups.apply(fact, log)
        facts.append(fact)
        if found.plan is None and loss is not None:
            first_seq, last_seq = loss.first, loss.last
    return GroupBatch(
        topic=log.topic,
        partition=log.partition,
        group=group.name,
        consumer=command.consumer,
        body=body,
        count=count,
        first_seq=first_seq,
        last_seq=last_seq,
        claim_id=claim_id(token) if token else "",
        deadline=deadline_ms if token else 0,
        visibility_ms=lease_ms if token else 0,
        deliveries=found.deliveries,
        committed_seq=group.committed,
        head_seq=log.visible_seq,
        tombstone=tombstone,
        paused=group.paused,
    )
