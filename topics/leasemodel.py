"""Who holds which jobs of a queue, as it is told."""

from __future__ import annotations

import msgspec


class JobLease(msgspec.Struct, frozen=True, kw_only=True):
    """A job that somebody has, or whose time has not come.

    `lease_id` and `node` name the delivery and the worker; a job that only waits for its time has none. `since` is when
    it was handed out, to the second; None when an earlier process did so. The lease is good up to `deadline`, and of a
    job with a delay that is when others can get it.
    """

    seq: int
    node: str | None = None
    lease_id: str | None = None
    since: int | None = None
    deadline: int
    deliveries: int


class ReadyJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that can be claimed, when it was put, and how often it was handed out before."""

    seq: int
    ts: int | None
    deliveries: int


class LeasePage(msgspec.Struct, frozen=True, kw_only=True):
    """Leases of one partition in order of their seqs. `next_after` is there while there may be more."""

    topic: str
    partition: int = 0
    leases: list[JobLease]
    next_after: int | None = None
    oldest_ready: ReadyJob | None = None
    """The job that has waited the longest of those that can be claimed."""
