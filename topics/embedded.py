"""The engine in this process: `topics.open`, and its transport.

The engine belongs to the event loop that opened it. A verb turns its request into one command or one read; there is no
lock, because between two awaits nobody else runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from topics import settings as setting_table
from topics.argumenttypes import checked
from topics.client.accounttransport import AccountTransport
from topics.client.client import Client
from topics.client.outage import Outage
from topics.client.transport import DeleteRequest, Place, ReadRequest, Seen, StageRequest, Stream, WriteRequest
from topics.core import config as configs
from topics.core.commands import (
    Abort,
    Append,
    Command,
    Configure,
    Delete,
    Drop,
    DropArchive,
    ForgetProducer,
    Publish,
    ReportArchive,
    Stage,
)
from topics.core.cut import Shape
from topics.core.dedupe import DedupeKey, check_idempotency_key, check_producer_key
from topics.core.forget import page_of
from topics.core.match import parse_match
from topics.core.partition import partition_of
from topics.core.records import Records, empty_name
from topics.core.waits import staged_waits, waits_in
from topics.embeddedcatalog import EmbeddedCatalog
from topics.embeddedgroups import EmbeddedGroups
from topics.embeddedheaps import EmbeddedHeaps
from topics.embeddedjobs import EmbeddedJobs
from topics.embeddedrouters import EmbeddedRouters
from topics.embeddedsql import EmbeddedSql
from topics.embeddedwatch import EmbeddedWatch
from topics.engine.backupstream import BackupStream
from topics.engine.host import Host
from topics.engine.opening import opener, record_limits
from topics.errors import BatchTooLarge, InvalidRequest, NotReady, ShuttingDown, Throttled, TopicsError
from topics.limits import PARTITIONS_MAX, U64_MAX, WAIT_MS_MAX
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
from topics.savefile import PathLike
from topics.settings import Settings
from topics.sqlengine.runner import Runner
from topics.wire.numbers import whole

T = TypeVar("T")


def open(path: str | PathLike, **settings: str | int | None) -> Client:
    """The engine on a directory, in this process. Use it as `async with topics.open("./data") as client`.

    The directory is made when it is not there. One process has it open at a time; another one gets `DirectoryLocked`.
    Settings are the `TOPICS_*` variables of the environment, and keywords such as `wal_shards=4` go before them; see
    docs/SETTINGS.md.
    """
    directory = path if isinstance(path, str) else path.__fspath__()
    values = asdict(setting_table.load()) | settings | {"data_dir": directory}
    return Client(Embedded(setting_table.build(values)))


@checked
class Embedded(EmbeddedJobs, EmbeddedGroups, EmbeddedRouters, EmbeddedCatalog, EmbeddedSql):
    """A transport without a wire."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limits = record_limits(settings)
        self._host: Host | None = None
        self._closing = False
        self._watches: set[EmbeddedWatch] = set()
        self._sql = Runner(settings, self._limits)
        self.heaps = EmbeddedHeaps(self._open_host)

    async def open(self) -> None:
        if self._host is not None:
            raise InvalidRequest(f"{self._settings.data_dir} is open already: enter a client once")
        opening = asyncio.create_task(Host.open(opener(self._settings)))
        try:
            self._host = await _to_the_end(opening)
        except asyncio.CancelledError:
            if opening.exception() is None:
                await opening.result().close()
            raise

    async def close(self) -> None:
        if self._host is None or self._closing:
            return
        self._closing = True
        for watch in list(self._watches):
            watch.end(self._being_closed())
        try:
            await _to_the_end(asyncio.create_task(self._let_go(self._host)))
        finally:
            self._host = None
            self._closing = False

    async def _let_go(self, host: Host) -> None:
        try:
            await self._sql.close()
        finally:
            await host.close()

    def _open_host(self) -> Host:
        if self._closing:
            raise self._being_closed()
        if self._host is None:
            raise NotReady(f"{self._settings.data_dir} is not open: use the client inside `async with topics.open(…)`")
        return self._host

    def _being_closed(self) -> ShuttingDown:
        return ShuttingDown(f"{self._settings.data_dir} is being closed")

    async def _submit(self, command: Command, kind: type[T]) -> T:
        reply = await self._open_host().submit_patiently(command)
        assert isinstance(reply, kind)
        return reply

    def may_pass(self, error: TopicsError) -> bool:
        return isinstance(error, Throttled) and "retry_after_ms" in error.detail

    def outage(self) -> Outage:
        return Outage(self.may_pass)

    @property
    def accounts(self) -> AccountTransport:
        raise InvalidRequest(
            "keys, users, sessions and the audit log belong to a server, and an engine in this process asks nobody who "
            f"they are: use topics.connect, or `topics key`, `user` and `audit` with --dir {self._settings.data_dir} "
            "once it is closed"
        )

    # ---- topics

    async def configure(
        self, topic: str, fields: Mapping[str, object], *, merge: bool, if_missing: bool = False
    ) -> Configured:
        if merge:
            self._open_host().engine.machine.topic(topic)
        return await self._submit(Configure(topic, fields, merge, if_missing), Configured)

    async def drop(self, topic: str, *, if_empty: bool) -> Dropped:
        return await self._submit(Drop(topic, if_empty), Dropped)

    async def state(self, topic: str, *, partition: int, touch: bool) -> TopicState:
        host = self._open_host()
        await host.freshened(topic)
        return host.engine.state(topic, partition, touch)

    async def report_archive(
        self, topic: str, archive: str, upto_seq: int, *, location: str, partition: int, epoch: int | None
    ) -> ArchiveState:
        seq = whole("upto_seq", upto_seq, U64_MAX)
        number = whole("partition", partition, PARTITIONS_MAX - 1)
        return await self._submit(ReportArchive(topic, archive, seq, location, number, epoch), ArchiveState)

    async def drop_archive(self, topic: str, archive: str) -> ArchiveDropped:
        return await self._submit(DropArchive(topic, archive), ArchiveDropped)

    async def topics(self, *, prefix: str, after: str, limit: int) -> list[TopicState]:
        await _give_way()
        host = self._open_host()
        await host.freshened(*host.fed())
        return host.engine.topics(prefix, after, limit)

    # ---- records

    async def write(self, topic: str, request: WriteRequest) -> Written:
        command = Append(
            topic,
            self._records(request.records, request.node),
            self._partition(topic, request.partition, request.key, request.config),
            _dedupe_key(request),
            request.create,
            request.config,
            whole("delay_ms", request.delay_ms, U64_MAX),
            whole("not_before", request.not_before_ms, U64_MAX),
            waits_in(request.records),
        )
        return await self._submit(command, Written)

    async def read(self, topic: str, request: ReadRequest) -> Page:
        await _give_way()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(request.wait_ms, WAIT_MS_MAX) / 1000
        await self._open_host().freshened(topic)
        page = self._read(topic, request, request.from_seq)
        waiting = request.wait_ms > 0
        while waiting and not page.count and page.tombstone is None and page.caught_up:
            host = self._open_host()
            machine = host.engine.machine
            log = machine.log(machine.topic(topic), request.partition)
            # Waits for anything behind where the page ended, so what came since the read ends the wait at once.
            waiting = await host.wait_visible(log, page.next_from_seq, deadline - loop.time())
            page = self._read(topic, request, page.next_from_seq)
        return page

    def _read(self, topic: str, request: ReadRequest, from_seq: int) -> Page:
        if request.limit < 0:
            raise InvalidRequest(f"limit must be 0 or more, not {request.limit}", field="limit", expected="0 or more")
        return self._open_host().engine.read(
            topic,
            from_seq,
            from_ts=request.from_ts,
            partition=request.partition,
            limit=request.limit,
            byte_budget=request.max_batch_bytes,
            nodes=request.nodes,
            match=None if request.match is None else parse_match(request.match),
            shape=Shape(tags=request.include_tags, meta=request.include_meta),
        )

    def watch(self, places: Sequence[Place]) -> Stream[Seen]:
        return EmbeddedWatch(places, self._open_host, self._watches)

    async def delete(self, topic: str, request: DeleteRequest) -> Deleted:
        match = None if request.match is None else parse_match(request.match)
        before_seq = None if request.before_seq is None else whole("before_seq", request.before_seq, U64_MAX)
        command = Delete(topic, request.partition, before_seq, match, request.dry_run)
        if request.erase and not request.dry_run:
            return await self._open_host().erase(command)
        return await self._submit(command, Deleted)

    # ---- atomic batches

    async def stage(self, request: StageRequest) -> StageState:
        partition = self._partition(request.topic, request.partition, request.key, None)
        records = self._records(request.records, request.node)
        waits = staged_waits(
            records.count,
            whole("delay_ms", request.delay_ms, U64_MAX),
            whole("not_before", request.not_before_ms, U64_MAX),
            waits_in(request.records),
        )
        return await self._submit(Stage(request.stage, request.topic, records, partition, waits=waits), StageState)

    async def publish(self, stages: Sequence[str], *, producer: tuple[str, int]) -> Published:
        return await self._submit(Publish(tuple(stages), *producer), Published)

    async def abort(self, stages: Sequence[str]) -> Aborted:
        return await self._submit(Abort(tuple(stages)), Aborted)

    async def producers(self, topic: str | None, *, prefix: str, after: str, limit: int) -> ProducerPage:
        await _give_way()
        return page_of(self._open_host().engine.machine, topic, prefix, after, limit)

    async def forget_producer(self, producer_id: str, topic: str | None) -> ForgottenProducer:
        return await self._submit(ForgetProducer(producer_id, topic), ForgottenProducer)

    # ---- the whole of it

    def backup(self, *, gzip_level: int) -> BackupStream:
        return BackupStream(self._open_host(), gzip_level)

    # ---- from requests to commands

    def _records(self, items: Sequence[Mapping[str, Any]], node: str | None) -> Records:
        _refuse_empty(items, node)
        records = Records.of(items, node=node or "", limits=self._limits)
        most = self._settings.max_body_bytes
        if records.payload_bytes > most:
            raise BatchTooLarge(
                f"the records have {records.payload_bytes} bytes together, at most {most} are allowed in one write",
                bytes=records.payload_bytes,
                max_bytes=most,
            )
        return records

    def _partition(
        self, topic: str, partition: int | None, key: str | None, config: Mapping[str, object] | None
    ) -> int:
        """The partition a write goes to; a topic that does not exist yet has as many as `config` gives it."""
        if key is None:
            return partition or 0
        if partition is not None:
            message = "partition and key both choose the partition: give one of them"
            raise InvalidRequest(message, field="key", expected="partition or key")
        found = self._open_host().engine.machine.topics.get(topic)
        partitions = (found.config if found is not None else configs.build(topic, config or {})).partitions
        return partition_of(key, partitions)


def _refuse_empty(items: Sequence[Mapping[str, Any]], node: str | None) -> None:
    """A tag or node that is there and names nothing is a mistake, as it is for a server."""
    if node == "":
        raise empty_name("node")
    for index, item in enumerate(items):
        for name in ("tag", "node"):
            if isinstance(item, Mapping) and item.get(name) == "":
                raise empty_name(f"records[{index}].{name}")


def _dedupe_key(request: WriteRequest) -> DedupeKey | None:
    if request.producer is None:
        return None if request.idempotency_key is None else check_idempotency_key(request.idempotency_key)
    expected = "idempotency_key or producer"
    if request.idempotency_key is not None:
        message = "idempotency_key and producer are two ways to name a write: give one of them"
        raise InvalidRequest(message, field="producer", expected=expected)
    return check_producer_key(*request.producer)


async def _to_the_end(work: asyncio.Task[T]) -> T:
    """Wait for work that must not stop half-way: whoever cancels the wait gets it back when the work is done."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        raise


async def _give_way() -> None:
    """Let others have a turn: a reader that always finds something would otherwise never wait."""
    await asyncio.sleep(0)
