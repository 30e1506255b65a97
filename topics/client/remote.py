"""A server elsewhere: the transport that speaks `/v0` over HTTP.

Each verb is one call (`caller.py` says which are tried again), its answer decoded into the same values the embedded
engine gives. Topics are followed over one event stream, however many (`remotewatch.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import quote, urlencode

import msgspec

from topics.client.body import delete_body, named_tuple, plain_body, read_body, stage_body, write_body
from topics.client.caller import Caller, may_pass
from topics.client.connection import Answer
from topics.client.download import Download
from topics.client.heaptransport import HeapTransport
from topics.client.outage import OnOutage, Outage
from topics.client.pages import parsed_page
from topics.client.readahead import ReadAhead
from topics.client.remoteaccounts import RemoteAccounts
from topics.client.remoteanswer import decoded, topic_path
from topics.client.remotecatalog import RemoteCatalog
from topics.client.remotegroups import RemoteGroups
from topics.client.remoteheaps import RemoteHeaps
from topics.client.remotejobs import RemoteJobs
from topics.client.remoterouters import RemoteRouters
from topics.client.remotesql import RemoteSql
from topics.client.remotewatch import RemoteWatch
from topics.client.transport import DeleteRequest, Place, ReadRequest, Seen, StageRequest, Stream, WriteRequest
from topics.errors import InvalidRequest, TopicsError
from topics.limits import WAIT_MS_MAX
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
    Tombstone,
    TopicState,
    Written,
)
from topics.producermodel import ForgottenProducer, ProducerPage, ProducerState
from topics.wire.cursor import decode_cursor, encode_cursor

BACKUP_SILENCE_MS = 60_000
"""How long the next bytes of a backup may take."""

PREFETCHED_PAGES = 2
"""Pages that are fetched while the reader is still busy with earlier ones."""


class _Producers(msgspec.Struct):
    producers: tuple[ProducerState, ...]
    next_cursor: str = ""


class _Page(msgspec.Struct):
    topic: str
    records: msgspec.Raw
    next_from_seq: int
    head_seq: int
    earliest_seq: int
    tombstone: Tombstone | None = None
    epoch: int = 0
    partition: int = 0


class _List(msgspec.Struct):
    topics: list[TopicState]


class _Dropped(msgspec.Struct):
    topic: str
    deleted: bool
    routers_removed: tuple[str, ...] = ()


class Remote(RemoteJobs, RemoteGroups, RemoteRouters, RemoteCatalog, RemoteSql):
    """A transport over HTTP."""

    def __init__(
        self, caller: Caller, on_outage: OnOutage = lambda error: None, heaps: HeapTransport | None = None
    ) -> None:
        super().__init__()
        self._caller = caller
        self.accounts = RemoteAccounts(caller)
        self.heaps: HeapTransport = heaps or RemoteHeaps(caller, on_outage)
        self._on_outage = on_outage
        self._open = False

    async def open(self) -> None:
        if self._open:
            raise InvalidRequest(f"{self._caller.address} is connected already: enter a client once")
        self._open = True
        self._caller.open()

    async def close(self) -> None:
        self._open = False
        await self.settle()
        await self.heaps.close()
        await self._caller.close()

    def may_pass(self, error: TopicsError) -> bool:
        return self._open and may_pass(error)

    def outage(self) -> Outage:
        return Outage(self.may_pass, lambda: self._caller.reached, self._on_outage)

    # ---- topics

    async def configure(
        self, topic: str, fields: Mapping[str, object], *, merge: bool, if_missing: bool = False
    ) -> Configured:
        method = "PATCH" if merge else "PUT"
        path = topic_path(topic, if_missing="true") if if_missing else topic_path(topic)
        # Not repeatable when it may only create: a second time it would find what the first has made.
        answer = await self._caller.call(method, path, plain_body(fields), repeatable=not if_missing)
        return decoded(answer, Configured)

    async def drop(self, topic: str, *, if_empty: bool) -> Dropped:
        # Not repeatable: meanwhile somebody may have made a topic of that name again.
        path = topic_path(topic, if_empty="true") if if_empty else topic_path(topic)
        found = decoded(await self._caller.call("DELETE", path, repeatable=False), _Dropped)
        return Dropped(topic=found.topic, deleted=found.deleted, routers=found.routers_removed)

    async def state(self, topic: str, *, partition: int, touch: bool) -> TopicState:
        query = {} if touch else {"touch": "false"}
        if partition:
            query["partition"] = str(partition)
        answer = await self._caller.call("GET", topic_path(topic, **query), repeatable=True)
        return decoded(answer, TopicState)

    async def report_archive(
        self, topic: str, archive: str, upto_seq: int, *, location: str, partition: int, epoch: int | None
    ) -> ArchiveState:
        fields: dict[str, object] = {"upto_seq": upto_seq, "location": location, "partition": partition}
        if epoch is not None:
            fields["epoch"] = epoch
        # Repeatable: a report that is late changes nothing.
        answer = await self._caller.call("PUT", _archive_path(topic, archive), plain_body(fields), repeatable=True)
        return decoded(answer, ArchiveState)

    async def drop_archive(self, topic: str, archive: str) -> ArchiveDropped:
        answer = await self._caller.call("DELETE", _archive_path(topic, archive), repeatable=False)
        return decoded(answer, ArchiveDropped)

    async def topics(self, *, prefix: str, after: str, limit: int) -> list[TopicState]:
        query = {"full": "true", "page_size": str(limit)}
        if prefix:
            query["prefix"] = prefix
        if after:
            query["cursor"] = encode_cursor(after)
        answer = await self._caller.call("GET", f"/v0/topics?{urlencode(query)}", repeatable=True)
        return decoded(answer, _List).topics

    # ---- records

    async def write(self, topic: str, request: WriteRequest) -> Written:
        once = request.idempotency_key is not None or request.producer is not None
        path = topic_path(topic, return_seqs="false")
        answer = await self._caller.call("POST", path, write_body(request), repeatable=once)
        return decoded(answer, Written)

    async def read(self, topic: str, request: ReadRequest) -> Page:
        wait_ms = min(request.wait_ms, WAIT_MS_MAX)
        path = f"{topic_path(topic)}/diff"
        answer = await self._caller.call("POST", path, read_body(request), repeatable=True, wait_ms=wait_ms)
        found = decoded(answer, _Page)
        return parsed_page(
            found.records,
            found.topic,
            partition=found.partition,
            next_from_seq=found.next_from_seq,
            head_seq=found.head_seq,
            earliest_seq=found.earliest_seq,
            tombstone=found.tombstone,
            epoch=found.epoch,
        )

    async def delete(self, topic: str, request: DeleteRequest) -> Deleted:
        # Not repeatable: a second time it would also take what came with the same tag in between.
        path = f"{topic_path(topic)}/delete"
        answer = await self._caller.call("POST", path, delete_body(request), repeatable=False)
        return decoded(answer, Deleted)

    # ---- atomic batches

    async def stage(self, request: StageRequest) -> StageState:
        path = f"{topic_path(request.topic)}/stage"
        return decoded(await self._caller.call("POST", path, stage_body(request), repeatable=False), StageState)

    async def publish(self, stages: Sequence[str], *, producer: tuple[str, int]) -> Published:
        producer_id, epoch = named_tuple(producer, ("id", "epoch"))
        body = plain_body({"stages": list(stages), "producer_id": producer_id, "epoch": epoch})
        return decoded(await self._caller.call("POST", "/v0/publish", body, repeatable=True), Published)

    async def abort(self, stages: Sequence[str]) -> Aborted:
        body = plain_body({"stages": list(stages)})
        return decoded(await self._caller.call("POST", "/v0/abort", body, repeatable=True), Aborted)

    async def producers(self, topic: str | None, *, prefix: str, after: str, limit: int) -> ProducerPage:
        given = {"topic": topic, "prefix": prefix, "cursor": encode_cursor(after) if after else ""}
        query = {name: value for name, value in given.items() if value} | {"page_size": str(limit)}
        answer = await self._caller.call("GET", f"/v0/producers?{urlencode(query)}", repeatable=True)
        found = decoded(answer, _Producers)
        return ProducerPage(producers=found.producers, next_after=decode_cursor(found.next_cursor))

    async def forget_producer(self, producer_id: str, topic: str | None) -> ForgottenProducer:
        # Not repeatable: the producer may have begun again meanwhile.
        query = {"producer_id": producer_id} | ({} if topic is None else {"topic": topic})
        path = f"/v0/producers?{urlencode(query)}"
        return decoded(await self._caller.call("DELETE", path, repeatable=False), ForgottenProducer)

    # ---- the whole of it

    @asynccontextmanager
    async def backup(self, *, gzip_level: int) -> AsyncIterator[Download]:
        heads: list[Answer] = []
        path = f"/v0/backup?{urlencode({'gzip': gzip_level})}"
        async with self._caller.stream(path, BACKUP_SILENCE_MS, {}, heads.append) as parts:
            yield Download(parts, int(heads[0].headers.get("x-backup-bytes", "0")))

    # ---- following

    def watch(self, places: Sequence[Place]) -> Stream[Seen]:
        return ReadAhead(PREFETCHED_PAGES, RemoteWatch(self._caller, self, places))


def _archive_path(topic: str, archive: str) -> str:
    return f"{topic_path(topic)}/archives/{quote(archive, safe='')}"
