"""Dead letters: jobs that were delivered as often as their queue allows, in a topic of their own.

A dead letter is the job's record with four stamps in its meta, all strings: where it came from, its seq there, how
often it was delivered, and why it is here. Its tag, node and data are as they were. The topic is an ordinary one. It is
made together with the config that names it, and again on a dead letter when somebody has deleted it, unless the queue's
`auto_create` forbids it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from topics.core import move, room
from topics.core.auditchain import INTERNAL_TOPICS
from topics.core.copies import ChangeMeta, Meta, copies, fitting
from topics.core.facts import MovePart
from topics.core.log import Log
from topics.core.outcome import BegunMove
from topics.core.registry import Topic
from topics.errors import TopicNotFound
from topics.limits import MOVE_BYTES_MAX
from topics.model import Durability, TopicConfig, TopicType

if TYPE_CHECKING:
    from topics.core.machine import Machine

PREFIX = "$dead_letter_"
FROM = f"{PREFIX}from"
DELIVERIES = f"{PREFIX}deliveries"
SOURCE_SEQ = f"{PREFIX}src_seq"
REASON = f"{PREFIX}reason"

MAX_DELIVERIES = "max_deliveries"
"""The reason of a job that was delivered as often as it may be."""


def missing(machine: Machine, config: TopicConfig) -> str | None:
    """The dead-letter topic that is to be made for a topic with this config; None when it is there, or may not be."""
    name = config.dead_letter
    if name is None or not config.auto_create or name in INTERNAL_TOPICS:
        return None
    return name if machine.topics.get(name) is None else None


def letters_config(config: TopicConfig) -> TopicConfig:
    """The config of a dead-letter topic that is made for a topic with this one.

    An ephemeral topic gets one that is ephemeral as well, because nothing of its records may be in a file.
    """
    made = TopicConfig()
    if config.type is TopicType.HEAP:
        durability = Durability.FSYNC if config.durability is Durability.FSYNC else Durability.DISK
        made = TopicConfig(ttl_ms=config.dead_letter_ttl_ms or config.retention_ms, durability=durability)
    if config.durability is Durability.EPHEMERAL:
        made = msgspec.structs.replace(made, durability=Durability.EPHEMERAL)
    return made


def bury(machine: Machine, topic: Topic, log: Log, seqs: list[int], reason: str, now_ms: int) -> BegunMove:
    """Decide that jobs, as many as may move together, go to the dead-letter topic.

    Raises, and changes nothing, when it does not take them.
    """
    assert log.queue is not None
    leases = log.queue.leases

    def stamp(seq: int, meta: Meta) -> Meta:
        return meta | stamps(topic.name, seq, leases.deliveries(seq), reason)

    part, seqs = letters(machine, topic, log, seqs, stamp, now_ms)
    return move.decide(machine, log, seqs, [part], dead_letter=True)


def stamps(topic: str, seq: int, deliveries: int, reason: str) -> Meta:
    return {FROM: topic, DELIVERIES: str(deliveries), SOURCE_SEQ: str(seq), REASON: reason}


def letters(
    machine: Machine,
    topic: Topic,
    log: Log,
    seqs: list[int],
    stamp: ChangeMeta,
    now_ms: int,
) -> tuple[MovePart, list[int]]:
    """Records for the dead-letter topic, and which ones: the first, as many as may move together."""
    name = topic.config.dead_letter
    assert name is not None
    target = machine.topics.get(name)
    if target is None and not topic.config.auto_create:
        raise TopicNotFound(
            f'dead-letter topic "{name}" does not exist, and "{topic.name}" has auto_create false: create it',
            topic=name,
        )
    seqs = seqs[: fitting(log, seqs, MOVE_BYTES_MAX)]
    records = copies(log, seqs, stamp)
    partition = log.partition % target.config.partitions if target is not None else 0
    target_log = machine.log(target, partition) if target is not None else None
    if target is not None and target_log is not None:
        target_log.observe(target.config, now_ms)
        room.check_caps(name, target.config, target_log, records)
    else:
        machine.check_topic_count()
    return move.part(machine, name, partition, target_log, records, now_ms, letters_config(topic.config)), seqs


def unstamped(meta: Meta) -> Meta:
    """Meta as it was before the record was a dead letter."""
    return {key: value for key, value in meta.items() if not key.startswith(PREFIX)}
