"""Which module decides which command about accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from topics.core import managedkeys, people, signins
from topics.core.accountcommands import (
    AccountCommand,
    AddKey,
    AddUser,
    BeginSession,
    ChangeUser,
    DropUser,
    EndSession,
    NoteKeysUsed,
    OpenAudit,
    RefreshSession,
    RevokeKey,
    UseLink,
)
from topics.core.auditchain import AUDIT_TOPIC
from topics.core.outcome import Outcome
from topics.limits import AUDIT_BYTES_MAX
from topics.model import Durability, TopicConfig

if TYPE_CHECKING:
    from topics.core.machine import Machine


def decide(machine: Machine, command: AccountCommand, now_ms: int) -> Outcome:
    match command:
        case AddUser():
            return people.add(machine, command, now_ms)
        case ChangeUser():
            return people.change(machine, command, now_ms)
        case UseLink():
            return people.use_link(machine, command, now_ms)
        case DropUser():
            return people.drop(machine, command, now_ms)
        case AddKey():
            return managedkeys.add(machine, command, now_ms)
        case RevokeKey():
            return managedkeys.revoke(machine, command, now_ms)
        case NoteKeysUsed():
            return managedkeys.note_used(machine, command, now_ms)
        case BeginSession():
            return signins.begin(machine, command, now_ms)
        case RefreshSession():
            return signins.refresh(machine, command, now_ms)
        case EndSession():
            return signins.end(machine, command)
        case OpenAudit():
            return _open_audit(machine, now_ms)
        case _:
            assert_never(command)


def _open_audit(machine: Machine, now_ms: int) -> Outcome:
    if machine.topics.named(AUDIT_TOPIC) is not None:
        return Outcome(None)
    config = TopicConfig(durability=Durability.DISK, cap_bytes=AUDIT_BYTES_MAX)
    _, fact = machine.create(AUDIT_TOPIC, config, now_ms)
    return Outcome(None, [fact], must_sync=True)
