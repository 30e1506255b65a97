"""Which module decides which command, of those that are about taking records: by jobs, archives and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import archiving, groups, groupsettle, heapverbs, settle
from topics.core.claim import claim
from topics.core.commands import (
    Ack,
    Acks,
    Claim,
    Complete,
    Discard,
    DropArchive,
    Extend,
    Nack,
    Redrive,
    Release,
    ReportArchive,
    TakingCommand,
)
from topics.core.complete import complete
from topics.core.consume import consume
from topics.core.discard import discard
from topics.core.groupcommands import (
    AckGroup,
    Consume,
    DropGroup,
    ExtendGroup,
    NackGroup,
    PauseGroup,
    ResetGroup,
)
from topics.core.outcome import Outcome
from topics.core.redrive import redrive

if TYPE_CHECKING:
    from topics.core.machine import Machine


def decide(machine: Machine, command: TakingCommand, now_ms: int) -> Outcome:
    match command:
        case Claim():
            return claim(machine, command, now_ms)
        case Ack():
            return settle.ack(machine, command, now_ms)
        case Acks():
            return settle.ack_together(machine, command, now_ms)
        case Nack():
            return settle.nack(machine, command, now_ms)
        case Extend():
            return settle.extend(machine, command, now_ms)
        case Release():
            return settle.release(machine, command, now_ms)
        case Complete():
            return complete(machine, command, now_ms)
        case Redrive():
            return redrive(machine, command, now_ms)
        case Discard():
            return discard(machine, command, now_ms)
        case ReportArchive():
            return archiving.report(machine, command, now_ms)
        case DropArchive():
            return archiving.drop(machine, command, now_ms)
        case Consume():
            return consume(machine, command, now_ms)
        case AckGroup():
            return groupsettle.ack(machine, command, now_ms)
        case NackGroup():
            return groupsettle.nack(machine, command, now_ms)
        case ExtendGroup():
            return groupsettle.extend(machine, command, now_ms)
        case ResetGroup():
            return groups.reset(machine, command, now_ms)
        case PauseGroup():
            return groups.pause(machine, command, now_ms)
        case DropGroup():
            return groups.drop(machine, command, now_ms)
        case _:
            return heapverbs.decide(machine, command, now_ms)
