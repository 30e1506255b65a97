"""A job as a program has it: what it is, how it is held, and the few things that can be said about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from topics.client.fields import RecordFields
from topics.client.held import Held
from topics.client.retry import Retry
from topics.model import CompletedJobs


class Hands(Protocol):
    """What a job is settled with: the queue it came from."""

    retry: Retry

    async def ack_held(self, held: Held) -> bool: ...

    async def nack_held(self, held: Held, delay_ms: int) -> bool: ...

    async def extend_held(self, many: Sequence[Held], lease_ms: int) -> None: ...

    async def complete_held(self, held: Held, results: Mapping[str, Iterable[RecordFields]]) -> CompletedJobs: ...

    def keep(self, held: Held) -> None:
        """Have its lease extended from now on."""

    def let_go(self, held: Held) -> None:
        """Not any more."""


class JobFacts:
    """What a job is and how it is held, the same for asyncio and for plain code."""

    _held: Held

    def __repr__(self) -> str:
        return repr(self._held)

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._held.queue

    @property
    def partition(self) -> int:
        """The partition of the queue that it is in."""
        return self._held.partition

    @property
    def seq(self) -> int:
        """Its number in the queue: the same on each delivery, so what was done can be known by it."""
        return self._held.record.seq

    @property
    def ts(self) -> int:
        """When it was put, in milliseconds since 1970."""
        return self._held.record.ts

    @property
    def data(self) -> Any:
        """What was put: the JSON value, or bytes when bytes were put."""
        return self._held.record.data

    @property
    def tag(self) -> str | None:
        """The tag it was put with."""
        return self._held.record.tag

    @property
    def node(self) -> str | None:
        """Who put it, if they said so."""
        return self._held.record.node

    @property
    def meta(self) -> Mapping[str, str]:
        """What else it was put with."""
        return self._held.record.meta or {}

    @property
    def deliveries(self) -> int:
        """How often it has been handed out, this time included."""
        return self._held.deliveries

    @property
    def lease_id(self) -> str:
        """The name of this delivery; no other has the same."""
        return self._held.lease_id

    @property
    def deadline_ms(self) -> int:
        """When others may get it unless it is settled or extended, in milliseconds since 1970 by the server's clock."""
        return self._held.deadline_ms

    @property
    def settled(self) -> bool:
        """Whether it was acked, completed or given back by this worker."""
        return self._held.settled

    @property
    def lost(self) -> bool:
        """Whether it turned out to be somebody else's by now, or deleted: better stop working on it."""
        return self._held.lost


class Job(JobFacts):
    """A job that a worker has. Use it as `async with job`, which keeps its lease, and acks it at the end.

    When the block raises, the job is given back and tried again after a while, longer with each delivery. Outside of
    the block a job has its lease and no more: when that runs out, others get it.
    """

    def __init__(self, hands: Hands, held: Held) -> None:
        self._hands = hands
        self._held = held

    async def ack(self) -> bool:
        """It is done, and deleted. False when it was not this worker's any more: somebody else does it again.

        When a connection breaks this is said again, and then false may mean that it was done the first time.
        """
        return await self._hands.ack_held(self._held)

    async def nack(self, delay_ms: int = 0) -> bool:
        """Give it back, to be claimed again after a delay of up to a day. False when it was not this worker's."""
        return await self._hands.nack_held(self._held, delay_ms)

    async def extend(self, lease_ms: int | None = None) -> bool:
        """Keep it for `lease_ms` from now, or for as long as it was claimed for. False when it was not to be had.

        Inside `async with job`, and while a worker's function has it, this happens by itself.
        """
        await self._hands.extend_held([self._held], self._held.lease_ms if lease_ms is None else lease_ms)
        return not self._held.over

    async def complete(self, results: Mapping[str, Iterable[RecordFields]]) -> CompletedJobs:
        """It is done, and these are its results, by topic: it is deleted and they are written in one commit.

            await job.complete({"thumbnails": [{"data": {"of": job.seq}}]})

        So they are written once, however often it was delivered: when it is not this worker's any more, nothing is
        changed and `LeaseLost` is raised.
        """
        return await self._hands.complete_held(self._held, results)

    async def __aenter__(self) -> Self:
        self._hands.keep(self._held)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._held.over:
                return
            if error is None:
                await self.ack()
            else:
                # What is no Exception ends a task or a program, and says nothing about the job.
                failed = isinstance(error, Exception)
                await self.nack(self._hands.retry.delay_ms(self.deliveries) if failed else 0)
        finally:
            self._hands.let_go(self._held)
