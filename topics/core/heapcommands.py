"""What a caller can ask a heap for that changes state. Decided by `core/enqueue.py`, `core/pop.py` and those beside
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from topics.heapmodel import EVERY_LETTER, DeadFilter, LeaseRef, NewMessage


@dataclass(frozen=True, slots=True)
class MakeHeap:
    """Create a heap; `TopicExists` when there is a topic of that name. `fields` are those of a topic's config."""

    topic: str
    fields: Mapping[str, object]


class Enqueue(msgspec.Struct, frozen=True):
    """Put messages into one partition of a heap, all or none; the reply is an `EnqueuedBatch`.

    `engine.heaps` chooses the partition; it is what callers use.
    """

    topic: str
    messages: Sequence[NewMessage]
    partition: int
    transaction: str = ""
    """Under which these are remembered together; empty for none."""
    is_alone: bool = False
    """One message, whose reply is `Enqueued`."""


class Popper(msgspec.Struct, frozen=True):
    """One consumer that asks for messages, for `visibility_ms` or as long as its heap says."""

    consumer: str
    max: int = 1
    visibility_ms: int | None = None
    connection: int = 0
    """The stream that the messages go out on; what it holds can be released as a whole. 0 is none."""


class Pop(msgspec.Struct, frozen=True):
    """Lease messages, best first, dealt in turn to all who ask; the reply is a tuple of `PoppedMessages`."""

    topic: str
    poppers: Sequence[Popper]
    partitions: Sequence[int] = ()
    """Only these; empty is all."""
    without: Sequence[int] = ()
    """Not these, whose disk failed."""


class AckMessages(msgspec.Struct, frozen=True):
    """Messages are done, and with that deleted. `strict` refuses the whole when one lease is not there."""

    topic: str
    leases: Sequence[LeaseRef]
    strict: bool = True


@dataclass(frozen=True, slots=True)
class NackMessages:
    """Messages were not done: each rests for `backoff_ms`, or longer from time to time, or dies.

    `undelivered`: nobody has seen them; they are ready at once and no attempt counts.
    """

    topic: str
    leases: Sequence[LeaseRef]
    backoff_ms: int | None = None
    reason: str = ""
    undelivered: bool = False
    strict: bool = True


@dataclass(frozen=True, slots=True)
class ExtendLeases:
    """Leases run out `extension_ms` from now."""

    topic: str
    leases: Sequence[LeaseRef]
    extension_ms: int
    strict: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseLeases:
    """What a stream holds, or everybody when `connection` is None, is ready at once, and no attempt counts."""

    topic: str
    connection: int | None = None


@dataclass(frozen=True, slots=True)
class PurgeHeap:
    """Delete all messages of a heap, or of one partition, leased ones included."""

    topic: str
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class MoveToDlq:
    topic: str
    message_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reprioritize:
    """Give a message that nobody has another priority."""

    topic: str
    message_id: str
    priority: int


@dataclass(frozen=True, slots=True)
class CancelMessage:
    """Delete a message that nobody has."""

    topic: str
    message_id: str


@dataclass(frozen=True, slots=True)
class ReplayDead:
    """Dead letters of a heap go back into it, with no attempt counted: one bounded step, see `DeadStep`."""

    topic: str
    chosen: DeadFilter = EVERY_LETTER
    cursor: str = ""
    limit: int = 256


@dataclass(frozen=True, slots=True)
class DeleteDead:
    """Dead letters of a heap are deleted: one bounded step, see `DeadStep`."""

    topic: str
    chosen: DeadFilter = EVERY_LETTER
    cursor: str = ""
    limit: int = 256


SettlingCommand = AckMessages | NackMessages | ExtendLeases | ReleaseLeases
MessageCommand = PurgeHeap | MoveToDlq | Reprioritize | CancelMessage
DeadCommand = ReplayDead | DeleteDead
HeapCommand = MakeHeap | Enqueue | Pop | SettlingCommand | MessageCommand | DeadCommand
