"""A naive model of what a queue promises, to hold an implementation against.

Written from the specification alone: a list of jobs, loops over everything. A job is live, or gone for one of several
reasons. A live one is held by a worker until a deadline, rests until a time, or waits; time decides which, whenever it
is asked. The model does not say which of several claimers gets which job, only what all of them together must get.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto


class End(Enum):
    """Why a job is gone."""

    ACKED = auto()
    DELETED = auto()
    LOST = auto()
    """Expired or evicted."""
    DEAD_LETTER = auto()


@dataclass(slots=True)
class Job:
    seq: int
    ts: int
    tag: str = ""
    deliveries: int = 0
    node: str = ""
    """Who has it, or had it last and may still complete it."""
    token: int = 0
    deadline_ms: int = 0
    """Held up to and including this time."""
    rests_until_ms: int = 0
    """Nobody gets it before this time."""
    end: End | None = None

    def is_held(self, now_ms: int) -> bool:
        return bool(self.node) and now_ms <= self.deadline_ms

    def is_ready(self, now_ms: int) -> bool:
        return not self.is_held(now_ms) and now_ms >= self.rests_until_ms


@dataclass(slots=True)
class Wanted:
    """What the claimers of one pass must get together."""

    seqs: list[int]
    dead_letters: list[int]


@dataclass(slots=True)
class OracleQueue:
    lease_ms: int = 30_000
    max_deliveries: int = 0
    """With a dead-letter topic; 0 is none."""
    ttl_ms: int = 0
    cap_records: int = 0
    jobs: list[Job] = field(default_factory=list)

    # ---- what can be seen

    def live(self, now_ms: int) -> list[Job]:
        for job in self.jobs:
            if job.end is None and self.ttl_ms and now_ms - job.ts > self.ttl_ms:
                job.end = End.LOST
        return [job for job in self.jobs if job.end is None]

    def ready(self, now_ms: int) -> list[Job]:
        return [job for job in self.live(now_ms) if job.is_ready(now_ms)]

    def counts(self, now_ms: int) -> tuple[int, int, int, int]:
        """Ready, in flight, dead-lettered, delayed."""
        live = self.live(now_ms)
        held = sum(job.is_held(now_ms) for job in live)
        ready = len(self.ready(now_ms))
        return ready, held, sum(job.end is End.DEAD_LETTER for job in self.jobs), len(live) - ready - held

    # ---- what changes it

    def write(self, count: int, now_ms: int, tag: str = "", not_before_ms: int = 0) -> list[int]:
        first = len(self.jobs) + 1
        self.live(now_ms)
        self.jobs += [Job(first + at, now_ms, tag, rests_until_ms=not_before_ms) for at in range(count)]
        live = self.live(now_ms)
        while self.cap_records and len(live) > self.cap_records:
            live.pop(0).end = End.LOST
        return list(range(first, first + count))

    def claim(self, count: int, now_ms: int) -> Wanted:
        """Jobs that were handed out before, lowest first, then the others; those delivered too often die instead."""
        ready = self.ready(now_ms)
        again = [job for job in ready if job.deliveries or job.rests_until_ms]
        fresh = [job for job in ready if not job.deliveries and not job.rests_until_ms]
        wanted = Wanted([], [])
        for job in again + fresh:
            if len(wanted.seqs) == count:
                break
            if self.max_deliveries and job.deliveries >= self.max_deliveries:
                job.end = End.DEAD_LETTER
                wanted.dead_letters.append(job.seq)
            else:
                wanted.seqs.append(job.seq)
        return wanted

    def handed_out(self, seq: int, node: str, token: int, now_ms: int, lease_ms: int | None = None) -> Job:
        job = self.jobs[seq - 1]
        assert job.end is None and job.is_ready(now_ms), f"{job} was handed out at {now_ms}"
        job.deliveries += 1
        job.node, job.token = node, token
        job.deadline_ms = now_ms + (lease_ms or self.lease_ms)
        job.rests_until_ms = 0
        return job

    def own(self, node: str, seqs: Sequence[int], now_ms: int, tokens: Sequence[int] | None = None) -> list[Job]:
        """Those that this worker may complete: it was the last to get them, and they are there."""
        live = {job.seq: job for job in self.live(now_ms)}
        found: dict[int, Job] = {}
        for at, seq in enumerate(seqs):
            job = live.get(seq)
            if job is not None and job.node == node and (tokens is None or tokens[at] == job.token):
                found[seq] = job
        return [found[seq] for seq in sorted(found)]

    def ack(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.end = End.ACKED

    def nack(self, jobs: Sequence[Job], now_ms: int, delay_ms: int = 0, undelivered: bool = False) -> None:
        for job in jobs:
            job.node = ""
            job.deliveries -= undelivered
            job.rests_until_ms = now_ms + delay_ms

    def extend(self, jobs: Sequence[Job], now_ms: int, lease_ms: int) -> None:
        for job in jobs:
            job.deadline_ms = now_ms + lease_ms

    def delete(self, now_ms: int, before_seq: int | None = None, tag: str | None = None) -> int:
        named = [
            job
            for job in self.live(now_ms)
            if (before_seq is None or job.seq < before_seq) and (tag is None or job.tag == tag)
        ]
        for job in named:
            job.end = End.DELETED
        return len(named)
