"""Which module decides which command of a heap."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from topics.core import config as configs
from topics.core import heapletters, heapmessages, heapsettle
from topics.core.enqueue import enqueue
from topics.core.heapcommands import (
    AckMessages,
    CancelMessage,
    DeleteDead,
    Enqueue,
    ExtendLeases,
    HeapCommand,
    MakeHeap,
    MoveToDlq,
    NackMessages,
    Pop,
    PurgeHeap,
    ReleaseLeases,
    ReplayDead,
    Reprioritize,
)
from topics.core.heapview import info
from topics.core.names import check_topic
from topics.core.outcome import Outcome
from topics.core.pop import pop
from topics.errors import TopicExists
from topics.model import TopicType

if TYPE_CHECKING:
    from topics.core.machine import Machine


def decide(machine: Machine, command: HeapCommand, now_ms: int) -> Outcome:
    match command:
        case Enqueue():
            return enqueue(machine, command, now_ms)
        case Pop():
            return pop(machine, command, now_ms)
        case AckMessages():
            return heapsettle.ack(machine, command, now_ms)
        case NackMessages():
            return heapsettle.nack(machine, command, now_ms)
        case ExtendLeases():
            return heapsettle.extend(machine, command, now_ms)
        case ReleaseLeases():
            return heapsettle.release(machine, command, now_ms)
        case PurgeHeap():
            return heapmessages.purge(machine, command, now_ms)
        case MoveToDlq():
            return heapmessages.move_to_dlq(machine, command, now_ms)
        case Reprioritize():
            return heapmessages.reprioritize(machine, command, now_ms)
        case CancelMessage():
            return heapmessages.cancel(machine, command, now_ms)
        case ReplayDead():
            return heapletters.replay(machine, command, now_ms)
        case DeleteDead():
            return heapletters.delete(machine, command, now_ms)
        case MakeHeap():
            return _make(machine, command, now_ms)
        case _:
            assert_never(command)


def _make(machine: Machine, command: MakeHeap, now_ms: int) -> Outcome:
    """The reply is a `HeapInfo`."""
    check_topic(command.topic)
    found = machine.topics.get(command.topic)
    if found is not None:
        kind = found.config.type.value
        raise TopicExists(
            f'topic "{command.topic}" already exists as a {kind}; change its config, or choose another name',
            topic=found.name,
            type=kind,
        )
    config = configs.build(command.topic, {**command.fields, "type": TopicType.HEAP.value})
    topic, facts = machine.create_whole(command.topic, config, now_ms)
    return Outcome(info(topic), facts, must_sync=True)
