"""One topic, as a program uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

from topics.client.cursors import CursorStore
from topics.client.fields import ConfigFields, RecordFields, check_config
from topics.client.follow import COMMIT_MS, follow
from topics.client.group import Group
from topics.client.match import Match
from topics.client.payload import prepared
from topics.client.producer import Producer, TopicProducer
from topics.client.produceroptions import ProducerFields
from topics.client.transport import DeleteRequest, Place, ReadRequest, Transport, WriteRequest
from topics.errors import InvalidRequest
from topics.groupmodel import GroupState
from topics.limits import U64_MAX
from topics.model import (
    ArchiveDropped,
    ArchiveState,
    Configured,
    Deleted,
    Dropped,
    Gap,
    Page,
    Record,
    TopicState,
    Written,
)


class Topic:
    """A topic by its name. Making this object touches nothing; the first write creates the topic if need be."""

    def __init__(self, transport: Transport, name: str, make_producer: Callable[[ProducerFields], Producer]) -> None:
        self._transport = transport
        self._name = name
        self._make_producer = make_producer

    def __repr__(self) -> str:
        return f"<Topic {self._name}>"

    @property
    def name(self) -> str:
        """The name, which is the topic's identity."""
        return self._name

    # ---- the topic itself

    async def create(self, *, if_missing: bool = False, **config: Unpack[ConfigFields]) -> Configured:
        """Create the topic, or give it this config: what is not named has its default.

        With `if_missing` a topic that exists stays as it is; the answer says with `created` and `config` what is there.
        """
        fields = check_config(config)
        return await self._transport.configure(self._name, fields, merge=False, if_missing=if_missing)

    async def configure(self, **config: Unpack[ConfigFields]) -> Configured:
        """Change the named config fields of an existing topic; the others stay."""
        return await self._transport.configure(self._name, check_config(config), merge=True)

    async def state(self, *, partition: int = 0, touch: bool = True) -> TopicState:
        """One partition as it is now: its first and last seq, counts, config. `touch` counts as a read of it."""
        return await self._transport.state(self._name, partition=partition, touch=touch)

    async def drop(self, *, if_empty: bool = False) -> Dropped:
        """Delete the topic with everything in it, for good. A topic of the same name starts again at seq 1.

        Routers from it or to it go with it; the answer names them.
        """
        return await self._transport.drop(self._name, if_empty=if_empty)

    async def report_archive(
        self, archive: str, upto_seq: int, *, location: str = "", partition: int = 0, epoch: int | None = None
    ) -> ArchiveState:
        """Say that an archive of yours has every record of a partition up to `upto_seq`.

            page = await orders.diff(from_seq, limit=1000)
            await store(page.records)
            await orders.report_archive("s3", page.next_from_seq, location="s3://bucket/orders")

        With `protect_unarchived` retention takes only what all archives of the topic have. A report that is repeated or
        late changes nothing. `epoch` is that of the topic that was archived: one that was made anew since is refused.
        `state().archives` shows how far each is.
        """
        return await self._transport.report_archive(
            self._name, archive, upto_seq, location=location, partition=partition, epoch=epoch
        )

    async def drop_archive(self, archive: str) -> ArchiveDropped:
        """Forget an archive that nobody goes on with: retention waits for it no longer. What is in it stays there."""
        return await self._transport.drop_archive(self._name, archive)

    # ---- writing

    async def write(
        self,
        data: Any,
        *,
        tag: str | None = None,
        node: str | None = None,
        meta: Mapping[str, str] | None = None,
        content_type: str | None = None,
        partition: int | None = None,
        key: str | None = None,
        idempotency_key: str | None = None,
        producer: tuple[str, int, int] | None = None,
        create: bool | None = None,
        config: ConfigFields | None = None,
    ) -> Written:
        """Append one record; the answer comes when it is as safe as the topic's durability class says.

            done = await orders.write({"sku": "A1"}, tag="order-1", idempotency_key="request-17")
            print(done.first_seq, done.deduped)

        `data` is any JSON value, or bytes, which readers get back as bytes, with `content_type` in their meta. `key`
        picks the partition by hash, `partition` by number. `create` and `config` say what happens when the topic does
        not exist yet.

        A write repeated with the same `idempotency_key`, or the same `producer` (id, epoch, sequence), is answered and
        not appended again. So a write with one of them is repeated for you when a connection breaks. One without may
        end in `ConnectionFailed` or `TimedOut`, and then nobody knows whether it was carried out.
        """
        record: RecordFields = {"data": data, "tag": tag, "node": node, "meta": meta}
        if content_type is not None:
            record["content_type"] = content_type
        return await self.write_many(
            [record],
            partition=partition,
            key=key,
            idempotency_key=idempotency_key,
            producer=producer,
            create=create,
            config=config,
        )

    async def write_many(
        self,
        records: Iterable[RecordFields],
        *,
        node: str | None = None,
        partition: int | None = None,
        key: str | None = None,
        idempotency_key: str | None = None,
        producer: tuple[str, int, int] | None = None,
        create: bool | None = None,
        config: ConfigFields | None = None,
    ) -> Written:
        """Append records in one atomic write: consecutive seqs, all or none.

        Each is a mapping with `data` and, if wanted, `tag`, `node`, `meta` and `content_type`; `node` here is for those
        without one.

            await orders.write_many([{"data": {"sku": "B2"}, "tag": "order-2"}, {"data": {"sku": "C3"}}])

        The other keywords are those of `write`.
        """
        request = WriteRequest(
            records=prepared(records),
            node=node,
            partition=partition,
            key=key,
            idempotency_key=idempotency_key,
            producer=producer,
            create=create,
            config=None if config is None else check_config(config),
        )
        return await self._transport.write(self._name, request)

    def producer(self, **options: Unpack[ProducerFields]) -> TopicProducer:
        """Hands records over one by one and has them written in batches, each once and in order.

            async with orders.producer(linger_ms=20) as producer:
                delivery = await producer.send({"sku": "A1"})
            print((await delivery).seq)

        Options: `linger_ms` (5), `batch_records_max` (1000), `batch_bytes_max` (512 KiB), `buffer_bytes_max` (32 MiB),
        `delivery_timeout_ms` (2 min), `id` and `epoch` to be told from others, and as in `write`: `node`, `create`,
        `config`.
        """
        return TopicProducer(self._make_producer(options), self._name)

    # ---- reading

    async def diff(
        self,
        from_seq: int = 0,
        limit: int = 0,
        *,
        node: str | Sequence[str] = (),
        include_tags: bool = True,
        include_meta: bool = True,
        wait_ms: int = 0,
        match: Match | None = None,
        partition: int = 0,
        max_batch_bytes: int = 0,
        from_ts: int | None = None,
    ) -> Page:
        """The records behind a cursor, one page of them; go on with `page.next_from_seq`.

        Records written by `node` are left out, and so are those whose tag does not match `match`. A page may be empty
        and still move the cursor; `page.caught_up` says that there is no more. `page.tombstone` tells of records that
        were lost before they were read. With nothing to tell, it waits up to `wait_ms`, at most half a minute.

        With `from_ts`, milliseconds since 1970 on the clock of the engine, it begins no earlier than with the first
        record of that time. It is for the first page; the cursor is enough for those behind it.
        """
        request = ReadRequest(
            from_seq=from_seq,
            from_ts=as_time(from_ts),
            partition=partition,
            limit=limit,
            max_batch_bytes=max_batch_bytes,
            nodes=as_nodes(node),
            match=match,
            include_tags=include_tags,
            include_meta=include_meta,
            wait_ms=wait_ms,
        )
        return await self._transport.read(self._name, request)

    def follow(
        self,
        from_seq: int = 0,
        *,
        tail: bool = False,
        node: str | Sequence[str] = (),
        match: Match | None = None,
        partition: int = 0,
        cursors: CursorStore | None = None,
        commit_ms: int = COMMIT_MS,
        from_ts: int | None = None,
    ) -> AsyncIterator[Record | Gap]:
        """Every record behind a cursor, and those to come, without end.

            async for event in orders.follow(cursors=topics.FileCursors("billing.cursors")):
                if isinstance(event, topics.Gap):
                    print("lost", event.gap_from, "to", event.gap_to, "because of", event.reason)
                else:
                    print(event.seq, event.data)

        Where records were lost before they could be read, a `Gap` comes in their place. With `tail` it begins behind
        what is there at the first step. With `from_ts`, milliseconds since 1970 on the clock of the engine, it begins
        with the first record of that time or later that is there at the first step, and behind all of them when there
        is none. It ends with `TopicNotFound` when the topic is dropped. When the server goes away, it waits for it and
        goes on where it was.

        With `cursors` it goes on where it was the last time: an event is done when the next one is asked for, and
        what is done is saved within `commit_ms`, with 0 at once. After a crash the events since then come again.
        """
        check_beginning(tail=tail, from_seq=bool(from_seq), from_ts=from_ts is not None)
        if self._name.endswith("*"):
            message = f'"{self._name}" is no name of a topic; client.follow takes the beginning of names'
            raise InvalidRequest(message, field="topic", value=self._name, expected="a name")
        request = ReadRequest(
            from_seq=from_seq, from_ts=as_time(from_ts), partition=partition, nodes=as_nodes(node), match=match
        )
        return follow(self._transport, Place(topic=self._name, request=request, tail=tail), cursors, commit_ms)

    def group(self, name: str, *, consumer: str = "") -> Group:
        """The consumer group of this name, whether it exists already or not: a position that the engine keeps.

        `consumer` is a name for this program within the group.
        """
        return Group(self._transport, self._name, name, consumer)

    async def groups(self) -> list[GroupState]:
        """All consumer groups of this topic, by name and partition."""
        return await self._transport.groups(self._name)

    # ---- deleting

    async def delete(
        self,
        before_seq: int | None = None,
        *,
        match: Match | None = None,
        erase: bool = False,
        dry_run: bool = False,
        partition: int = 0,
    ) -> Deleted:
        """Delete records below `before_seq`, or whose tag matches, or both; those written later are not touched.

        `match` is a tag, or `["tag", "Glob", "prefix*"]`. They are gone for every reader at once, and nobody is told of
        a gap. With `erase`, their bytes are gone from disk as well when this returns. With `dry_run` nothing goes, and
        `deleted` is how many would.
        """
        request = DeleteRequest(partition=partition, before_seq=before_seq, match=match, erase=erase, dry_run=dry_run)
        return await self._transport.delete(self._name, request)


def as_nodes(node: str | Sequence[str]) -> Sequence[str]:
    """One node or several, as several."""
    return (node,) if isinstance(node, str) else node


def as_time(from_ts: int | None) -> int | None:
    """A time to begin at. The clock of Python counts seconds, with a fraction: that would be a day in 1970."""
    if from_ts is None:
        return None
    if not isinstance(from_ts, int) or isinstance(from_ts, bool) or not 0 <= from_ts <= U64_MAX:
        expected = "whole milliseconds since 1970"
        message = f"from_ts must be {expected}, not {from_ts!r}"
        raise InvalidRequest(message, field="from_ts", value=str(from_ts), expected=expected)
    return from_ts


def check_beginning(**begins: bool) -> None:
    """Of the ways to say where following begins, at most one may be said."""
    said = [name for name, is_said in begins.items() if is_said]
    if len(said) > 1:
        raise InvalidRequest(f"{' and '.join(said)} each say where to begin: give one of them", field=said[0])
