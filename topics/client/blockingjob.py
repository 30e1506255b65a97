"""A job for plain code: in the threads of a worker, and in `topics.sync`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from topics.client.blocking import Face, Portal, blocking
from topics.client.job import Job, JobFacts


class BlockingJob(JobFacts, Face[Job]):
    """A job that a worker has. Use it as `with job`, which keeps its lease, and acks it at the end.

    When the block raises, the job is given back and tried again after a while, longer with each delivery. Outside of
    the block a job has its lease and no more: when that runs out, others get it.
    """

    def __init__(self, behind: Job, portal: Portal) -> None:
        super().__init__(behind, portal)
        self._held = behind._held

    def __enter__(self) -> Self:
        self._portal.run(self._behind.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.run(self._behind.__aexit__(kind, error, trace))

    ack = blocking(Job.ack)
    nack = blocking(Job.nack)
    extend = blocking(Job.extend)
    complete = blocking(Job.complete)
