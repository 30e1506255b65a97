"""The values of consumer groups that users see: where a group begins, what a consume gives, how a group stands.

Field names are those of the `/v0` wire, without the `$` of server-computed fields. A group belongs to a topic and has a
position of its own in each partition; every value here is about one partition.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import msgspec

from topics.model import Gap, Record, Tombstone, parse_records


class StartKind(StrEnum):
    """How a start is said."""

    EARLIEST = "earliest"
    LATEST = "latest"
    SEQ = "seq"
    TS = "ts"


class Start(msgspec.Struct, frozen=True):
    """Where a group begins. `seq` is inclusive, 0 is the beginning; `ts` is milliseconds since 1970, inclusive."""

    kind: StartKind
    value: int = 0


EARLIEST = Start(StartKind.EARLIEST)
LATEST = Start(StartKind.LATEST)


def at_seq(seq: int) -> Start:
    return Start(StartKind.SEQ, seq)


def at_ts(ts: int) -> Start:
    return Start(StartKind.TS, ts)


class GroupBatch(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What one consume gives: records that are this consumer's until `deadline`. Nothing when `last_seq` is 0.

    `body` is the wire-ready text of the records, joined by commas. Ack with `last_seq`. A batch that is only a
    tombstone is acked in the same way: the loss is told again until somebody does.
    """

    topic: str
    partition: int = 0
    group: str
    consumer: str = ""
    body: bytes = b""
    count: int = 0
    first_seq: int = 0
    last_seq: int = 0
    claim_id: str = ""
    """Names this claim, and no other one ever."""
    deadline: int = 0
    """When the claim runs out, in milliseconds since 1970."""
    visibility_ms: int = 0
    """How long that is from when they were handed out."""
    deliveries: int = 0
    """How often these records were handed out to this group, this time included."""
    committed_seq: int = 0
    head_seq: int = 0
    tombstone: Tombstone | None = None
    """What the group lost before it could be handed out."""
    paused: bool = False

    @property
    def lag(self) -> int:
        return self.head_seq - self.committed_seq

    @cached_property
    def records(self) -> list[Record]:
        """The records as objects, parsed when first asked for."""
        return parse_records(self.body)


class AckedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an ack. `acked` counts the seqs that were not acked before, deleted ones among them included."""

    topic: str
    partition: int = 0
    group: str
    acked: int
    committed_seq: int
    head_seq: int

    @property
    def lag(self) -> int:
        return self.head_seq - self.committed_seq


class NackedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to giving records back: how many seqs are to be handed out again."""

    topic: str
    partition: int = 0
    group: str
    nacked: int
    committed_seq: int
    head_seq: int


class ExtendedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an extend: how many seqs stay with their consumer, and until when."""

    topic: str
    partition: int = 0
    group: str
    extended: int
    deadline: int


class PlacedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a reset: the group goes on behind `committed_seq`."""

    topic: str
    partition: int = 0
    group: str
    created: bool
    committed_seq: int
    head_seq: int


class PausedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to pausing or resuming a group, in all its partitions."""

    topic: str
    group: str
    paused: bool


class DroppedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to dropping a group, in all its partitions; `deleted` is false when there was none."""

    topic: str
    group: str
    deleted: bool


class RangeKind(StrEnum):
    """Of records between the committed seq and those that were never handed out."""

    CLAIMED = "claimed"
    FREE = "free"
    """To be handed out again: the claim ran out, or they were given back."""
    DELAYED = "delayed"
    """Given back with a delay that is not over."""
    ACKED = "acked"
    """Acked before something below them was."""
    LEAVING = "leaving"
    """On their way to the dead-letter topic."""


class GroupRange(msgspec.Struct, frozen=True, kw_only=True):
    """Seqs of a group that share a fate, both ends included."""

    first_seq: int
    last_seq: int
    kind: RangeKind
    deliveries: int
    consumer: str = ""
    claim_id: str = ""
    deadline: int = 0


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer that has claims; those that did not name themselves are together under the empty name."""

    consumer: str
    claims: int
    seqs: int
    deadline: int
    """When the first of its claims runs out."""


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """A group in one partition as it is now."""

    topic: str
    partition: int = 0
    group: str
    start_seq: int
    """The first seq that the group was to get, as pinned at its first contact or by its last reset."""
    committed_seq: int
    """Every record up to here is acked, deleted or lost."""
    next_seq: int
    """The first seq that was never handed out."""
    head_seq: int
    earliest_seq: int
    in_flight: int
    """Seqs that consumers have."""
    waiting: int
    """Seqs that are to be handed out again, at once or after a delay."""
    acked_ahead: int
    """Seqs that are acked although something below them is not."""
    oldest_unacked_seq: int | None = None
    oldest_unacked_ts: int | None = None
    paused: bool = False
    updated_ms: int = 0
    """When the group was last placed or acked something."""
    range_count: int = 0
    ranges: tuple[GroupRange, ...] = ()
    """The first of them, ascending."""
    member_count: int = 0
    members: tuple[GroupMember, ...] = ()
    losses: tuple[Gap, ...] = ()
    """What was lost before it was acked, and nobody has acked to know yet."""
    lost_count: int = 0
    """Seqs that the group lost, ever."""
    dead_lettered: int = 0
    dead_letter_error: str | None = None
    protected: bool = False
    """Whether retention waits for this group."""

    @property
    def lag(self) -> int:
        return self.head_seq - self.committed_seq
