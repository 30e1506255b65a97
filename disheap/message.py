"""A message that a consumer has."""

from __future__ import annotations

from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import topics
from disheap.durations import Seconds, optional_ms


class Message:
    """Leased to this consumer until it acks it, gives it back, or lets the time pass.

    Use it as `async with message`: its lease is then extended as long as need be, it is acked at the end, and given
    back when the block raises.
    """

    def __init__(self, behind: topics.Message) -> None:
        self._behind = behind

    def __repr__(self) -> str:
        return repr(self._behind)

    @property
    def message_id(self) -> str:
        return self._behind.id

    @property
    def topic(self) -> str:
        return self._behind.topic

    @property
    def partition_id(self) -> int:
        return self._behind.partition

    @property
    def payload(self) -> bytes:
        return self._behind.payload

    @property
    def priority(self) -> int:
        return self._behind.priority

    @property
    def enqueued_time(self) -> datetime:
        return datetime.fromtimestamp(self._behind.enqueued_ms / 1000, UTC)

    @property
    def lease_token(self) -> str:
        return self._behind.lease_token

    @property
    def lease_deadline(self) -> datetime:
        return datetime.fromtimestamp(self._behind.deadline_ms / 1000, UTC)

    @property
    def attempts(self) -> int:
        """Deliveries that failed before this one."""
        return self._behind.attempts

    @property
    def max_retries(self) -> int:
        return self._behind.max_retries

    @property
    def settled(self) -> bool:
        """Whether it was acked or given back."""
        return self._behind.settled

    @property
    def lost(self) -> bool:
        """Whether its lease has turned out to be gone."""
        return self._behind.lost

    async def ack(self) -> None:
        """It is done, and deleted. Raises `LeaseLostError` when its lease was gone."""
        self._check(await self._behind.ack())

    async def nack(self, backoff: Seconds | None = None, reason: str = "") -> None:
        """It was not done, and comes again after `backoff`, or after longer with each attempt."""
        self._check(await self._behind.nack(optional_ms(backoff), reason=reason))

    async def extend(self, extension: Seconds | None = None) -> None:
        """Keep it for so long from now, or for as long as it was leased for."""
        self._check(await self._behind.extend(optional_ms(extension)))

    def _check(self, done: bool) -> None:
        if not done:
            raise topics.errors.LeaseLost(
                f"the lease of message {self.message_id} of topic {self.topic} is gone: others get it, or had it",
                message_id=self.message_id,
            )

    async def __aenter__(self) -> Self:
        await self._behind.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._behind.__aexit__(kind, error, trace)
