"""The life of one pipeline in a runner: taken, begun, watched, begun again, paused, let go.

      starting ── begun ──▶ running ── a query fails ──▶ retrying ── after a while ──▶ starting
         ▲                    │  │                          (at once when the table has other columns)
         │   resumed, or      │  └── fails for good or too often ──▶ failed ── other definition, resumed ──▶ starting
         └── another digest ──┤
                              ├── paused by somebody ──▶ paused
                              └── at the end of what there is ──▶ done

A definition that changed is begun at the position that the old one had: a query that is stopped in the middle of a
batch does that batch again, and what it had published it does not publish twice.

A batch that fails again and again, as one with a record that the table does not take, fails the pipeline after
`RETRIES_MAX` attempts. A server that is away does not: it is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Literal, Protocol

from topics.clock import Clock
from topics.errors import ConnectionFailed, InvalidRequest, NotFound, PipelineTaken, TopicsError, Unavailable
from topics.limits import SECOND_MS
from topics.pipelinemodel import (
    LogLine,
    PipelineOrders,
    PipelineReport,
    PipelineState,
    RunState,
)
from topics.spark.pipeline.queries import Running
from topics.spark.pipeline.stops import AWAY, FINAL, TableChanged, told
from topics.spark.pipeline.tally import Tally

REPORT_MS: Final = 2 * SECOND_MS
NEWS_MS: Final = 500
"""How often it is told at most that a batch is done."""
RETRY_MS: Final = 1 * SECOND_MS
RETRY_MS_MAX: Final = 60 * SECOND_MS
TAKEN_MS: Final = 30 * SECOND_MS
"""With an end in sight: how long another runner is waited for. One that has died is not waited for that long."""
YOUNG_MS: Final = 5 * SECOND_MS
RETRIES_MAX: Final = 10
"""How often a query is begun without a batch done before the pipeline has failed: in four minutes or more."""
ATTEMPTS_MAX: Final = 6
"""With an end in sight: how often a failing query is begun before the pipeline has failed."""
LINES_MAX: Final = 200
ENDED: Final = frozenset({RunState.DONE, RunState.FAILED, RunState.PAUSED})


class Reporting(Protocol):
    def report(self, pipeline: str, report: PipelineReport, lines: Sequence[LogLine]) -> PipelineOrders: ...


class Job:
    def __init__(
        self,
        state: PipelineState,
        *,
        begin: Callable[[PipelineState], list[Running]],
        server: Reporting,
        runner: str,
        clock: Clock,
        available_now: bool,
        ui: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.state = state
        """The definition as the server last told it."""
        self.phase: RunState | None = None
        """None while it is another runner's."""
        self.last_error: str | None = None
        self._last_error_ms: int | None = None
        self._begin = begin
        self._server = server
        self._runner = runner
        self._clock = clock
        self._available_now = available_now
        self._ui = ui
        self._digest = ""
        """That of the definition that runs."""
        self._running: list[Running] = []
        self._shown: list[Running] = []
        """Those that were begun last, for what there is to tell of them after their end."""
        self._tally = Tally(state)
        self._begun_ms = 0
        self._restarts = 0
        self._failures = 0
        """In a row."""
        self._faults = 0
        """Those in a row that are not a server's that is away."""
        self._failing: str | None = None
        """The query that failed last; another one's batches say nothing about it."""
        self._failing_since_ms = 0
        self._refused_ms: int | None = None
        """Since when it cannot be taken."""
        self._retry_at_ms = 0
        self._reported_ms = 0
        self._has_news = False
        self._said: RunState | None = None
        self._lines: list[LogLine] = []

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to do, for a runner that stops at the end."""
        if self.phase is None and self._refused_ms is not None:
            return self._clock.now_ms() - self._refused_ms >= TAKEN_MS
        return self.phase in ENDED

    @property
    def is_busy(self) -> bool:
        """Whether its queries are in their first, most expensive moments; with an end in sight, until that."""
        if self.phase is not RunState.RUNNING:
            return False
        young = self._clock.now_ms() - self._begun_ms < YOUNG_MS
        return self._available_now or (young and any(each.progress.batch_id is None for each in self._running))

    def step(self, may_begin: bool = True) -> None:
        """Do what is due now; never waits for long. Queries are begun only when that may be."""
        if self.phase is None and not (may_begin and self._take()):
            return
        if self.state.paused:
            if self.phase is not RunState.PAUSED:
                self._stop()
                self._enter(RunState.PAUSED, "paused")
        elif self.phase is RunState.PAUSED or (self._digest and self._digest != self.state.digest):
            words = "resumed" if self.phase is RunState.PAUSED else "the definition has changed"
            self._stop()
            self._recovered()
            self._enter(RunState.STARTING, words)
        if self.phase is RunState.RETRYING and self._clock.now_ms() >= self._retry_at_ms:
            self.phase = RunState.STARTING
        if self.phase is RunState.STARTING and may_begin:
            self._start()
        elif self.phase is RunState.RUNNING:
            self._watch()
        self._report()

    def end(self, phase: RunState = RunState.STOPPED) -> None:
        """Stop it and let go of it; the position stays."""
        self._stop()
        if self.phase is None:
            return
        if self.phase not in (RunState.DONE, RunState.FAILED):
            self._enter(phase, "the runner has ended")
        with suppress(TopicsError):
            self._send()

    def drop(self) -> None:
        """Stop it because it is not there any more."""
        self._stop()

    def _take(self) -> bool:
        self.phase = RunState.STARTING
        try:
            self._send()
        except TopicsError as error:
            # Another runner's, or nobody can be asked: the next look tries again.
            self.phase, self.last_error = None, error.message
            self._refused_ms = self._clock.now_ms() if self._refused_ms is None else self._refused_ms
            return False
        self.last_error = self._refused_ms = None
        return True

    def _start(self) -> None:
        self._digest, self._begun_ms = self.state.digest, self._clock.now_ms()
        try:
            self._running = self._shown = self._begin(self.state)
        except (ConnectionFailed, Unavailable) as error:
            self._fail(str(error), type(error).__name__)
        except (InvalidRequest, NotFound) as error:
            self._fail(error.message, "InvalidRequest")
        except Exception as error:
            name, words = told(error)
            self._fail(words, name)
        else:
            count = len(self._running)
            self._enter(RunState.RUNNING, f"begun with {count} {'query' if count == 1 else 'queries'}")

    def _watch(self) -> None:
        """Look after the queries: what they did, whether one has failed, whether all are done."""
        for running in self._running:
            if running.progress.take(running.query.recentProgress):
                self._has_news = True
                if self._failing in (None, running.name):
                    self._recovered()
        failed = [running for running in self._running if not running.query.isActive and running.query.exception()]
        if failed:
            name, words = told(str(failed[0].query.exception()))
            self._stop()
            self._fail(words, name, failed[0].name)
        elif all(not running.query.isActive for running in self._running):
            # A query without an error ends when it is told to.
            self._stop()
            self._enter(RunState.DONE, "done")

    def _recovered(self) -> None:
        self._failures = self._faults = 0
        self._failing = None

    def _fail(self, words: str, name: str, query: str | None = None) -> None:
        self._restarts += 1
        if name == TableChanged.__name__:
            self._enter(RunState.STARTING, words)
            return
        if not self._failures:
            self._failing_since_ms = self._clock.now_ms()
        self._failures += 1
        self._faults += name not in AWAY
        self._failing = query
        self.last_error, self._last_error_ms = words, self._clock.now_ms()
        if self._faults >= RETRIES_MAX:
            self.last_error = (
                f"{words}; failed {self._faults} times in a row. Correct what it names, then pause and resume the "
                "pipeline, or replace its definition"
            )
        is_final = name in FINAL or name == InvalidRequest.__name__ or self._faults >= RETRIES_MAX
        if is_final or (self._available_now and self._failures >= ATTEMPTS_MAX):
            self._enter(RunState.FAILED, self.last_error, "error")
            return
        wait_ms = min(RETRY_MS << min(self._failures - 1, 10), RETRY_MS_MAX)
        self._retry_at_ms = self._clock.now_ms() + wait_ms
        self._enter(RunState.RETRYING, f"{words}; again in {wait_ms // SECOND_MS} s", "error")

    def _stop(self) -> None:
        """End the queries and keep their sums."""
        for running in self._running:
            running.query.stop()
            running.progress.take(running.query.recentProgress)
        self._tally.keep(self._running)
        self._running = []

    def _enter(self, phase: RunState, words: str, level: Literal["info", "error"] = "info") -> None:
        self.phase, self._said = phase, None
        self._lines.append(LogLine(self._clock.now_ms(), level, words))
        del self._lines[:-LINES_MAX]

    def _report(self) -> None:
        now_ms = self._clock.now_ms()
        waited_ms = now_ms - self._reported_ms
        if self.phase is not self._said or waited_ms >= (NEWS_MS if self._has_news else REPORT_MS):
            self._reported_ms, self._has_news = now_ms, False
            try:
                self._send()
            except PipelineTaken as error:
                self._stop()
                self.phase, self._said = None, None
                self.last_error = error.message
                return
            except TopicsError:
                # Nobody listens now. The queries go on; what there is to say is said when somebody does.
                return

    def _send(self) -> PipelineOrders:
        lines, self._lines = self._lines, []
        try:
            orders = self._server.report(self.state.pipeline, self._current(), lines)
        except TopicsError:
            self._lines = [*lines, *self._lines][-LINES_MAX:]
            raise
        self._said = self.phase
        return orders

    def _current(self) -> PipelineReport:
        assert self.phase is not None
        numbers = self._tally.told(self._shown, self._running, self._clock.now_ms())
        if self._failures:
            # The batch that fails is not read, whatever the one before said of what is left.
            numbers["lag_ms"] = max(numbers["lag_ms"] or 0, self._clock.now_ms() - self._failing_since_ms)
        return PipelineReport(
            runner=self._runner,
            state=self.phase,
            restarts=self._restarts,
            last_error=self.last_error,
            last_error_ts=self._last_error_ms,
            spark_ui=self._ui(),
            digest=self._digest,
            **numbers,
        )
