"""How a client reaches an engine: a dozen verbs, and the requests they carry.

In process it is `topics/embedded.py`; over a network it is `remote.py`. A client knows nothing else of the engine, and
a transport knows nothing of the client: requests go in, values of `topics.model` or errors of `topics.errors` come out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from topics.client.accounttransport import AccountTransport
from topics.client.catalogtransport import CatalogTransport
from topics.client.grouptransport import GroupTransport
from topics.client.heaptransport import HeapTransport
from topics.client.jobtransport import JobTransport
from topics.client.match import Match
from topics.client.outage import Outage
from topics.client.routertransport import RouterTransport
from topics.client.sqltransport import SqlTransport
from topics.errors import TopicsError
from topics.model import (
    Aborted,
    ArchiveDropped,
    ArchiveState,
    Configured,
    Deleted,
    Dropped,
    Page,
    Published,
    StageState,
    TopicState,
    Written,
)
from topics.producermodel import ForgottenProducer, ProducerPage

T = TypeVar("T", covariant=True)

Seen = Page | Dropped
"""What a watch gives: a page of a topic, or the news of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """One atomic write to one partition. None is "not said"."""

    records: Sequence[Mapping[str, Any]]
    node: str | None = None
    partition: int | None = None
    key: str | None = None
    idempotency_key: str | None = None
    producer: tuple[str, int, int] | None = None
    create: bool | None = None
    config: Mapping[str, object] | None = None
    delay_ms: int | None = None
    not_before_ms: int | None = None
    """Of jobs: nobody gets them before this time, nor before `delay_ms` from now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A page behind a cursor. A limit of 0 is the default, one above the allowed is clamped."""

    from_seq: int = 0
    from_ts: int | None = None
    """Records stamped before this time are passed over, too."""
    partition: int = 0
    limit: int = 0
    max_batch_bytes: int = 0
    nodes: Sequence[str] = ()
    match: Match | None = None
    include_tags: bool = True
    include_meta: bool = True
    wait_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """Records of one partition, by seq, by tag, or by both at once."""

    partition: int = 0
    before_seq: int | None = None
    match: Match | None = None
    erase: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """Records put aside for one partition of a topic."""

    stage: str
    topic: str
    records: Sequence[Mapping[str, Any]]
    node: str | None = None
    partition: int | None = None
    key: str | None = None
    delay_ms: int | None = None
    """Of jobs: how long nobody gets them once they are published."""
    not_before_ms: int | None = None
    """Instead of that, a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where following begins: behind the request's cursor, which belongs to a life of the topic."""

    topic: str
    """A name, or the beginning of names with a `*` behind it."""
    request: ReadRequest
    epoch: int = 0
    """Of the cursor; 0 is unknown."""
    tail: bool = False
    """Instead of the cursor: behind what is there at the first step."""


class ByteStream(Protocol):
    """Bytes as they come."""

    @property
    def total_bytes(self) -> int:
        """About how many come, for a progress bar; 0 when nobody knows."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Stream(Protocol[T]):
    """What comes one after the other, until it is closed."""

    def __aiter__(self) -> AsyncIterator[T]: ...

    async def __anext__(self) -> T: ...

    async def aclose(self) -> None:
        """End it; nothing of it is left when this returns."""


class Transport(JobTransport, GroupTransport, RouterTransport, CatalogTransport, SqlTransport, Protocol):
    @property
    def accounts(self) -> AccountTransport:
        """The verbs of accounts, which servers have and engines in process do not."""

    @property
    def heaps(self) -> HeapTransport:
        """The verbs of heaps, which may go another way."""

    async def open(self) -> None:
        """Get ready for the verbs below. After `close` it may be opened again."""

    async def close(self) -> None:
        """Finish what was begun; closing what is closed does nothing. Readers that wait get `ShuttingDown`."""

    def may_pass(self, error: TopicsError) -> bool:
        """Whether trying again later may help: the server is away, busy or restarting, and we are not closed."""

    def outage(self) -> Outage:
        """How somebody who reads without end waits for a server that is away; each has one of their own."""

    async def configure(
        self, topic: str, fields: Mapping[str, object], *, merge: bool, if_missing: bool = False
    ) -> Configured:
        """Create a topic or replace its config; with `merge`, change one that exists, with `if_missing` never do so."""

    async def drop(self, topic: str, *, if_empty: bool) -> Dropped: ...

    async def write(self, topic: str, request: WriteRequest) -> Written: ...

    async def read(self, topic: str, request: ReadRequest) -> Page:
        """Waits up to `wait_ms` for something to tell, and never past it; nothing that comes meanwhile is missed."""

    def watch(self, places: Sequence[Place]) -> Stream[Seen]:
        """The pages of topics as they come, in order within each; `Dropped` is the last word of one of them.

        A place whose topic ends in `*` stands for all topics whose names begin like that; those that are made later
        join with their first record. The topics of all other places must exist, but for those with an epoch, which were
        there once. When a topic is not the one that its place is about any more, a page with nothing but a `recreated`
        tombstone comes, and its records from the first one on. A transport whose server may be away waits for it and
        goes on where it was.
        """

    async def delete(self, topic: str, request: DeleteRequest) -> Deleted: ...

    async def state(self, topic: str, *, partition: int, touch: bool) -> TopicState: ...

    async def report_archive(
        self, topic: str, archive: str, upto_seq: int, *, location: str, partition: int, epoch: int | None
    ) -> ArchiveState: ...

    async def drop_archive(self, topic: str, archive: str) -> ArchiveDropped: ...

    async def topics(self, *, prefix: str, after: str, limit: int) -> list[TopicState]:
        """Topics by name behind `after`; fewer than `limit` means that there are no more."""

    async def stage(self, request: StageRequest) -> StageState: ...

    async def publish(self, stages: Sequence[str], *, producer: tuple[str, int]) -> Published: ...

    async def abort(self, stages: Sequence[str]) -> Aborted: ...

    async def producers(self, topic: str | None, *, prefix: str, after: str, limit: int) -> ProducerPage: ...

    async def forget_producer(self, producer_id: str, topic: str | None) -> ForgottenProducer: ...

    def backup(self, *, gzip_level: int) -> AbstractAsyncContextManager[ByteStream]:
        """A backup archive of the moment when this is entered; leaving it early gives up the rest."""
