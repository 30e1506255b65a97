"""The values of heaps that users see: config and numbers, messages on their way in and out, what each verb answers.

A heap is a topic of type `heap`: partitioned, taken from best first. All values are frozen, none of them does anything.
Times are milliseconds since 1970, durations are milliseconds; names are those of the `/v1` wire where it has them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from topics import limits
from topics.model import Durability, Mode


class HeapConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a heap was set up. `topics/core/config.py` has the same fields by the names in `docs/HEAPS.md`."""

    mode: Mode = Mode.MIN
    partitions: int = 1
    replication_factor: int = 1
    """As asked for. One machine keeps one copy: `HeapInfo.replicas` says how many there are."""
    top_k_bound: int = limits.HEAP_TOP_K_DEFAULT
    retention_ms: int = 0
    """How long dead letters are kept unless `dlq_retention_ms` says otherwise; 0 is for ever."""
    visibility_timeout_ms: int = limits.HEAP_LEASE_MS_DEFAULT
    max_retries: int = limits.HEAP_MAX_RETRIES_DEFAULT
    max_payload_bytes: int = limits.HEAP_PAYLOAD_BYTES_DEFAULT
    compression: bool = False
    dlq_enabled: bool = True
    dlq_topic: str | None = None
    """Where dead letters go; None when they go nowhere."""
    dlq_retention_ms: int = 0
    durability: Durability = Durability.FSYNC


class NewMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message to enqueue.

    With `producer_id` and `sequence` it is enqueued once, however often it is sent. `partition` chooses one by number,
    `partition_key` by hash; without either the message goes anywhere.
    """

    payload: bytes = b""
    priority: int = 0
    partition_key: str | None = None
    partition: int | None = None
    producer_id: str | None = None
    epoch: int = 0
    sequence: int | None = None
    max_retries: int | None = None
    """None is as the heap says."""
    delay_ms: int = 0
    """Nobody gets it for so long."""
    is_json: bool = False
    """The payload is JSON text: shown as JSON to readers of the topic, if it parses."""
    meta: dict[str, str] | None = None
    """Strings that travel along, a trace for example. Names that begin with `$` are taken."""


class Enqueued(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a message is. When `duplicate`, that was said before, and nothing was added."""

    message_id: str
    partition: int
    duplicate: bool = False


class EnqueuedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a batch: one `Enqueued` a message, in the order they were given."""

    messages: tuple[Enqueued, ...]
    transaction_id: str = ""

    @property
    def all_duplicates(self) -> bool:
        return all(message.duplicate for message in self.messages)


class PoppedMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message that is leased to a consumer up to and including `lease_deadline_ms`."""

    message_id: str
    topic: str
    partition: int
    payload: bytes
    priority: int
    enqueued_ms: int
    lease_token: str
    lease_deadline_ms: int
    attempts: int
    """Deliveries that failed before this one."""
    max_retries: int
    producer_id: str | None = None
    epoch: int | None = None
    sequence: int | None = None
    is_json: bool = False
    meta: dict[str, str] | None = None


class PoppedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a pop, best first; empty when nothing came in time."""

    topic: str
    messages: tuple[PoppedMessage, ...] = ()


class MessageState(StrEnum):
    """What has become of a message."""

    READY = "ready"
    DELAYED = "delayed"
    """Enqueued with a delay, or resting after a delivery that failed."""
    LEASED = "leased"
    LEAVING = "leaving"
    """On its way to the dead letters."""
    DEAD = "dead"


class PeekedMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message that is looked at and not taken."""

    message_id: str
    topic: str
    partition: int
    payload: bytes
    priority: int
    enqueued_ms: int
    attempts: int
    max_retries: int
    state: MessageState
    lease_deadline_ms: int | None = None
    not_before_ms: int | None = None
    """Of one that is delayed: when it is ready."""
    producer_id: str | None = None
    epoch: int | None = None
    sequence: int | None = None
    is_json: bool = False
    meta: dict[str, str] | None = None

    @property
    def is_leased(self) -> bool:
        return self.state is MessageState.LEASED

    @property
    def in_dlq(self) -> bool:
        return self.state is MessageState.DEAD


class PeekedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Ready messages best first, then those that are leased, delayed and leaving, then dead letters if asked for."""

    topic: str
    messages: tuple[PeekedMessage, ...]
    has_more: bool


class LeaseRef(msgspec.Struct, frozen=True, gc=False):
    """A lease, as its holder names it. An empty `message_id` is not compared: the token alone finds the message."""

    lease_token: str
    message_id: str = ""


class LostLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A lease that was named and is not there: `place` in the call, and why."""

    place: int
    message_id: str
    reason: str


class AckedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to acks: how many were done, and which leases were not there."""

    topic: str
    acked: int
    lost: tuple[LostLease, ...] = ()


class NackedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to nacks: how many were given back, and which leases were not there."""

    topic: str
    nacked: int
    """Those that went to the dead letters included."""
    dead_lettered: int
    lost: tuple[LostLease, ...] = ()


class ExtendedLeases(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to extending leases: until when, and which were not there."""

    topic: str
    extended: int
    lease_deadline_ms: int
    lost: tuple[LostLease, ...] = ()


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages were deleted."""

    topic: str
    purged: int


class MovedToDlq(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message went that was given up."""

    topic: str
    message_id: str
    dlq_topic: str


class Reprioritized(msgspec.Struct, frozen=True, kw_only=True):
    """The priority that a message has now, and the one it had."""

    topic: str
    message_id: str
    priority: int
    previous_priority: int


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was taken back."""

    topic: str
    message_id: str


class Failure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One delivery that failed."""

    at_ms: int
    reason: str
    """What the consumer said, or `timeout`."""
    consumer: str


class DeadMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter: the message as it was, and how it came here."""

    message_id: str
    """The one it had in its heap."""
    topic: str
    """Its heap."""
    partition: int
    """That of its heap it was in."""
    dlq_topic: str
    dlq_partition: int
    dlq_seq: int
    payload: bytes
    priority: int
    enqueued_ms: int
    died_ms: int
    attempts: int
    max_retries: int
    reason: str
    history: tuple[Failure, ...] = ()
    """The last deliveries that failed, oldest first."""
    producer_id: str | None = None
    epoch: int | None = None
    sequence: int | None = None
    is_json: bool = False
    meta: dict[str, str] | None = None


class DeadFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters are meant: those for which everything that is given is true."""

    message_ids: tuple[str, ...] = ()
    reason: str | None = None
    """The whole text, or its beginning when it ends in `*`."""
    died_from_ms: int | None = None
    died_before_ms: int | None = None
    priority_min: int | None = None
    priority_max: int | None = None


EVERY_LETTER = DeadFilter()


class DeadPage(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters, oldest first; the next page begins at `next_cursor`, and there is none when it is empty."""

    topic: str
    dlq_topic: str
    messages: tuple[DeadMessage, ...]
    next_cursor: str = ""


class DeadStep(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one bounded step over dead letters; go on at `next_cursor` until it is empty."""

    topic: str
    done_count: int
    """Replayed, or deleted."""
    skipped_count: int = 0
    """Meant, and could not go: somebody has them, or their heap does not take them."""
    next_cursor: str = ""


class PartitionStats(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of one partition of a heap."""

    partition: int
    messages: int
    """All that is not done: ready, delayed, leased and leaving."""
    ready: int
    in_flight: int
    delayed: int
    is_healthy: bool = True
    leader_node: str = ""
    replica_nodes: tuple[str, ...] = ()


class HeapStats(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of one heap, or of all together; totals count since the heap was made and survive restarts."""

    total_messages: int = 0
    ready_messages: int = 0
    in_flight_messages: int = 0
    delayed_messages: int = 0
    dlq_messages: int = 0
    total_enqueues: int = 0
    total_pops: int = 0
    total_acks: int = 0
    total_nacks: int = 0
    total_retries: int = 0
    """Deliveries of messages that had been delivered before."""
    total_timeouts: int = 0
    total_dead_lettered: int = 0
    partitions: tuple[PartitionStats, ...] = ()


class HeapInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A heap: its config, and its numbers."""

    topic: str
    heap_id: str
    config: HeapConfig
    created_ms: int
    updated_ms: int
    replicas: int = 1
    """Copies that there are of each message."""
    warnings: tuple[str, ...] = ()
    """What was asked for and is not so, in words."""
    stats: HeapStats | None = None
