"""The verbs of jobs on the engine in this process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from topics.client.jobtransport import ClaimRequest, HeldRequest, LeasesRequest, RedriveRequest, ResultRequest
from topics.core.commands import Ack, Append, Claimer, Command, Complete, Extend, Nack, Redrive
from topics.core.leaseview import lease_page
from topics.core.match import parse_match
from topics.core.records import Records
from topics.core.waits import waits_in
from topics.engine.host import Host
from topics.leasemodel import LeasePage
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, U64_MAX
from topics.model import AckedJobs, ClaimedJobs, CompletedJobs, ExtendedJobs, NackedJobs, Redriven
from topics.wire.numbers import whole

T = TypeVar("T")


class EmbeddedJobs:
    """The part of a transport without a wire that is about queues."""

    @abstractmethod
    def _open_host(self) -> Host: ...

    @abstractmethod
    async def _submit(self, command: Command, kind: type[T]) -> T: ...

    @abstractmethod
    def _records(self, items: Sequence[Mapping[str, Any]], node: str | None) -> Records: ...

    async def claim(self, topic: str, request: ClaimRequest) -> ClaimedJobs:
        lease_ms = None if request.lease_ms is None else whole("lease_ms", request.lease_ms, U64_MAX)
        claimer = Claimer(request.node, whole("max", request.max, U64_MAX), lease_ms)
        wait_ms = whole("wait_ms", request.wait_ms, U64_MAX)
        return await self._open_host().claim(topic, claimer, request.partition, wait_ms)

    async def ack(self, topic: str, request: HeldRequest) -> AckedJobs:
        return await self._submit(
            Ack(topic, request.node, request.seqs, request.lease_ids, request.partition), AckedJobs
        )

    async def nack(self, topic: str, request: HeldRequest, *, delay_ms: int, undelivered: bool = False) -> NackedJobs:
        delay_ms = whole("delay_ms", delay_ms, U64_MAX)
        named = request.node, request.seqs, request.lease_ids, request.partition
        return await self._submit(Nack(topic, *named, delay_ms, undelivered), NackedJobs)

    async def extend(self, topic: str, request: HeldRequest, *, lease_ms: int) -> ExtendedJobs:
        lease_ms = whole("lease_ms", lease_ms, U64_MAX)
        return await self._submit(
            Extend(topic, request.node, request.seqs, lease_ms, request.lease_ids, request.partition), ExtendedJobs
        )

    async def complete(self, topic: str, request: HeldRequest, results: Sequence[ResultRequest]) -> CompletedJobs:
        appends = [
            Append(result.topic, self._records(result.records, None), waits=waits_in(result.records))
            for result in results
        ]
        command = Complete(topic, request.node, request.seqs, appends, request.lease_ids, request.partition)
        return await self._submit(command, CompletedJobs)

    async def leases(self, topic: str, request: LeasesRequest) -> LeasePage:
        host = self._open_host()
        await host.freshened(topic)
        engine = host.engine
        after = whole("after", request.after, U64_MAX)
        limit = min(whole("limit", request.limit, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
        now_ms = engine.now_ms()
        return lease_page(engine.machine, topic, request.partition, after, limit, now_ms, delayed=request.delayed)

    async def redrive(self, topic: str, request: RedriveRequest) -> Redriven:
        await self._open_host().freshened(topic)
        command = Redrive(
            topic,
            request.partition,
            request.destination,
            None if request.match is None else parse_match(request.match),
            request.source,
            request.reason,
            whole("from_seq", request.from_seq, U64_MAX),
            None if request.before_seq is None else whole("before_seq", request.before_seq, U64_MAX),
            request.limit,
            request.dry_run,
        )
        return await self._submit(command, Redriven)
