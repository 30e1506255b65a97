"""What a caller can ask for that changes state. Each is checked and decided by `core/machine.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from topics.core.accountcommands import AccountCommand
from topics.core.dedupe import DedupeKey
from topics.core.groupcommands import AnyGroupCommand
from topics.core.heapcommands import HeapCommand
from topics.core.match import Match
from topics.core.pipelinecommands import CatalogCommand
from topics.core.records import Records
from topics.core.source import Operation, RouteStart, Source
from topics.routermodel import RouterConfig


@dataclass(frozen=True, slots=True)
class Configure:
    """Create a topic, or change its config.

    `merge` keeps what `fields` does not name; with `if_missing` one that exists is left as it is.
    """

    topic: str
    fields: Mapping[str, object]
    merge: bool = False
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    topic: str
    if_empty: bool = False


@dataclass(frozen=True, slots=True)
class ChangeSources:
    """Change what tables a topic gets records from: first some are dropped, then some are added."""

    topic: str
    added: tuple[Source, ...] = ()
    dropped: str | None = None
    """A table; of it, those of `operations`, or all of them."""
    operations: tuple[Operation, ...] = ()
    start: RouteStart | None = None
    """Where those that are added begin; None goes on where one that is replaced is, and else begins now."""


class Append(msgspec.Struct, frozen=True):
    """A struct and not a dataclass because it is made for each write, and making one takes a tenth of the time."""

    topic: str
    records: Records
    partition: int = 0
    dedupe_key: DedupeKey | None = None
    create: bool | None = None
    config: Mapping[str, object] | None = None
    delay_ms: int = 0
    not_before_ms: int = 0
    """Of jobs: nobody gets them before this time, nor before `delay_ms` from now."""
    waits: bytes = b""
    """Of jobs: how long nobody gets each of them (`core/waits.py`)."""


@dataclass(frozen=True, slots=True)
class Delete:
    topic: str
    partition: int = 0
    before_seq: int | None = None
    match: Match | None = None
    dry_run: bool = False
    """Count, and delete nothing."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Put records aside for a topic: durable, invisible, and gone at their expiry unless published."""

    stage: str
    topic: str
    records: Records
    partition: int = 0
    at: int | None = None
    """How many records the stage holds before these, so that a repeated request adds nothing."""
    waits: bytes = b""
    """Of jobs: how long nobody gets each of them (`core/waits.py`)."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Make several stages visible in one commit, once for each (producer, epoch)."""

    stages: tuple[str, ...]
    producer_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Abort:
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetProducer:
    """Drop what is remembered of a producer, with its fence: of batches, or of writes into one topic."""

    producer_id: str
    topic: str | None = None


class Claimer(msgspec.Struct, frozen=True):
    """One worker that asks for jobs, for `lease_ms` or as long as its queue says."""

    node: str
    max: int = 1
    lease_ms: int | None = None
    connection: int = 0
    """The stream that the jobs go out on; what it holds can be released as a whole. 0 is none."""


class Claim(msgspec.Struct, frozen=True):
    """Lease jobs to workers: what is there is divided evenly among all of them."""

    topic: str
    claimers: tuple[Claimer, ...]
    partition: int = 0


class Ack(msgspec.Struct, frozen=True):
    """Complete jobs, which deletes them: those that `node` holds and, if given, whose lease ids are current."""

    topic: str
    node: str
    seqs: Sequence[int]
    lease_ids: Sequence[str] | None = None
    partition: int = 0


class Acks(msgspec.Struct, frozen=True):
    """Several workers complete jobs of one queue together: all that is decided and stored is done once."""

    topic: str
    acks: Sequence[Ack]
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Nack:
    """Give jobs back, to be claimed again after a delay. `undelivered`: nobody has seen them, so they do not count as
    delivered this time."""

    topic: str
    node: str
    seqs: Sequence[int]
    lease_ids: Sequence[str] | None = None
    partition: int = 0
    delay_ms: int = 0
    undelivered: bool = False


@dataclass(frozen=True, slots=True)
class Extend:
    """Keep jobs for `lease_ms` from now."""

    topic: str
    node: str
    seqs: Sequence[int]
    lease_ms: int
    lease_ids: Sequence[str] | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """A stream of jobs is over: whatever it holds can be claimed by others at once."""

    topic: str
    connection: int
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete jobs and write their results to other topics, both or neither; `node` must hold all of them."""

    topic: str
    node: str
    seqs: Sequence[int]
    results: Sequence[Append]
    lease_ids: Sequence[str] | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Redrive:
    """Move dead letters back to the queue they came from, or to `destination`; one bounded step, see `Redriven`."""

    topic: str
    partition: int = 0
    destination: str | None = None
    match: Match | None = None
    source: str | None = None
    """Only those that came from this queue."""
    reason: str | None = None
    from_seq: int = 0
    before_seq: int | None = None
    limit: int = 100
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Discard:
    """Delete dead letters out of the topic they are in; one bounded step, see `core/discard.py`."""

    topic: str
    partition: int = 0
    match: Match | None = None
    source: str | None = None
    """Only those that came from this topic."""
    reason: str | None = None
    from_seq: int = 0
    before_seq: int | None = None
    limit: int = 100
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ReportArchive:
    """An archive has all records of a partition up to `upto_seq`."""

    topic: str
    archive: str
    upto_seq: int
    location: str = ""
    partition: int = 0
    epoch: int | None = None
    """That of the topic that was archived; None takes whichever is there."""


@dataclass(frozen=True, slots=True)
class DropArchive:
    """Nobody goes on with an archive of a topic."""

    topic: str
    archive: str


@dataclass(frozen=True, slots=True)
class PutRouter:
    """Create a router, or change it; topics that it names and that are missing are made."""

    router: str
    config: RouterConfig


@dataclass(frozen=True, slots=True)
class DropRouter:
    """Forward nothing any more; what was forwarded stays."""

    router: str


RouterCommand = PutRouter | DropRouter
ArchiveCommand = ReportArchive | DropArchive
QueueCommand = Claim | Ack | Acks | Nack | Extend | Release | Complete | Redrive | Discard
TakingCommand = QueueCommand | ArchiveCommand | AnyGroupCommand | HeapCommand
TopicCommand = Configure | ChangeSources | Drop | Append | Delete | Stage | Publish | Abort | ForgetProducer
Command = TopicCommand | TakingCommand | RouterCommand | CatalogCommand | AccountCommand
