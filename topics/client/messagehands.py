"""What a consumer says about the messages it has, and how: acks in batches, leases kept by one heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topics.client.heaptransport import HeapTransport, NackRequest, Settler
from topics.client.heartbeat import Heartbeat
from topics.client.heldmessage import HeldMessage
from topics.client.messageacks import MessageAcks
from topics.client.parts import in_parts
from topics.errors import TopicsError
from topics.heapmodel import AckedMessages, ExtendedLeases, LeaseRef, NackedMessages


class Calls:
    """A `Settler` that calls, for messages that came by a call."""

    def __init__(self, transport: HeapTransport, topic: str) -> None:
        self._transport = transport
        self._topic = topic

    async def ack(self, leases: Sequence[LeaseRef]) -> AckedMessages:
        return await self._transport.ack(self._topic, leases)

    async def nack(self, request: NackRequest) -> NackedMessages:
        return await self._transport.nack(self._topic, request)

    async def extend(self, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases:
        return await self._transport.extend(self._topic, leases, extension_ms)


class MessageHands:
    """For the messages of one stream, or of one heap."""

    def __init__(self, settler: Settler, may_pass: Callable[[TopicsError], bool]) -> None:
        self._settler = settler
        self._heartbeat: Heartbeat[HeldMessage] = Heartbeat(self._extend_many, may_pass)
        self._acks = MessageAcks(settler.ack)

    async def ack(self, held: HeldMessage) -> bool:
        if held.lost:
            return False
        return _over(held, await self._acks.ack(held.lease))

    async def nack(self, held: HeldMessage, backoff_ms: int | None, reason: str, undelivered: bool = False) -> bool:
        if held.lost:
            return False
        request = NackRequest(leases=[held.lease], backoff_ms=backoff_ms, reason=reason, undelivered=undelivered)
        return _over(held, not (await self._settler.nack(request)).lost)

    async def extend(self, held: HeldMessage, extension_ms: int) -> bool:
        if not held.over:
            await self._extend_many([held], extension_ms)
        return not held.over

    async def _extend_many(self, many: Sequence[HeldMessage], lease_ms: int) -> None:
        async def extend(some: Sequence[HeldMessage]) -> None:
            done = await self._settler.extend([held.lease for held in some], lease_ms)
            lost = {lease.place for lease in done.lost}
            for place, held in enumerate(some):
                if place in lost:
                    held.lose()
                else:
                    held.extended(done.lease_deadline_ms, lease_ms)

        await in_parts(many, extend)

    def keep(self, held: HeldMessage) -> None:
        """Have its lease extended from now on."""
        self._heartbeat.keep(held)

    def let_go(self, held: HeldMessage) -> None:
        self._heartbeat.let_go(held)


def _over(held: HeldMessage, done: bool) -> bool:
    """Nothing more is to be said about it, one way or the other."""
    if done:
        held.settle()
    else:
        held.lose()
    return done
