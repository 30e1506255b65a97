"""The runner: has everything run that a server declares, or some of it, in one Spark session.

It asks the server every second what there is to do, and looks after each pipeline in turn; the work itself is done by
Spark's own threads. One thread drives all of it, so there is nothing to lock. Several runners share the work of a
server by themselves: a pipeline is the one's who says so first.
"""

from __future__ import annotations

from collections.abc import Sequence
from socket import gethostname
from threading import Event
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from topics.clock import Clock, SystemClock
from topics.errors import ConnectionFailed, NotFound, Throttled, Unavailable
from topics.limits import SECOND_MS
from topics.pipelinemodel import PipelineState, RunState
from topics.spark.pipeline.checkpoints import default_checkpoints
from topics.spark.pipeline.definitions import Definitions
from topics.spark.pipeline.job import Job
from topics.spark.pipeline.queries import Queries
from topics.steadyclock import SteadyClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_MS: Final = 1 * SECOND_MS
TURN_MS: Final = 200
BUSY_MAX: Final = 2
"""Pipelines that are begun at a time: each starts processes of its own, and a machine has only so many cores."""
ASK_MS: Final = 5 * SECOND_MS
"""How long a server that is away is asked in one turn; there is a next one."""


class Ended(msgspec.Struct, frozen=True):
    """How one pipeline was when the runner ended."""

    pipeline: str
    state: RunState
    error: str | None = None


class Runner:
    def __init__(
        self,
        spark: SparkSession,
        *,
        url: str,
        key: str = "",
        names: Sequence[str] = (),
        checkpoints: str = "",
        available_now: bool = False,
        locations: Sequence[str] = (),
        clock: Clock | None = None,
    ) -> None:
        self._server = Definitions(url, key, ASK_MS)
        self._names = frozenset(names)
        self._available_now = available_now
        # Looks, reports and retries come in their time, whatever the wall clock does meanwhile.
        self._clock = SteadyClock(clock or SystemClock())
        self._stop = Event()
        self._jobs: dict[str, Job] = {}
        self._looked_ms: int | None = None
        self._name = f"{gethostname()}/{uuid4().hex[:8]}"
        self._queries = Queries(
            spark,
            url=url,
            key=key,
            checkpoints=checkpoints or default_checkpoints(),
            available_now=available_now,
            table_of=self._server.table,
            locations=locations,
        )

    @property
    def jobs(self) -> dict[str, Job]:
        return self._jobs

    def stop(self) -> None:
        """Let it end: from a signal, or from another thread."""
        self._stop.set()

    def run(self) -> list[Ended]:
        """Until it is stopped; with `available_now` until there is nothing left to do."""
        try:
            self._check_names()
            while not self._stop.is_set():
                self.turn()
                if self._available_now and all(job.ended for job in self._jobs.values()):
                    break
                self._stop.wait(TURN_MS / SECOND_MS)
        finally:
            for job in self._jobs.values():
                job.end()
            self._server.close()
        return [
            Ended(name, job.phase or RunState.STOPPED, job.last_error if job.phase in (RunState.FAILED, None) else None)
            for name, job in sorted(self._jobs.items())
        ]

    def turn(self) -> None:
        """One look at what is to be done, if it is time, and one at each pipeline."""
        now_ms = self._clock.now_ms()
        if self._looked_ms is None or now_ms - self._looked_ms >= LOOK_MS:
            self._looked_ms = now_ms
            self._look()
        for job in self._jobs.values():
            busy_count = sum(each.is_busy for each in self._jobs.values())
            job.step(may_begin=busy_count < BUSY_MAX)

    def _look(self) -> None:
        try:
            pipelines = self._server.pipelines()
        except (ConnectionFailed, Throttled, Unavailable):
            # What runs goes on; the next look asks again.
            return
        wanted = {each.pipeline: each for each in pipelines if not self._names or each.pipeline in self._names}
        for name in self._jobs.keys() - wanted.keys():
            self._jobs.pop(name).drop()
        for name, state in wanted.items():
            job = self._jobs.get(name)
            if job is not None and job.state.number != state.number:
                self._jobs.pop(name).drop()
                job = None
            if job is None:
                self._jobs[name] = self._job(state)
            else:
                job.state = state

    def _job(self, state: PipelineState) -> Job:
        return Job(
            state,
            begin=self._queries.begin,
            server=self._server,
            runner=self._name,
            clock=self._clock,
            available_now=self._available_now,
            ui=lambda: self._queries.ui,
        )

    def _check_names(self) -> None:
        """`NotFound` for a name that nothing has, before anything is begun."""
        known = {state.pipeline for state in self._server.pipelines()}
        missing = sorted(self._names - known)
        if missing:
            there = ", ".join(sorted(known)) or "none"
            raise NotFound(f'there is no pipeline "{missing[0]}"; there is {there}', pipeline=missing[0])
