"""One queue, as a program uses it: jobs are put, claimed and worked on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from platform import node as host_name
from secrets import token_hex
from typing import Any, Final, Unpack

from topics.client.fields import ConfigFields, RecordFields, check_config
from topics.client.held import Held
from topics.client.intake import Intake
from topics.client.job import Job
from topics.client.jobhands import JobHands
from topics.client.jobtransport import HeldRequest, LeasesRequest, RedriveRequest
from topics.client.match import Match
from topics.client.moment import moment_ms
from topics.client.payload import prepared
from topics.client.redrive import redrive_steps
from topics.client.retry import FIRST_MS, MOST_MS, Retry
from topics.client.rotation import Rotation
from topics.client.transport import Transport, WriteRequest
from topics.client.worker import Handler, Worked, Worker
from topics.errors import InvalidRequest, NotAQueue
from topics.leasemodel import LeasePage
from topics.limits import CLAIM_MAX_DEFAULT, SECOND_MS
from topics.model import AckedJobs, Configured, ExtendedJobs, NackedJobs, Redriven, TopicState, TopicType, Written

SHUTDOWN_MS: Final = 30 * SECOND_MS
QUEUE: Final[ConfigFields] = {"type": "queue"}


class Queue:
    """A queue by its name. Making this object touches nothing; the first job that is put creates the queue if need be.

    `node` is the name under which this program holds jobs; one is made up when there is none.
    """

    def __init__(self, transport: Transport, name: str, node: str | None = None) -> None:
        self._transport = transport
        self._name = name
        self._node = node or _made_up_node()
        self._lease_ms: int | None = None

    def __repr__(self) -> str:
        return f"<Queue {self._name}>"

    @property
    def name(self) -> str:
        """The name, which is that of the topic it is."""
        return self._name

    @property
    def node(self) -> str:
        """Who holds the jobs that are claimed through this object."""
        return self._node

    # ---- the queue itself

    async def create(self, **config: Unpack[ConfigFields]) -> Configured:
        """Create the queue, or give it this config: what is not named has its default.

        await jobs.create(lease_ms=60_000, max_deliveries=5, dead_letter="jobs.dead")
        """
        return await self._transport.configure(self._name, {**QUEUE, **check_config(config)}, merge=False)

    async def state(self, *, partition: int = 0, touch: bool = True) -> TopicState:
        """One partition as it is now; its `queue` counts the jobs that are ready, in flight, delayed and dead."""
        return await self._transport.state(self._name, partition=partition, touch=touch)

    async def leases(self, *, after: int = 0, limit: int = 100, delayed: bool = False, partition: int = 0) -> LeasePage:
        """Who holds which jobs, since when and until when, in order of their seqs behind `after`; a page of them.

        With `delayed`, the jobs whose time has not come. `next_after` of the page is where the next one goes on; `nack`
        with its `node` and `lease_id` takes a job from whoever has it.
        """
        request = LeasesRequest(partition=partition, after=after, limit=limit, delayed=delayed)
        return await self._transport.leases(self._name, request)

    # ---- putting jobs

    async def put(
        self,
        data: Any,
        *,
        delay_ms: int | None = None,
        not_before: datetime | int | None = None,
        tag: str | None = None,
        meta: Mapping[str, str] | None = None,
        content_type: str | None = None,
        partition: int | None = None,
        key: str | None = None,
        idempotency_key: str | None = None,
        config: ConfigFields | None = None,
    ) -> Written:
        """Put one job; the answer comes when it is as safe as the queue's durability class says.

            await jobs.put({"send": "welcome", "to": "ada@example.org"}, idempotency_key="welcome-17")
            await jobs.put({"send": "reminder"}, delay_ms=3_600_000)

        Nobody gets it before `delay_ms` are over, nor before `not_before`, which is a `datetime` with a time zone or
        milliseconds since 1970. The other keywords are those of `Topic.write`.
        """
        record: RecordFields = {"data": data, "tag": tag, "meta": meta}
        if content_type is not None:
            record["content_type"] = content_type
        return await self.put_many(
            [record],
            delay_ms=delay_ms,
            not_before=not_before,
            partition=partition,
            key=key,
            idempotency_key=idempotency_key,
            config=config,
        )

    async def put_many(
        self,
        records: Iterable[RecordFields],
        *,
        delay_ms: int | None = None,
        not_before: datetime | int | None = None,
        partition: int | None = None,
        key: str | None = None,
        idempotency_key: str | None = None,
        config: ConfigFields | None = None,
    ) -> Written:
        """Put several jobs in one atomic write, all or none.

            await jobs.put_many({"data": {"resize": name}} for name in names)
            await jobs.put_many({"data": {"day": day}, "delay_ms": day * 86_400_000} for day in range(7))

        The delay is that of all of them, and each may have a `delay_ms` or `not_before` of its own: the later counts.
        """
        request = WriteRequest(
            records=prepared(records),
            partition=partition,
            key=key,
            idempotency_key=idempotency_key,
            config={**QUEUE, **check_config(config or {})},
            delay_ms=delay_ms,
            not_before_ms=moment_ms(not_before),
        )
        return await self._transport.write(self._name, request)

    # ---- taking jobs

    async def claim(
        self, max: int = 1, *, lease_ms: int | None = None, wait_ms: int = 0, partition: int = 0
    ) -> list[Job]:
        """Up to `max` jobs, leased to this program for `lease_ms`, or for as long as the queue says.

            for job in await jobs.claim(10, wait_ms=5000):
                async with job:
                    print(job.data)

        With none there it waits up to `wait_ms`, at most half a minute.
        """
        if lease_ms is None:
            lease_ms = await self._own_lease_ms()
        hands = self._hands(Retry())
        return [Job(hands, held) for held in await hands.claim(max, lease_ms, wait_ms, partition)]

    async def ack(
        self, seqs: Sequence[int], *, lease_ids: Sequence[str] | None = None, partition: int = 0
    ) -> AckedJobs:
        """Complete jobs by their seqs, wherever they were claimed: those that `node` has, by these leases if given."""
        return await self._transport.ack(self._name, self._named(seqs, lease_ids, partition))

    async def nack(
        self, seqs: Sequence[int], *, delay_ms: int = 0, lease_ids: Sequence[str] | None = None, partition: int = 0
    ) -> NackedJobs:
        """Give jobs back by their seqs, to be claimed again after a delay of up to a day."""
        return await self._transport.nack(self._name, self._named(seqs, lease_ids, partition), delay_ms=delay_ms)

    async def extend(
        self, seqs: Sequence[int], *, lease_ms: int, lease_ids: Sequence[str] | None = None, partition: int = 0
    ) -> ExtendedJobs:
        """Keep jobs by their seqs for `lease_ms` from now. Those that are not to be had any more are `skipped`."""
        return await self._transport.extend(self._name, self._named(seqs, lease_ids, partition), lease_ms=lease_ms)

    async def work(
        self,
        *,
        concurrency: int = 1,
        lease_ms: int | None = None,
        partition: int | None = None,
        retry_ms: int = FIRST_MS,
        retry_ms_max: int = MOST_MS,
        until_empty: bool = False,
    ) -> AsyncIterator[Job]:
        """Jobs as they come, without end, at most `concurrency` of them not settled at a time.

            async for job in jobs.work():
                async with job:
                    print(job.data)

        Inside `async with job` its lease is extended as long as need be. At the end of the block the job is acked; when
        the block raises, it is given back and tried again after about `retry_ms`, doubled with each delivery. With
        `until_empty` it ends when there is nothing to do. When the server goes away, it waits for it and goes on. The
        jobs are those of all partitions, unless one is named.

        To have several done at once, hand them to tasks, or use `run`, which does.
        """
        intake, hands = await self._intake(concurrency, lease_ms, partition, Retry(retry_ms, retry_ms_max), until_empty)
        try:
            while (held := await intake.next()) is not None:
                yield Job(hands, held)
        finally:
            await intake.close()

    async def run(
        self,
        handler: Handler,
        *,
        concurrency: int = 1,
        lease_ms: int | None = None,
        partition: int | None = None,
        retry_ms: int = FIRST_MS,
        retry_ms_max: int = MOST_MS,
        until_empty: bool = False,
        stop: asyncio.Event | threading.Event | None = None,
        shutdown_ms: int = SHUTDOWN_MS,
    ) -> Worked:
        """Have a function do the jobs as they come, up to `concurrency` at a time; what was done.

            await jobs.run(handle, concurrency=8)

        It is called with each `Job`. When it returns, the job is acked; when it raises, that is logged under
        `topics.worker` and the job given back as in `work`. Leases are extended meanwhile. A plain function runs in a
        thread, with a job for plain code.

        When `stop`, an event of asyncio or of threading, is set, no more jobs are taken, and those under way have
        `shutdown_ms` to finish; what is not done then is given back. Cancelling this gives back everything at once.
        """
        if not callable(handler):
            expected = "a function of a job"
            raise InvalidRequest(
                f"handler must be {expected}, not {type(handler).__name__}", field="handler", expected=expected
            )
        retry = Retry(retry_ms, retry_ms_max)
        intake, hands = await self._intake(concurrency, lease_ms, partition, retry, until_empty)
        worker = Worker(intake, hands, handler, retry, self._transport.may_pass, concurrency, shutdown_ms)
        return await worker.run(stop)

    # ---- dead letters

    async def redrive(
        self,
        *,
        dead_letter: str | None = None,
        destination: str | None = None,
        match: Match | None = None,
        reason: str | None = None,
        before_seq: int | None = None,
        limit: int | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
        partition: int = 0,
        on_progress: Callable[[Redriven], None] = lambda told: None,
    ) -> Redriven:
        """Take this queue's dead letters back, or to another queue, as new jobs with their deliveries counted anew.

            print((await jobs.redrive(dry_run=True)).moved, "would be tried again")
            await jobs.redrive(match="order-17", rate_per_second=100)

        They are in the topic that the queue's config names, unless `dead_letter` does. Only those with a tag that
        matches, with this reason, or below `before_seq` there; `limit` at most. `on_progress` is told after each step.
        """
        topic = dead_letter or await self._dead_letter()
        request = RedriveRequest(
            partition=partition,
            destination=destination,
            match=match,
            source=self._name,
            reason=reason,
            before_seq=before_seq,
            dry_run=dry_run,
        )
        told: Redriven | None = None
        async for told in redrive_steps(self._transport, topic, request, limit, rate_per_second):
            on_progress(told)
        assert told is not None, "there is at least one step"
        return told

    # ---- what the verbs above need to know

    def _named(self, seqs: Sequence[int], lease_ids: Sequence[str] | None, partition: int) -> HeldRequest:
        return HeldRequest(node=self._node, seqs=seqs, lease_ids=lease_ids, partition=partition)

    def _hands(self, retry: Retry) -> JobHands:
        return JobHands(self._transport, self._name, self._node, retry)

    async def _intake(
        self, concurrency: int, lease_ms: int | None, partition: int | None, retry: Retry, until_empty: bool
    ) -> tuple[Intake, JobHands]:
        if not isinstance(concurrency, int) or not 1 <= concurrency <= CLAIM_MAX_DEFAULT:
            expected = f"a whole number from 1 to {CLAIM_MAX_DEFAULT}"
            message = f"concurrency must be {expected}, not {concurrency!r}"
            raise InvalidRequest(message, field="concurrency", expected=expected)
        state = await self._queue_state()
        for_ms = lease_ms or state.config.lease_ms
        hands = self._hands(retry)

        async def claim_from(most: int, wait_ms: int, where: int) -> list[Held]:
            return await hands.claim(most, for_ms, wait_ms, where)

        async def claim_there(most: int, wait_ms: int) -> list[Held]:
            return await hands.claim(most, for_ms, wait_ms, partition or 0)

        claim = Rotation(claim_from, state.partitions).claim if partition is None else claim_there
        may_pass = self._transport.may_pass
        return Intake(claim, hands.release, hands.heartbeat, may_pass, concurrency, until_empty), hands

    async def _own_lease_ms(self) -> int:
        """How long the queue leases its jobs, asked for once."""
        if self._lease_ms is None:
            self._lease_ms = (await self._queue_state()).config.lease_ms
        return self._lease_ms

    async def _dead_letter(self) -> str:
        topic = (await self._queue_state()).config.dead_letter
        if topic is None:
            message = (
                f'queue "{self._name}" has no dead_letter in its config: name the topic that holds its dead letters'
            )
            raise InvalidRequest(message, field="dead_letter", expected="a topic")
        return topic

    async def _queue_state(self) -> TopicState:
        state = await self.state(touch=False)
        if state.type is not TopicType.QUEUE:
            raise NotAQueue(f'topic "{self._name}" is a {state.type.value}, not a queue', topic=self._name)
        return state


def _made_up_node() -> str:
    """Says where a job is to whoever looks, and is nobody else's."""
    host = host_name() or "worker"
    return f"{host[:64]}-{token_hex(6)}"
