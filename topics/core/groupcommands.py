"""What a caller can ask of a consumer group. Decided by `core/groups.py`."""

from __future__ import annotations

from dataclasses import dataclass

from topics.groupmodel import Start
from topics.limits import BYTE_BUDGET_DEFAULT, GROUP_LIMIT_DEFAULT


@dataclass(frozen=True, slots=True)
class GroupCommand:
    topic: str
    group: str


@dataclass(frozen=True, slots=True)
class Consume(GroupCommand):
    """Lease the next records of a group to a consumer. The first contact pins where the group begins: at `start`, or at
    the earliest record. The reply is a `GroupBatch`."""

    partition: int = 0
    start: Start | None = None
    limit: int = GROUP_LIMIT_DEFAULT
    consumer: str = ""
    byte_budget: int = BYTE_BUDGET_DEFAULT
    visibility_ms: int | None = None
    """How long the consumer has the records; None is the topic's own."""
    tags: bool = False
    """Whether the records come with their tags."""


@dataclass(frozen=True, slots=True)
class AckGroup(GroupCommand):
    """The records up to `upto_seq` are done: those of the claim that holds it, of all claims of `consumer` if it is
    named, and what was never handed out. With `from_seq`, only those from there on."""

    upto_seq: int
    partition: int = 0
    consumer: str = ""
    from_seq: int = 0
    claim_id: str | None = None
    """Only what is still held under this claim."""


@dataclass(frozen=True, slots=True)
class NackGroup(GroupCommand):
    """Give records back, to be handed out again after a delay: the claim that holds `upto_seq`, or the part of it from
    `from_seq` on; without `upto_seq` all claims of `consumer`."""

    upto_seq: int | None = None
    partition: int = 0
    consumer: str = ""
    from_seq: int = 0
    claim_id: str | None = None
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class ExtendGroup(GroupCommand):
    """Keep records for `visibility_ms` from now; which ones is said as for a nack."""

    upto_seq: int | None = None
    partition: int = 0
    consumer: str = ""
    from_seq: int = 0
    claim_id: str | None = None
    visibility_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ResetGroup(GroupCommand):
    """Go on at another place, forwards or backwards: all claims and acks beyond it are void. Makes the group if it is
    not there."""

    start: Start
    partition: int = 0


@dataclass(frozen=True, slots=True)
class PauseGroup(GroupCommand):
    """Hand out nothing, or go on, in all partitions. What is out can be acked."""

    paused: bool = True


@dataclass(frozen=True, slots=True)
class DropGroup(GroupCommand):
    """Forget the group in all partitions."""


AnyGroupCommand = Consume | AckGroup | NackGroup | ExtendGroup | ResetGroup | PauseGroup | DropGroup
