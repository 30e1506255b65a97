"""A stream of messages made of pops that wait, for engines that are reached by calls.

There are as many pops under way as one: it asks for as many messages as there are credits, and a credit that is granted
meanwhile counts for the next one. What is not settled at the end is given back by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from topics.client.heaptransport import Arrived, HeapTransport, NackRequest, PopRequest
from topics.client.parts import in_parts
from topics.errors import TopicsError
from topics.heapmodel import AckedMessages, ExtendedLeases, LeaseRef, NackedMessages
from topics.limits import CLAIM_MAX_DEFAULT, CLAIM_WAIT_MS_MAX

POP_MAX: Final = CLAIM_MAX_DEFAULT


class PolledStream:
    """A `HeapStream`."""

    def __init__(self, transport: HeapTransport, topic: str, request: PopRequest) -> None:
        self._transport = transport
        self._topic = topic
        self._request = request
        self._credits = 0
        self._granted = asyncio.Event()
        self._held: dict[str, LeaseRef] = {}
        """By token: received, and not settled."""
        self._arrived: Arrived = lambda messages: None

    async def open(self, arrived: Arrived) -> int:
        self._arrived = arrived
        info = await self._transport.heap_info(self._topic)
        return self._request.visibility_ms or info.config.visibility_timeout_ms

    @property
    def is_over(self) -> bool:
        """Leases that calls have got outlive a connection."""
        return False

    def grant(self, credits: int) -> None:
        self._credits += credits
        self._granted.set()

    async def receive(self) -> None:
        while True:
            while not self._credits:
                self._granted.clear()
                await self._granted.wait()
            wanted = replace(self._request, max=min(self._credits, POP_MAX), wait_ms=CLAIM_WAIT_MS_MAX)
            messages = (await self._transport.pop(self._topic, wanted)).messages
            if messages:
                self._credits -= len(messages)
                self._held |= {
                    message.lease_token: LeaseRef(message.lease_token, message.message_id) for message in messages
                }
                self._arrived(messages)
                return

    async def ack(self, leases: Sequence[LeaseRef]) -> AckedMessages:
        done = await self._transport.ack(self._topic, leases)
        self._let_go(leases)
        return done

    async def nack(self, request: NackRequest) -> NackedMessages:
        done = await self._transport.nack(self._topic, request)
        self._let_go(request.leases)
        return done

    async def extend(self, leases: Sequence[LeaseRef], extension_ms: int) -> ExtendedLeases:
        return await self._transport.extend(self._topic, leases, extension_ms)

    async def close(self) -> None:
        held, self._held = list(self._held.values()), {}
        if held:
            with suppress(TopicsError):
                await in_parts(held, self._release)

    async def _release(self, leases: Sequence[LeaseRef]) -> None:
        await self._transport.nack(self._topic, NackRequest(leases=leases, undelivered=True))

    def _let_go(self, leases: Sequence[LeaseRef]) -> None:
        for lease in leases:
            self._held.pop(lease.lease_token, None)
