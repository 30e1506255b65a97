"""How a client reaches the queues of an engine: the verbs of jobs, and the requests they carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from topics.client.match import Match
from topics.leasemodel import LeasePage
from topics.model import AckedJobs, ClaimedJobs, CompletedJobs, ExtendedJobs, NackedJobs, Redriven


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """Jobs for one worker."""

    node: str
    max: int
    lease_ms: int
    wait_ms: int = 0
    partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRequest:
    """Jobs that a worker has, and the lease it has each by; None goes by the worker's name alone."""

    node: str
    seqs: Sequence[int]
    lease_ids: Sequence[str] | None = None
    partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRequest:
    """What is written to one topic in the commit that completes jobs."""

    topic: str
    records: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveRequest:
    """One step of taking dead letters back to where they came from, or to `destination`."""

    partition: int = 0
    destination: str | None = None
    match: Match | None = None
    source: str | None = None
    """Only those that came from this queue."""
    reason: str | None = None
    from_seq: int = 0
    before_seq: int | None = None
    limit: int = 100
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasesRequest:
    """A page of leases of one partition, or of jobs with a delay."""

    partition: int = 0
    after: int = 0
    limit: int = 100
    delayed: bool = False


class JobTransport(Protocol):
    async def claim(self, topic: str, request: ClaimRequest) -> ClaimedJobs:
        """Waits up to `wait_ms` for the first job; whoever is cancelled meanwhile leaves none leased."""

    async def ack(self, topic: str, request: HeldRequest) -> AckedJobs: ...

    async def nack(
        self, topic: str, request: HeldRequest, *, delay_ms: int, undelivered: bool = False
    ) -> NackedJobs: ...

    async def extend(self, topic: str, request: HeldRequest, *, lease_ms: int) -> ExtendedJobs: ...

    async def complete(self, topic: str, request: HeldRequest, results: Sequence[ResultRequest]) -> CompletedJobs:
        """Complete jobs and write their results, all or nothing."""

    async def leases(self, topic: str, request: LeasesRequest) -> LeasePage: ...

    async def redrive(self, topic: str, request: RedriveRequest) -> Redriven:
        """Move up to `limit` dead letters of this topic; the answer says where to go on."""
