"""What a worker says about the jobs of one queue, and how: acks in batches, leases kept by one heartbeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from topics.client.acks import Acks
from topics.client.fields import RecordFields
from topics.client.heartbeat import Heartbeat
from topics.client.held import Held, held_of
from topics.client.jobtransport import ClaimRequest, HeldRequest, ResultRequest
from topics.client.parts import in_parts
from topics.client.payload import prepared
from topics.client.retry import Retry
from topics.client.transport import Transport
from topics.model import CompletedJobs


class JobHands:
    def __init__(self, transport: Transport, topic: str, node: str, retry: Retry) -> None:
        self.retry = retry
        self.heartbeat = Heartbeat(self.extend_held, transport.may_pass)
        self._transport = transport
        self._topic = topic
        self._node = node
        self._acks = Acks(self._ack_many)

    async def claim(self, most: int, lease_ms: int, wait_ms: int, partition: int) -> list[Held]:
        request = ClaimRequest(node=self._node, max=most, lease_ms=lease_ms, wait_ms=wait_ms, partition=partition)
        return held_of(await self._transport.claim(self._topic, request), lease_ms)

    async def ack_held(self, held: Held) -> bool:
        done = await self._acks.ack(held)
        held.settle(done)
        return done

    async def _ack_many(self, many: Sequence[Held]) -> set[int]:
        skipped: set[int] = set()

        async def ack(some: Sequence[Held]) -> None:
            skipped.update((await self._transport.ack(self._topic, self._named(some))).skipped)

        await in_parts(many, ack)
        return skipped

    async def nack_held(self, held: Held, delay_ms: int) -> bool:
        done = await self._transport.nack(self._topic, self._named([held]), delay_ms=delay_ms)
        held.settle(not done.skipped)
        return not done.skipped

    async def release(self, many: Sequence[Held]) -> None:
        """Give back jobs that nobody has looked at, for others to have at once."""

        async def nack(some: Sequence[Held]) -> None:
            await self._transport.nack(self._topic, self._named(some), delay_ms=0, undelivered=True)
            for held in some:
                held.settle()

        for partition in {held.partition for held in many}:
            await in_parts([held for held in many if held.partition == partition], nack)

    async def extend_held(self, many: Sequence[Held], lease_ms: int) -> None:
        """Keep jobs of one partition; what is not to be had any more is lost."""

        async def extend(some: Sequence[Held]) -> None:
            done = await self._transport.extend(self._topic, self._named(some), lease_ms=lease_ms)
            for held in some:
                held.lease_ms = lease_ms
                deadline_ms = done.deadlines.get(held.seq)
                if deadline_ms is None:
                    held.lose()
                else:
                    held.extended(deadline_ms)

        await in_parts(many, extend)

    async def complete_held(self, held: Held, results: Mapping[str, Iterable[RecordFields]]) -> CompletedJobs:
        requests = [ResultRequest(topic=topic, records=prepared(records)) for topic, records in results.items()]
        done = await self._transport.complete(self._topic, self._named([held]), requests)
        held.settle()
        return done

    def keep(self, held: Held) -> None:
        self.heartbeat.keep(held)

    def let_go(self, held: Held) -> None:
        self.heartbeat.let_go(held)

    def _named(self, many: Sequence[Held]) -> HeldRequest:
        return HeldRequest(
            node=self._node,
            seqs=[held.seq for held in many],
            lease_ids=[held.lease_id for held in many],
            partition=many[0].partition,
        )
