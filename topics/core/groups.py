"""Deciding what is asked of consumer groups: which command goes where, and what all of them share.

A command is checked completely before the first fact is applied. What it leads to is stored in the log of its
partition, behind the floors that time has moved (`core/log.py`), so that a replay finds the group as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from topics.core.facts import FloorsMoved, encode
from topics.core.group import Group
from topics.core.groupcommands import DropGroup, GroupCommand, PauseGroup, ResetGroup
from topics.core.groupfacts import AnyGroupFact, GroupDropped, GroupPaused, GroupPlaced
from topics.core.log import Log
from topics.core.names import check_group
from topics.core.outcome import Outcome, StoredFact
from topics.core.read import cursor_at
from topics.core.registry import Topic
from topics.errors import GroupNotFound, InvalidRequest, Throttled
from topics.groupmodel import DroppedGroup, PausedGroup, PlacedGroup, Start, StartKind
from topics.limits import GROUPS_MAX, LEASE_MS_MAX, LEASE_MS_MIN, NODE_BYTES_MAX
from topics.model import Durability

if TYPE_CHECKING:
    from topics.core.machine import Machine


def find_log(machine: Machine, topic_name: str, partition: int, now_ms: int) -> tuple[Topic, Log]:
    topic = machine.topic(topic_name)
    log = machine.log(topic, partition)
    log.observe(topic.config, now_ms)
    return topic, log


def find_group(machine: Machine, command: GroupCommand, partition: int, now_ms: int) -> tuple[Topic, Log, Group]:
    """A group as it is by now."""
    check_group(command.group)
    topic, log = find_log(machine, command.topic, partition, now_ms)
    group = log.groups.get(command.group) if log.has_groups else None
    if group is None:
        where = f" in partition {partition}" if topic.config.partitions > 1 else ""
        raise GroupNotFound(
            f'group "{command.group}" has no position in topic "{topic.name}"{where}; consume, ack or reset it first',
            topic=topic.name,
            group=command.group,
            partition=partition,
        )
    observe(log, group, now_ms)
    return topic, log, group


def observe(log: Log, group: Group, now_ms: int) -> None:
    """Let the log and the time act on a group."""
    group.observe(log)
    group.ranges.expire(now_ms)
    log.groups.hold(group, log)


def store(topic: Topic, log: Log, facts: Sequence[AnyGroupFact]) -> list[StoredFact]:
    """Facts of groups as they are stored: not at all where nothing is."""
    if not facts or topic.config.durability is Durability.EPHEMERAL:
        return []
    return [*store_floors(topic, log), *(StoredFact(log.log_id, False, [encode(fact)]) for fact in facts)]


def store_floors(topic: Topic, log: Log) -> list[StoredFact]:
    """Where the floors are, if time moved them and no fact says so."""
    if not log.floors_unstored or topic.config.durability is Durability.EPHEMERAL:
        return []
    return [StoredFact(log.log_id, False, [encode(FloorsMoved.of(log.take_floors()))])]


def visibility_ms(machine: Machine, topic: Topic, asked_ms: int | None) -> int:
    """How long a claim lasts: as asked for, else as the topic says, else as the server does."""
    if asked_ms is not None and asked_ms < 0:
        raise InvalidRequest(
            "visibility_ms must not be negative", field="visibility_ms", expected="a whole number from 0"
        )
    chosen_ms = asked_ms if asked_ms is not None else topic.config.visibility_ms
    return max(LEASE_MS_MIN, min(chosen_ms or machine.bounds.group_visibility_ms, LEASE_MS_MAX))


def check_consumer(consumer: str) -> None:
    if len(consumer.encode("utf-8", "replace")) > NODE_BYTES_MAX:
        expected = f"a name of at most {NODE_BYTES_MAX} bytes"
        raise InvalidRequest(f"consumer must be {expected}", field="consumer", expected=expected)


def check_room(log: Log, name: str) -> None:
    """There may be one more group."""
    if len(log.groups) >= GROUPS_MAX:
        raise Throttled(
            f'{GROUPS_MAX} groups read topic "{log.topic}", as many as may; drop one that is not needed',
            limit="groups",
            max=GROUPS_MAX,
            group=name,
        )


def cursor_of(log: Log, start: Start) -> int:
    """The cursor that a start stands for."""
    if start.value < 0:
        raise InvalidRequest(f"{start.kind.value} must not be negative", field="from", expected="a whole number from 0")
    match start.kind:
        case StartKind.EARLIEST:
            return log.earliest_seq() - 1
        case StartKind.LATEST:
            return log.visible_seq
        case StartKind.SEQ:
            return min(max(start.value - 1, 0), log.visible_seq)
        case StartKind.TS:
            return cursor_at(log, start.value)
        case _:
            assert_never(start.kind)


# ---- commands that are about the group itself


def reset(machine: Machine, command: ResetGroup, now_ms: int) -> Outcome:
    check_group(command.group)
    topic, log = find_log(machine, command.topic, command.partition, now_ms)
    created = log.groups.get(command.group) is None
    if created:
        check_room(log, command.group)
    fact = GroupPlaced(command.group, cursor_of(log, command.start), now_ms)
    facts = store(topic, log, [fact])
    log.groups.apply(fact, log, now_ms)
    group = log.groups.get(command.group)
    assert group is not None
    reply = PlacedGroup(
        topic=topic.name,
        partition=log.partition,
        group=group.name,
        created=created,
        committed_seq=group.committed,
        head_seq=log.visible_seq,
    )
    return Outcome(reply, facts, bool(facts), log, durability=topic.config.durability)


def pause(machine: Machine, command: PauseGroup, now_ms: int) -> Outcome:
    logs = _logs_with(machine, command)
    topic = machine.topic(command.topic)
    if not logs:
        raise GroupNotFound(
            f'topic "{topic.name}" has no group "{command.group}"', topic=topic.name, group=command.group
        )
    fact = GroupPaused(command.group, command.paused)
    facts = [stored for log in logs for stored in store(topic, log, [fact])]
    for log in logs:
        log.groups.apply(fact, log, now_ms)
    reply = PausedGroup(topic=topic.name, group=command.group, paused=command.paused)
    return Outcome(reply, facts, bool(facts), logs[0], durability=topic.config.durability)


def drop(machine: Machine, command: DropGroup, now_ms: int) -> Outcome:
    logs = _logs_with(machine, command)
    topic = machine.topic(command.topic)
    fact = GroupDropped(command.group)
    facts = [stored for log in logs for stored in store(topic, log, [fact])]
    for log in logs:
        log.groups.apply(fact, log, now_ms)
    reply = DroppedGroup(topic=topic.name, group=command.group, deleted=bool(logs))
    return Outcome(reply, facts, bool(facts), logs[0] if logs else None, durability=topic.config.durability)


def _logs_with(machine: Machine, command: GroupCommand) -> list[Log]:
    check_group(command.group)
    topic = machine.topic(command.topic)
    logs = (machine.logs[log_id] for log_id in topic.log_ids())
    return [log for log in logs if log.has_groups and log.groups.get(command.group) is not None]
