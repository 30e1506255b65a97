"""The values users see: a topic's config and state, and what each verb answers. All frozen, none of them does anything.

Field names are those of the `/v0` wire, without the `$` of server-computed fields.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from topics import limits


class TopicType(StrEnum):
    """How records are taken besides by cursor. Fixed when the topic is created."""

    LOG = "log"
    QUEUE = "queue"
    HEAP = "heap"


class Mode(StrEnum):
    """Which priority of a heap is best: the lowest or the highest."""

    MIN = "min"
    MAX = "max"


class Durability(StrEnum):
    """Where a write lands and when it is acked; see docs/GUARANTEES.md."""

    EPHEMERAL = "ephemeral"
    MEMORY = "memory"
    DISK = "disk"
    FSYNC = "fsync"


class Discard(StrEnum):
    """What a full topic does with a write: drop the oldest records, or refuse it."""

    OLD = "old"
    REJECT = "reject"


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The config object, resolved: every field has its value. `core/config.py` makes and changes it.

    It is stored as a map by field name. A new field needs a default that means "as before"; a field is never renamed
    and its name never used again.
    """

    type: TopicType = TopicType.LOG
    ttl_ms: int = 0
    cap_records: int = 0
    cap_bytes: int = 0
    discard: Discard = Discard.OLD
    durability: Durability = Durability.DISK
    priority: int | None = None
    auto_priority: bool = True
    auto_create: bool = True
    idempotency_window_ms: int = limits.IDEMPOTENCY_WINDOW_MS_DEFAULT
    dedupe_node: bool = True
    lease_ms: int = limits.LEASE_MS_DEFAULT
    claim_jitter_ms: int = 0
    max_deliveries: int = 0
    dead_letter: str | None = None
    leases_durable: bool = False
    partitions: int = 1
    alias: str | None = None
    protect_unarchived: bool = False
    protect_groups: tuple[str, ...] = ()
    protect_max_bytes: int = limits.PROTECT_MAX_BYTES_DEFAULT
    visibility_ms: int = 0
    mode: Mode = Mode.MIN
    top_k_bound: int = limits.HEAP_TOP_K_DEFAULT
    replication_factor: int = 1
    retention_ms: int = 0
    max_retries: int = limits.HEAP_MAX_RETRIES_DEFAULT
    max_payload_bytes: int = limits.HEAP_PAYLOAD_BYTES_DEFAULT
    compression: bool = False
    dead_letter_ttl_ms: int = 0

    @property
    def durable(self) -> bool:
        return self.durability is Durability.FSYNC


class Record(
    msgspec.Struct, frozen=True, omit_defaults=True, rename={"seq": "$seq", "ts": "$ts", "node": "$node", "tag": "$tag"}
):
    """One immutable event. `data` is the JSON value, or bytes when bytes were written; see `meta` for their type.

    A number too large for a float or an int is a `Decimal`.
    """

    seq: int
    ts: int
    data: Any
    node: str | None = None
    tag: str | None = None
    meta: dict[str, str] | None = None


class Reason(StrEnum):
    """Why records are missing without anybody having deleted them."""

    CAP = "cap"
    TTL = "ttl"
    MIXED = "mixed"
    RECREATED = "recreated"
    SOURCE_TRIM = "source_trim"
    RESTART = "restart"
    """Not promised to survive, and it did not: a power loss, or the end of an ephemeral topic's process."""
    DAMAGE = "damage"
    """Unreadable on disk, and given up by a repair."""

    @classmethod
    def _missing_(cls, value: object) -> Reason | None:
        """One that only a newer program knows: that records are missing counts, whyever that is."""
        return cls.MIXED if isinstance(value, str) else None


class Tombstone(msgspec.Struct, frozen=True):
    """A reader missed `gap_from` to `gap_to`, both included."""

    gap_from: int
    gap_to: int
    reason: Reason
    missed_estimate: int
    earliest_seq: int
    head_seq: int


class Gap(msgspec.Struct, frozen=True):
    """In a stream of records: what stood from `gap_from` to `gap_to`, both included, was lost before it could be read.

    With the reason `recreated` the topic was dropped and made anew, and the stream goes on at its beginning.
    """

    gap_from: int
    gap_to: int
    reason: Reason


class Page(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What one read returns. `body` is the wire-ready text of its records, joined by commas, without the brackets."""

    topic: str
    partition: int
    body: bytes
    count: int
    next_from_seq: int
    head_seq: int
    earliest_seq: int
    tombstone: Tombstone | None = None
    scanned: int = 0
    epoch: int = 0
    """Which life of the topic this is, so that a reader notices when another one has begun; 0 is unknown."""

    @property
    def caught_up(self) -> bool:
        return self.next_from_seq == self.head_seq

    @property
    def lag(self) -> int:
        return self.head_seq - self.next_from_seq

    @cached_property
    def records(self) -> list[Record]:
        """The records as objects, parsed when first asked for."""
        return parse_records(self.body)


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a write. When `deduped`, the seqs are those of the first time and nothing was appended."""

    topic: str
    partition: int = 0
    first_seq: int
    last_seq: int
    head_seq: int
    created: bool = False
    deduped: bool = False

    @property
    def count(self) -> int:
        return self.last_seq - self.first_seq + 1

    @property
    def seqs(self) -> range:
        return range(self.first_seq, self.last_seq + 1)


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a delete of records. `erased`: their bytes are gone from disk, too.

    After a dry run `deleted` is how many would have gone, and all are still there.
    """

    topic: str
    partition: int = 0
    deleted: int
    earliest_seq: int
    head_seq: int
    count: int
    bytes: int
    erased: bool = False
    dry_run: bool = False


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to creating a topic or changing its config."""

    topic: str
    created: bool
    config: TopicConfig


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to deleting a topic; `deleted` is false when there was none."""

    topic: str
    deleted: bool
    routers: tuple[str, ...] = ()
    """Routers from or to it, which went with it."""


class Aborted(msgspec.Struct, frozen=True, kw_only=True):
    """The stages that were there and are gone now."""

    stages: tuple[str, ...]


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one partition of a queue as they are now."""

    ready: int
    """Jobs that can be claimed."""
    in_flight: int
    """Jobs somebody has."""
    dead_lettered: int
    """Jobs that went to the dead-letter topic, ever."""
    delayed: int
    """Jobs whose time has not come: written or given back with a delay."""
    dead_letter_error: str | None = None
    """Why the dead-letter topic does not take what it should; None while it does. Such jobs stay for another try."""


class TopicState(msgspec.Struct, frozen=True, kw_only=True):
    """One partition of a topic as it is now. What was lost by cap, TTL or a crash lies below `evict_floor`."""

    topic: str
    partition: int = 0
    partitions: int = 1
    epoch: int
    head_seq: int
    earliest_seq: int
    evict_floor: int
    count: int
    bytes: int
    config: TopicConfig
    effective_priority: int
    last_write_ts: int | None = None
    last_read_ts: int | None = None
    stopped: str | None = None
    """Why this partition takes no writes any more; None while it does."""
    queue: QueueState | None = None
    """Of a queue only."""
    archives: tuple[ArchiveState, ...] = ()
    holding: HoldingState | None = None
    """Of a topic that keeps records for archives or groups."""

    @property
    def type(self) -> TopicType:
        return self.config.type

    @property
    def next_seq(self) -> int:
        return self.head_seq + 1


class ArchiveState(msgspec.Struct, frozen=True, kw_only=True):
    """How far an archive has come in one partition."""

    archive: str
    partition: int = 0
    upto_seq: int
    behind: int
    """Seqs it has yet to take."""
    location: str = ""
    reported_ts: int


class ArchiveDropped(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to dropping an archive: whether there was one of that name."""

    topic: str
    archive: str
    dropped: bool


class HoldingState(msgspec.Struct, frozen=True, kw_only=True):
    """What retention leaves for archives and groups."""

    needed_from: int
    """The first seq that one of them has not got; behind the head when they have all."""
    max_bytes: int
    """What the partition may hold while retention waits; the oldest records go when it is more."""
    overrun_count: int
    """Records that went although they were needed, since the server started."""


class ClaimedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a claim: jobs, ascending by seq, as wire-ready text with their leases and commas between."""

    topic: str
    partition: int
    node: str
    text: bytes = b""
    seqs: list[int] = []
    ready: int
    token: int = 0
    """Of the first lease, where that is known; they go up by one from job to job."""

    @property
    def count(self) -> int:
        return len(self.seqs)

    @property
    def jobs(self) -> list[bytes]:
        """The text of each."""
        return [bytes(job) for job in _texts.decode(b"[%b]" % self.text)]


_texts = msgspec.json.Decoder(list[msgspec.Raw])


class AckedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an ack: `skipped` were not this worker's to complete."""

    topic: str
    partition: int = 0
    acked: int
    skipped: list[int]
    ready: int
    in_flight: int


class NackedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to giving jobs back."""

    topic: str
    partition: int = 0
    nacked: int
    skipped: list[int]
    ready: int
    in_flight: int


class ExtendedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to extending leases: the new deadline of each that was."""

    topic: str
    partition: int = 0
    extended: int
    skipped: list[int]
    deadlines: dict[int, int]


class CompletedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to completing jobs with results: where the results went."""

    topic: str
    partition: int = 0
    acked: int
    ready: int
    in_flight: int
    written: tuple[Written, ...] = ()


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one step of a redrive; the next one goes on behind `next_from_seq` until `done`."""

    topic: str
    partition: int = 0
    moved: int
    """Dead letters that went back, or would have in a dry run."""
    skipped: int
    """Dead letters that matched and could not go: somebody has them, or nobody says where they came from."""
    scanned: int
    next_from_seq: int
    head_seq: int
    done: bool
    dry_run: bool = False


class StageState(msgspec.Struct, frozen=True, kw_only=True):
    """Records that are durable and invisible until their stage is published, aborted or expired."""

    stage: str
    topic: str
    type: TopicType
    """What the topic is, told here as well for writers that may not read."""
    partition: int
    partitions: int
    """How many the topic has."""
    count: int
    bytes: int
    expires_ts: int


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a publish: one `Written` a stage, in the order they were named."""

    written: tuple[Written, ...]
    deduped: bool = False


class _Stored(Record, frozen=True, kw_only=True):
    """A record whose data is still text."""

    data: msgspec.Raw


_records = msgspec.json.Decoder(list[Record])
_stored_records = msgspec.json.Decoder(list[_Stored])
_INT_DIGITS_MAX = 4000
"""Python converts longer texts to an int only when told to; the time it takes grows with the square."""


ENCODING = "$encoding"
BASE64 = "base64"
CONTENT_TYPE = "content-type"
"""Keys and a value of `meta` that say what data stands for: bytes are kept as base64 text."""


def parse_records(body: bytes) -> list[Record]:
    """The records of a page's body."""
    array = b"[%b]" % body
    try:
        records = _records.decode(array)
    except msgspec.DecodeError:
        # JSON has numbers of any size, msgspec has not, and the log keeps what it was given.
        records = [
            Record(record.seq, record.ts, _parse_data(bytes(record.data)), record.node, record.tag, record.meta)
            for record in _stored_records.decode(array)
        ]
    if b'"$encoding"' in body:
        return [_with_bytes(record) for record in records]
    return records


def _with_bytes(record: Record) -> Record:
    """A record whose data says that it is bytes, with the bytes; what is no base64 stays the text it is."""
    if record.meta is None or record.meta.get(ENCODING) != BASE64 or not isinstance(record.data, str):
        return record
    try:
        return msgspec.structs.replace(record, data=b64decode(record.data, validate=True))
    except ValueError:
        return record


def _parse_data(text: bytes) -> Any:
    return json.loads(text, parse_int=_parse_int, parse_float=_parse_float)


def _parse_int(text: str) -> int | Decimal:
    return int(text) if len(text) <= _INT_DIGITS_MAX else Decimal(text)


def _parse_float(text: str) -> float | Decimal:
    value = float(text)
    return value if math.isfinite(value) else Decimal(text)
