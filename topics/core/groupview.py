"""How a group stands, for people and programs to look at. Costs what its ranges cost, which are bounded."""

from __future__ import annotations

from topics.core import live
from topics.core.copies import block_of
from topics.core.group import Group, claim_id
from topics.core.groupranges import ACKED, CLAIMED, DELAYED, FREE, LEAVING, Range
from topics.core.log import Log
from topics.errors import Damaged
from topics.groupmodel import GroupMember, GroupRange, GroupState, RangeKind
from topics.limits import GROUP_SHOWN_MAX
from topics.model import Gap, TopicConfig

_KINDS = {
    CLAIMED: RangeKind.CLAIMED,
    DELAYED: RangeKind.DELAYED,
    FREE: RangeKind.FREE,
    ACKED: RangeKind.ACKED,
    LEAVING: RangeKind.LEAVING,
}


def state_of(log: Log, group: Group, config: TopicConfig) -> GroupState:
    """The caller has let time act on log and group."""
    sizes = dict.fromkeys(_KINDS, 0)
    for found in group.ranges:
        sizes[found.state] += found.size
    members = _members(group)
    oldest = live.next_live(log, group.committed + 1)
    has_oldest = oldest <= log.visible_seq
    return GroupState(
        topic=log.topic,
        partition=log.partition,
        group=group.name,
        start_seq=group.start_seq,
        committed_seq=group.committed,
        next_seq=group.next_seq,
        head_seq=max(log.visible_seq, group.committed),
        earliest_seq=log.earliest_seq(),
        in_flight=sizes[CLAIMED] + sizes[LEAVING],
        waiting=sizes[FREE] + sizes[DELAYED],
        acked_ahead=sizes[ACKED],
        oldest_unacked_seq=oldest if has_oldest else None,
        oldest_unacked_ts=ts_of(log, oldest) if has_oldest else None,
        paused=group.paused,
        updated_ms=group.updated_ms,
        range_count=len(group.ranges),
        ranges=tuple(_shown(found) for found, _ in zip(group.ranges, range(GROUP_SHOWN_MAX), strict=False)),
        member_count=len(members),
        members=tuple(members[:GROUP_SHOWN_MAX]),
        losses=tuple(Gap(loss.first, loss.last, loss.reason) for loss in group.losses),
        lost_count=group.lost_count,
        dead_lettered=group.dead_lettered,
        dead_letter_error=group.dead_letter_error,
        protected=group.name in config.protect_groups,
    )


def _shown(found: Range) -> GroupRange:
    return GroupRange(
        first_seq=found.first,
        last_seq=found.last,
        kind=_KINDS[found.state],
        deliveries=found.deliveries,
        consumer=found.consumer,
        claim_id=claim_id(found.token) if found.token else "",
        deadline=found.due_ms - 1 if found.state == CLAIMED else 0,
    )


def _members(group: Group) -> list[GroupMember]:
    claims: dict[str, set[int]] = {}
    seqs: dict[str, int] = {}
    deadlines: dict[str, int] = {}
    for found in group.ranges:
        if found.state == CLAIMED:
            name = found.consumer
            claims.setdefault(name, set()).add(found.token)
            seqs[name] = seqs.get(name, 0) + found.size
            deadlines[name] = min(deadlines.get(name, found.due_ms), found.due_ms)
    return [
        GroupMember(consumer=name, claims=len(tokens), seqs=seqs[name], deadline=deadlines[name] - 1)
        for name, tokens in sorted(claims.items())
    ]


def ts_of(log: Log, seq: int) -> int | None:
    """When a record was written; None when it cannot be read."""
    try:
        block = block_of(log, seq)
    except Damaged:
        return None
    return block.ts(seq - block.first_seq)
