"""One consumer group, as a program uses it: batches are consumed, acked and given back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from topics.client.batchkeeper import kept
from topics.client.grouptransport import ConsumeRequest, SettleRequest
from topics.client.outage import Outage
from topics.client.transport import Transport
from topics.errors import InvalidRequest, TopicsError
from topics.groupmodel import (
    EARLIEST,
    LATEST,
    AckedGroup,
    DroppedGroup,
    ExtendedGroup,
    GroupBatch,
    GroupState,
    NackedGroup,
    PausedGroup,
    PlacedGroup,
    Start,
    at_seq,
    at_ts,
)
from topics.limits import CLAIM_WAIT_MS_MAX, GROUP_LIMIT_DEFAULT, SECOND_MS

StartAt = str | int | datetime
"""`"earliest"`, `"latest"`, a seq (inclusive), or a `datetime` with a time zone."""

_START_EXPECTED: Final = '"earliest", "latest", a seq, or a datetime with a time zone'


class Group:
    """A consumer group of a topic, by its name. Making this object touches nothing; a first consume or ack creates it.

    `consumer` is a name for whoever consumes through this object: it shows in the state, and an ack by seq covers all
    its claims up to there.
    """

    def __init__(self, transport: Transport, topic: str, name: str, consumer: str = "") -> None:
        self._transport = transport
        self._topic = topic
        self._name = name
        self._consumer = consumer

    def __repr__(self) -> str:
        return f"<Group {self._name} of {self._topic}>"

    @property
    def name(self) -> str:
        """The name, which is the group's identity within its topic."""
        return self._name

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self._topic

    @property
    def consumer(self) -> str:
        """The name under which this program consumes; empty when it has none."""
        return self._consumer

    # ---- taking records

    async def take(
        self,
        limit: int = GROUP_LIMIT_DEFAULT,
        *,
        start: StartAt | None = None,
        wait_ms: int = 0,
        partition: int | None = None,
        visibility_ms: int | None = None,
        max_batch_bytes: int = 0,
        include_tags: bool = True,
    ) -> GroupBatch:
        """The next records, claimed for this consumer; `batch.last_seq` is 0 when there are none.

            batch = await group.take(10, wait_ms=5000)
            for record in batch.records:
                print(record.data)
            await group.ack(batch)

        Nobody else gets them for `visibility_ms`, or for as long as the topic says. `start` counts when the group is
        made, which the first call does. Without `partition` the records come from any. `batch.tombstone` tells of
        records that the group lost. With nothing there it waits up to `wait_ms`, at most half a minute.
        """
        request = self._request(limit, start, wait_ms, partition, visibility_ms, max_batch_bytes, include_tags)
        return await self._transport.consume(self._topic, self._name, request)

    async def consume(
        self,
        limit: int = GROUP_LIMIT_DEFAULT,
        *,
        auto_ack: bool = True,
        keep: bool = True,
        start: StartAt | None = None,
        partition: int | None = None,
        visibility_ms: int | None = None,
        max_batch_bytes: int = 0,
        include_tags: bool = True,
    ) -> AsyncIterator[GroupBatch]:
        """Batches without end, each claimed for this consumer, and those to come.

            async for batch in orders.group("billing").consume():
                for record in batch.records:
                    print(record.seq, record.data)

        A batch is acked when the next one is asked for: leaving the loop, or an error in it, acks nothing, and gives
        the last batch back, for others to have at once. With `auto_ack=False` acks are yours, by `ack(batch)`.

        While you work on a batch it is kept for you, however long that takes: its claim is extended until you ask for
        the next one or leave the loop. With `keep=False` it is yours for `visibility_ms` and no longer.

        A batch may have a `tombstone` and no records: what was lost, told so. When the server goes away, it waits for
        it and goes on; one that was never there is `ConnectionFailed`. It ends with `TopicNotFound` when the topic is
        dropped, with `GroupNotFound` when the group is.
        """
        request = self._request(
            limit, start, CLAIM_WAIT_MS_MAX, partition, visibility_ms, max_batch_bytes, include_tags
        )
        outage = self._transport.outage()
        held: GroupBatch | None = None
        try:
            while True:
                batch = await self._next(request, held, outage)
                held = None
                if batch.last_seq:
                    held = batch if auto_ack else None
                    async with kept(batch if keep else None, self.extend, self._transport.may_pass):
                        yield batch
        finally:
            if held is not None:
                with suppress(TopicsError):
                    await self.nack(held)

    async def _next(self, request: ConsumeRequest, acked: GroupBatch | None, outage: Outage) -> GroupBatch:
        """The next batch, behind the ack of the one before; as often as it takes."""
        request = replace(request, acked=acked)
        while True:
            try:
                batch = await self._transport.consume(self._topic, self._name, request)
            except TopicsError as error:
                await outage.wait(error)
            else:
                outage.over()
                return batch

    def _request(
        self,
        limit: int,
        start: StartAt | None,
        wait_ms: int,
        partition: int | None,
        visibility_ms: int | None,
        max_batch_bytes: int,
        include_tags: bool,
    ) -> ConsumeRequest:
        return ConsumeRequest(
            limit=limit,
            wait_ms=wait_ms,
            start=None if start is None else as_start("start", start),
            partition=partition,
            consumer=self._consumer,
            visibility_ms=visibility_ms,
            max_batch_bytes=max_batch_bytes,
            include_tags=include_tags,
        )

    # ---- what becomes of them

    async def ack(
        self, done: GroupBatch | int, *, from_seq: int = 0, upto_seq: int | None = None, partition: int = 0
    ) -> AckedGroup:
        """Say that records are done: a batch, or the part of it up to `upto_seq`, or all up to a seq.

        By seq it is the claim that holds that seq, or all claims of this consumer if it has a name, and what was never
        handed out below. `from_seq` narrows it. `committed_seq` of the answer is how far the group has come without a
        gap.
        """
        return await self._transport.ack_group(
            self._topic, self._name, self._settle(done, from_seq, upto_seq, partition)
        )

    async def nack(
        self,
        undone: GroupBatch | int,
        *,
        from_seq: int = 0,
        upto_seq: int | None = None,
        delay_ms: int = 0,
        partition: int = 0,
    ) -> NackedGroup:
        """Give records back, to be handed out again after `delay_ms`: a batch, or a part of it, or by a seq."""
        request = self._settle(undone, from_seq, upto_seq, partition)
        return await self._transport.nack_group(self._topic, self._name, request, delay_ms=delay_ms)

    async def extend(
        self, batch: GroupBatch | int, *, visibility_ms: int | None = None, partition: int = 0
    ) -> ExtendedGroup:
        """Keep records for `visibility_ms` from now, or as long as the topic says."""
        request = self._settle(batch, 0, None, partition)
        return await self._transport.extend_group(self._topic, self._name, request, visibility_ms=visibility_ms)

    def _settle(self, which: GroupBatch | int, from_seq: int, upto_seq: int | None, partition: int) -> SettleRequest:
        if isinstance(which, GroupBatch):
            return SettleRequest(
                upto_seq=which.last_seq if upto_seq is None else upto_seq,
                from_seq=from_seq,
                partition=which.partition,
                consumer=which.consumer,
                claim_id=which.claim_id,
            )
        if upto_seq is not None:
            raise InvalidRequest("upto_seq goes with a batch; by seq, give the seq alone", field="upto_seq")
        return SettleRequest(upto_seq=which, from_seq=from_seq, partition=partition, consumer=self._consumer)

    # ---- the group itself

    async def state(self, *, partition: int = 0) -> GroupState:
        """How it stands in one partition: committed seq, lag, members, ranges, losses."""
        return await self._transport.group_state(self._topic, self._name, partition=partition)

    async def reset(self, to: StartAt, *, partition: int = 0) -> PlacedGroup:
        """Go on elsewhere, forwards or backwards; makes the group if it is not there.

        await group.reset(datetime(2026, 1, 1, tzinfo=UTC))
        """
        return await self._transport.reset_group(self._topic, self._name, as_start("to", to), partition=partition)

    async def pause(self) -> PausedGroup:
        """Hand out nothing until `resume`, in no partition; what is out can be acked."""
        return await self._transport.pause_group(self._topic, self._name, paused=True)

    async def resume(self) -> PausedGroup:
        """Go on handing out."""
        return await self._transport.pause_group(self._topic, self._name, paused=False)

    async def drop(self) -> DroppedGroup:
        """Forget the group, in all partitions."""
        return await self._transport.drop_group(self._topic, self._name)


def as_start(field: str, given: StartAt) -> Start:
    """Where a group begins, as the wire has it."""
    match given:
        case "earliest":
            return EARLIEST
        case "latest":
            return LATEST
        case datetime() if given.tzinfo is not None:
            return at_ts(round(given.timestamp() * SECOND_MS))
        case int() if given >= 0 and not isinstance(given, bool):
            return at_seq(given)
    raise InvalidRequest(
        f"{field} must be {_START_EXPECTED}, not {given!r}", field=field, value=str(given), expected=_START_EXPECTED
    )
