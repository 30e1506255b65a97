"""A client: the topics of one engine, wherever that runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Self, Unpack

from topics.client.accounts import Keys, Sessions, Users
from topics.client.auditlog import Audit
from topics.client.cursors import CursorStore, parse_cursor_name
from topics.client.fields import RecordFields
from topics.client.follow import COMMIT_MS, follow_many, follow_pages
from topics.client.heap import Heap
from topics.client.listing import every_topic
from topics.client.match import Match
from topics.client.moment import moment_ms
from topics.client.payload import prepared
from topics.client.pipeline import Pipeline, every_pipeline
from topics.client.producer import Producer
from topics.client.produceroptions import ProducerFields
from topics.client.queue import Queue
from topics.client.router import Router, RouterFields, default_name, every_router
from topics.client.table import Table, every_table
from topics.client.topic import Topic, as_nodes, as_time, check_beginning
from topics.client.transport import Place, ReadRequest, StageRequest, Transport
from topics.errors import InvalidRequest
from topics.heapmodel import HeapInfo
from topics.model import Aborted, Dropped, Gap, Page, Published, Record, StageState, TopicState
from topics.pipelinemodel import PipelineState
from topics.producermodel import ForgottenProducer, ProducerState
from topics.routermodel import RouterState
from topics.savefile import PathLike, save
from topics.sqlmodel import SqlResult
from topics.tablemodel import TableState

OnProgress = Callable[[int, int], None]
HEAPS_PAGE: Final = 100
PRODUCERS_PAGE: Final = 1000


class Client:
    """All topics of one engine. Use it in `async with`, which opens and closes it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._producers: set[Producer] = set()

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what was begun, store everything, let go of the engine. Leaving `async with` does it."""
        failures: list[Exception] = []
        try:
            for producer in list(self._producers):
                try:
                    await producer.close()
                except Exception as failure:
                    failures.append(failure)
        finally:
            await self._transport.close()
        if len(failures) > 1:
            more = len(failures) - 1
            failures[0].add_note(f"{more} more producers of this client have records that were not delivered")
        if failures:
            raise failures[0]

    def topic(self, name: str) -> Topic:
        """The topic of this name, whether it exists already or not."""
        return Topic(self._transport, name, self._make_producer)

    def queue(self, name: str, *, node: str | None = None) -> Queue:
        """The queue of this name, whether it exists already or not. Its jobs are claimed under the name `node`."""
        return Queue(self._transport, name, node)

    def heap(self, name: str, *, consumer: str = "", producer: str = "") -> Heap:
        """The heap of this name, whether it exists already or not.

        `consumer` shows who has what is popped; `producer` names what is enqueued, so that it is there once.
        """
        return Heap(self._transport.heaps, name, consumer, producer)

    async def heaps(self, prefix: str = "") -> AsyncIterator[HeapInfo]:
        """The heaps whose names begin with `prefix`, in order of their names."""
        after = ""
        while page := await self._transport.heaps.heap_infos(prefix=prefix, after=after, limit=HEAPS_PAGE):
            for info in page:
                yield info
            after = page[-1].topic
            if len(page) < HEAPS_PAGE:
                return

    def router(self, name: str) -> Router:
        """The router of this name, whether it exists already or not."""
        return Router(self._transport, name)

    async def route(self, source: str, dest: str, **options: Unpack[RouterFields]) -> RouterState:
        """Copy what is written to one topic into another, by a router called `source->dest`.

            await client.route("orders", "audit")

        The options are those of `Router.put`, which also says what is refused.
        """
        return await self.router(default_name(source, dest)).put(source, dest, **options)

    async def routers(self, prefix: str = "", *, source: str = "", dest: str = "") -> AsyncIterator[RouterState]:
        """The routers whose names begin with `prefix`, in order of their names; those of a source or a destination."""
        async for state in every_router(self._transport, prefix, source, dest):
            yield state

    def table(self, name: str) -> Table:
        """The registered table of this name, whether it is registered already or not."""
        return Table(self._transport, name)

    async def tables(self, prefix: str = "") -> AsyncIterator[TableState]:
        """The registered tables whose names begin with `prefix`, in order of their names."""
        async for state in every_table(self._transport, prefix):
            yield state

    def pipeline(self, name: str) -> Pipeline:
        """The pipeline of this name, whether it exists already or not."""
        return Pipeline(self._transport, name)

    async def pipelines(self, prefix: str = "") -> AsyncIterator[PipelineState]:
        """The pipelines whose names begin with `prefix`, in order of their names, the routes of tables among them."""
        async for state in every_pipeline(self._transport, prefix):
            yield state

    async def topics(self, prefix: str = "") -> AsyncIterator[TopicState]:
        """The topics whose names begin with `prefix`, in order of their names: the state of each one's partition 0."""
        async for state in every_topic(self._transport, prefix):
            yield state

    # ---- accounts, which a server has; an engine in this process refuses them

    @property
    def keys(self) -> Keys:
        """The managed keys of the server: make, list and revoke them."""
        return Keys(self._transport.accounts)

    @property
    def users(self) -> Users:
        """The people who sign in to the server: invite, list, change and remove them."""
        return Users(self._transport.accounts)

    @property
    def sessions(self) -> Sessions:
        """Who is signed in to the server."""
        return Sessions(self._transport.accounts)

    @property
    def audit(self) -> Audit:
        """The audit log of the server: search it, and see whether anybody changed it."""
        return Audit(self._transport.accounts)

    # ---- the whole of it

    async def backup(
        self, path: str | PathLike, *, gzip: int = 0, on_progress: OnProgress = lambda done, total: None
    ) -> int:
        """Save everything, as it is at this moment, into one new file; its size. Writers are not held up.

        The file is there whole or not at all, and an existing one is never written over. `gzip` is a level from 1 to 9;
        0 does not compress. `on_progress` gets the bytes so far and about how many there are, 0 when that is not known.
        `topics restore` makes a directory of the file.
        """
        done_bytes = total_bytes = 0

        async def pieces() -> AsyncGenerator[bytes, None]:
            nonlocal total_bytes
            async with self._transport.backup(gzip_level=gzip) as stream:
                total_bytes = stream.total_bytes
                async for piece in stream:
                    yield piece

        def on_bytes(count: int) -> None:
            nonlocal done_bytes
            done_bytes += count
            on_progress(done_bytes, total_bytes)

        # The backup begins with the first piece that is asked for: not before there is a file to save it in.
        async with aclosing(pieces()) as archive:
            return await save(path if isinstance(path, str) else path.__fspath__(), archive, on_bytes)

    # ---- many topics at once

    def producer(self, **options: Unpack[ProducerFields]) -> Producer:
        """Hands records for any topics over one by one and has them written in batches, each once and in order.

            async with client.producer() as producer:
                await producer.send("orders", {"sku": "A1"})
                await producer.send("stock", {"sku": "A1", "change": -1})

        The options are those of `Topic.producer`.
        """
        return self._make_producer(options)

    def _make_producer(self, options: ProducerFields) -> Producer:
        producer = Producer(self._transport, self._producers.discard, options)
        self._producers.add(producer)
        return producer

    def follow(
        self,
        topics: Mapping[str, int] | Iterable[str],
        *,
        tail: bool = False,
        node: str | Sequence[str] = (),
        match: Match | None = None,
        cursors: CursorStore | None = None,
        commit_ms: int = COMMIT_MS,
        from_ts: int | None = None,
    ) -> AsyncIterator[tuple[str, Record | Gap | Dropped]]:
        """Several topics as one stream: each event with the name of its topic, in order within each.

            async for topic, event in client.follow({"orders": 0, "stock": 17}):
                print(topic, event)
            async for topic, event in client.follow(["tenant42:*"], tail=True):
                print(topic, event)

        `topics` are names, each with the seq it begins behind if it is a mapping; `orders/3` is partition 3 of one, and
        a `*` at the end stands for all partitions of all names that begin like that, also of topics made later. Where
        records were lost, a `Gap` comes in their place. `Dropped` is the last event of a topic that is deleted; when
        all of them are, the stream ends. The other keywords are those of `Topic.follow`; `from_ts` is looked for in
        each topic that is there at the first step.
        """
        return follow_many(self._transport, _places(topics, tail, node, match, from_ts), cursors, commit_ms)

    def pages(
        self,
        topics: Mapping[str, int] | Iterable[str],
        *,
        tail: bool = False,
        node: str | Sequence[str] = (),
        match: Match | None = None,
        cursors: CursorStore | None = None,
        commit_ms: int = COMMIT_MS,
        from_ts: int | None = None,
    ) -> AsyncIterator[Page | Dropped]:
        """The same as `follow`, a page at a time: what is there together comes together.

            async for page in client.pages(["tenant42:*"]):
                if isinstance(page, topics.Page):
                    print(page.topic, page.partition, len(page.records), page.tombstone)

        For who stores records many at once, or has to know of which partition they are. With `cursors`, a page is done
        when the next one is asked for.
        """
        return follow_pages(self._transport, _places(topics, tail, node, match, from_ts), cursors, commit_ms)

    # ---- SQL

    async def sql(self, text: str, params: Sequence[Any] = ()) -> list[SqlResult]:
        """Run SQL statements, separated by semicolons; a result for each. See docs/SQL.md.

            (result,) = await client.sql("SELECT data->>'sku', count(*) FROM orders WHERE tag = ? GROUP BY 1", ["paid"])
            print(result.rows)

        `params` are the values of `?`, in order, or of `$1`, `$2`, …; they are never part of the text. All statements
        are understood before the first one runs; when one fails, those before it are done, and the error says in
        `detail["statement"]` which it was.
        """
        return await self._transport.sql(text, params)

    async def sql_arrow(self, text: str, params: Sequence[Any] = ()) -> Any:
        """Run one statement; its result as a `pyarrow.Table`, which pandas and Polars take as it is.

        frame = (await client.sql_arrow("SELECT * FROM orders WHERE ts > now() - INTERVAL 1 HOUR")).to_pandas()
        """
        stream = await self._transport.sql_arrow(text, params)
        ipc = import_module("pyarrow").ipc
        with ipc.open_stream(stream) as reader:
            return reader.read_all()

    # ---- atomic batches

    async def stage(
        self,
        stage: str,
        topic: str,
        records: Iterable[RecordFields],
        *,
        node: str | None = None,
        partition: int | None = None,
        key: str | None = None,
        delay_ms: int | None = None,
        not_before: datetime | int | None = None,
    ) -> StageState:
        """Put records aside for a topic under an id of your choice: durable, invisible, and gone unless published.

        A stage may be added to until it is published. Each stage is for one partition of one topic. Jobs may wait:
        nobody gets them before `delay_ms` after they are published, or before `not_before`, which is a `datetime` with
        a time zone or milliseconds since 1970. Instead each record may have one of the two.
        """
        request = StageRequest(
            stage=stage,
            topic=topic,
            records=prepared(records),
            node=node,
            partition=partition,
            key=key,
            delay_ms=delay_ms,
            not_before_ms=moment_ms(not_before),
        )
        return await self._transport.stage(request)

    async def publish(self, stages: Sequence[str], *, producer: tuple[str, int]) -> Published:
        """Make the records of several stages visible in one commit, in this order: all of them, or none.

        `producer` is an id and an epoch that counts up. Publishing again with the same two gives the first answer.
        """
        return await self._transport.publish(stages, producer=producer)

    async def abort(self, stages: Sequence[str]) -> Aborted:
        """Throw stages away; the answer names those that were there."""
        return await self._transport.abort(stages)

    # ---- producers

    async def producers(self, topic: str | None = None, *, prefix: str = "") -> AsyncIterator[ProducerState]:
        """The producers that the server remembers, in order of their ids: of batches, or of records of one topic.

            async for producer in client.producers("orders"):
                print(producer.producer_id, producer.last_used_ts)

        Ids that begin with `~` are forgotten after a day; all others stay until `forget_producer`.
        """
        after = ""
        while True:
            page = await self._transport.producers(topic, prefix=prefix, after=after, limit=PRODUCERS_PAGE)
            for producer in page.producers:
                yield producer
            after = page.next_after
            if not after:
                return

    async def forget_producer(self, producer_id: str, *, topic: str | None = None) -> ForgottenProducer:
        """Forget a producer that is never used again: of batches, or of records of one topic.

        Nothing fences it or tells its repeated writes from new ones after this.
        """
        return await self._transport.forget_producer(producer_id, topic)


def _places(
    topics: Mapping[str, int] | Iterable[str],
    tail: bool,
    node: str | Sequence[str],
    match: Match | None,
    from_ts: int | None,
) -> list[Place]:
    """Where following each of several topics begins."""
    names = [topics] if isinstance(topics, str) else topics
    begins = names if isinstance(names, Mapping) else dict.fromkeys(names, 0)
    if not begins:
        raise InvalidRequest("topics names none: give at least one", field="topics", expected="one name or more")
    check_beginning(tail=tail, from_seq=any(begins.values()), from_ts=from_ts is not None)
    time = as_time(from_ts)
    places = []
    for name, from_seq in begins.items():
        topic, partition = parse_cursor_name(name)
        request = ReadRequest(from_seq=from_seq, from_ts=time, partition=partition, nodes=as_nodes(node), match=match)
        places.append(Place(topic=topic, request=request, tail=tail))
    return places
