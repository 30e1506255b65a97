"""Which logs a command writes to, and whether they take it: asked before anything changes.

A log whose disk failed takes nothing. One whose disk is behind takes only what makes room, or keeps a job from being
done twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from topics.core.accountcommands import OfAccounts
from topics.core.commands import (
    Abort,
    Ack,
    Acks,
    Append,
    ChangeSources,
    Claim,
    Command,
    Complete,
    Configure,
    Delete,
    Discard,
    Drop,
    DropArchive,
    DropRouter,
    Extend,
    ForgetProducer,
    Nack,
    Publish,
    PutRouter,
    Redrive,
    Release,
    ReportArchive,
    Stage,
)
from topics.core.groupcommands import AckGroup, Consume, DropGroup, ExtendGroup, NackGroup, PauseGroup, ResetGroup
from topics.core.heapcommands import (
    AckMessages,
    CancelMessage,
    DeleteDead,
    Enqueue,
    ExtendLeases,
    MakeHeap,
    MoveToDlq,
    NackMessages,
    Pop,
    PurgeHeap,
    ReleaseLeases,
    ReplayDead,
    Reprioritize,
)
from topics.core.heapplace import parse_lease_token
from topics.core.machine import Machine
from topics.core.pipelinecommands import (
    DropPipeline,
    DropTable,
    PausePipeline,
    PutPipeline,
    PutTable,
    ReportPipeline,
)
from topics.core.registry import META_LOG_ID
from topics.core.ulid import parse_message_id
from topics.engine.turn import Turn
from topics.heapmodel import LeaseRef
from topics.limits import PIPELINE_BYTES_MAX

FACT_BYTES = 1024
"""What a fact without payload may take in the commit log, at most."""


def adds_bytes(command: Command) -> bool:
    """Whether a command waits while the checkpoint is behind."""
    return isinstance(
        command, Append | Delete | Discard | Stage | Claim | Complete | Redrive | Consume | Enqueue | ReplayDead
    )


def check(machine: Machine, turn: Turn, command: Command) -> None:
    """Raises `LogStopped` or `Throttled` when a log does not take what the command would write to it."""
    match command:
        case Append() | Stage():
            size_bytes = command.records.payload_bytes
        case Complete():
            size_bytes = FACT_BYTES + sum(result.records.payload_bytes for result in command.results)
        case Enqueue():
            size_bytes = sum(len(message.payload) for message in command.messages)
        case AckMessages() | NackMessages() | ExtendLeases() | ReleaseLeases():
            for log_id in written_by(machine, command):
                turn.check_running(turn.commit_log.shard_of(log_id))
            return
        case Ack() | Acks() | Nack() | Extend() | Release() | AckGroup() | NackGroup() | ExtendGroup():
            for log_id in written_by(machine, command):
                turn.check_running(turn.commit_log.shard_of(log_id))
            return
        case PutTable() | PutPipeline() | ReportPipeline():
            size_bytes = PIPELINE_BYTES_MAX
        case _:
            size_bytes = FACT_BYTES
    for log_id in written_by(machine, command):
        turn.check(log_id, size_bytes)


def written_by(machine: Machine, command: Command) -> list[int]:
    """The logs that get a fact of a command, as far as it can be told before it is decided."""
    match command:
        case Append() | Delete():
            topic = machine.topics.get(command.topic)
            if topic is None:
                return [META_LOG_ID, machine.next_log_id + command.partition]
            return [topic.first_log_id + command.partition]
        case Stage():
            stage = machine.batches.stages.get(command.stage)
            return [META_LOG_ID, machine.next_log_id] if stage is None else [stage.log.log_id]
        case Publish():
            stages = [machine.batches.stages.get(name) for name in command.stages]
            topics = [(machine.topics.get(stage.topic), stage.partition) for stage in stages if stage is not None]
            return [META_LOG_ID, *(topic.first_log_id + at for topic, at in topics if topic is not None)]
        case Configure():
            topic = machine.topics.get(command.topic)
            return [META_LOG_ID, *(topic.log_ids() if topic is not None else ())]
        case ForgetProducer():
            named = machine.topics.get(command.topic) if command.topic is not None else None
            return [META_LOG_ID] if command.topic is None else list(named.log_ids() if named is not None else ())
        case Drop() | Abort() | ChangeSources() | PutRouter() | DropRouter():
            return [META_LOG_ID]
        case PutTable() | DropTable() | PutPipeline() | DropPipeline() | PausePipeline() | ReportPipeline():
            return [META_LOG_ID]
        case OfAccounts():
            return [META_LOG_ID]
        case Complete():
            results = [log_id for result in command.results for log_id in written_by(machine, result)]
            return [*_existing(machine, command.topic, command.partition), *results]
        case DropArchive():
            topic = machine.topics.get(command.topic)
            return [] if topic is None else list(topic.log_ids())
        case PauseGroup() | DropGroup():
            topic = machine.topics.get(command.topic)
            return [] if topic is None else list(topic.log_ids())
        case Consume() | AckGroup() | NackGroup() | ExtendGroup() | ResetGroup():
            return _existing(machine, command.topic, command.partition)
        case Claim() | Ack() | Acks() | Nack() | Extend() | Release() | Redrive() | Discard() | ReportArchive():
            return _existing(machine, command.topic, command.partition)
        case Enqueue():
            return _existing(machine, command.topic, command.partition)
        case MakeHeap():
            return [META_LOG_ID]
        case AckMessages() | NackMessages() | ExtendLeases():
            return _of_leases(machine, command.topic, command.leases)
        case MoveToDlq() | Reprioritize() | CancelMessage():
            place = parse_message_id(command.message_id)
            return [] if place is None else _existing(machine, command.topic, place.partition)
        case Pop() | ReleaseLeases() | PurgeHeap():
            topic = machine.topics.get(command.topic)
            return [] if topic is None else list(topic.log_ids())
        case ReplayDead() | DeleteDead():
            topic = machine.topics.get(command.topic)
            letters = None if topic is None else machine.topics.get(topic.config.dead_letter or "")
            return [] if letters is None else list(letters.log_ids())
        case _:
            assert_never(command)


def _of_leases(machine: Machine, topic_name: str, leases: Sequence[LeaseRef]) -> list[int]:
    """The logs that hold leases; what is no lease is for the command to refuse."""
    topic = machine.topics.get(topic_name)
    parsed = [parse_lease_token(ref.lease_token) for ref in leases]
    partitions = {found[1] for found in parsed if found is not None}
    if topic is None:
        return []
    return [topic.first_log_id + partition for partition in partitions if partition < topic.config.partitions]


def _existing(machine: Machine, topic_name: str, partition: int) -> list[int]:
    topic = machine.topics.get(topic_name)
    return [] if topic is None else [topic.first_log_id + partition]
