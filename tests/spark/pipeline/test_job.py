"""The life of a pipeline in a runner, turn by turn, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from topics.errors import ConnectionFailed, InvalidRequest, PipelineTaken, Unavailable
from topics.pipelinemodel import (
    LogLine,
    PipelineCondition,
    PipelineKind,
    PipelineOrders,
    PipelineReport,
    PipelineState,
    RunState,
)
from topics.spark.pipeline.job import ATTEMPTS_MAX, RETRIES_MAX, TAKEN_MS, Job
from topics.spark.pipeline.queries import Running
from topics.testing.clock import SimClock


class Query:
    """As much of a streaming query as a job looks at."""

    def __init__(self) -> None:
        self.isActive = True
        self.recentProgress: list[Any] = []
        self.error = ""

    def exception(self) -> str | None:
        return self.error or None

    def stop(self) -> None:
        self.isActive = False

    def die(self, error: str = "") -> None:
        self.isActive, self.error = False, error


class Server:
    """Who is told; it keeps what it hears."""

    def __init__(self) -> None:
        self.told: list[PipelineReport] = []
        self.lines: list[LogLine] = []
        self.refusal: Exception | None = None

    def report(self, pipeline: str, report: PipelineReport, lines: Sequence[LogLine]) -> PipelineOrders:
        if self.refusal is not None:
            raise self.refusal
        self.told.append(report)
        self.lines += lines
        return PipelineOrders(pipeline=pipeline, exists=True, paused=False, digest=report.digest)


class Bench:
    """A job, its clock, its server, and the queries it began."""

    def __init__(self, available_now: bool = False) -> None:
        self.clock = SimClock()
        self.server = Server()
        self.queries: list[Query] = []
        self.refusal: Exception | None = None
        self.job = Job(
            state(),
            begin=self._begin,
            server=self.server,
            runner="here/1",
            clock=self.clock,
            available_now=available_now,
        )

    def _begin(self, state: PipelineState) -> list[Running]:
        if self.refusal is not None:
            raise self.refusal
        self.queries.append(Query())
        return [Running("main", cast(Any, self.queries[-1]))]

    def step(self, ms: int = 0) -> RunState | None:
        self.clock.advance(ms)
        self.job.step()
        return self.job.phase


def batch() -> Any:
    """As much of the progress of a batch that is done as a job looks at."""
    return SimpleNamespace(
        batchId=0,
        numInputRows=1,
        durationMs={"addBatch": 1, "triggerExecution": 2},
        sources=[],
        inputRowsPerSecond=1.0,
        processedRowsPerSecond=1.0,
        observedMetrics={},
    )


def state(digest: str = "d1", paused: bool = False) -> PipelineState:
    return PipelineState(
        pipeline="p",
        kind=PipelineKind.INSERT,
        condition=PipelineCondition.WAITING,
        created_ts=1,
        changed_ts=1,
        number=1,
        digest=digest,
        paused=paused,
    )


def test_a_failed_query_is_begun_again_after_a_while_that_grows() -> None:
    bench = Bench()
    assert bench.step() is RunState.RUNNING
    for count, wait_ms in enumerate([1000, 2000, 4000], 1):
        bench.queries[-1].die("[BROKEN] it broke")
        assert bench.step() is RunState.RETRYING
        assert bench.step(wait_ms - 1) is RunState.RETRYING and len(bench.queries) == count
        assert bench.step(1) is RunState.RUNNING and len(bench.queries) == count + 1
    last = bench.server.told[-1]
    assert (last.restarts, last.last_error) == (3, "[BROKEN] it broke")
    assert [line.level for line in bench.server.lines].count("error") == 3


def test_a_batch_that_always_fails_has_failed_after_some_attempts() -> None:
    bench = Bench()
    for number in range(RETRIES_MAX):
        assert bench.step(60_000) is RunState.RUNNING
        assert (bench.server.told[-1].lag_ms or 0) == 60_000 * number, "it is behind since it began to fail"
        bench.queries[-1].die("[BROKEN] field age does not fit")
        ended = bench.step()
    assert ended is RunState.FAILED
    assert bench.step(10_000_000) is RunState.FAILED and len(bench.queries) == RETRIES_MAX
    last = bench.server.told[-1]
    assert last.last_error is not None and "pause and resume" in last.last_error
    assert last.last_error.startswith("[BROKEN] field age does not fit; failed 10 times")
    bench.job.state = state(paused=True)
    assert bench.step() is RunState.PAUSED
    bench.job.state = state()
    assert bench.step() is RunState.RUNNING, "and has all of its attempts again"
    bench.queries[-1].die("[BROKEN]")
    assert bench.step() is RunState.RETRYING


def test_a_batch_that_is_done_ends_the_count_of_failures() -> None:
    bench = Bench()
    for _ in range(3 * RETRIES_MAX):
        assert bench.step(60_000) is RunState.RUNNING
        bench.queries[-1].recentProgress.append(batch())
        bench.step()
        bench.queries[-1].die("[BROKEN]")
        assert bench.step() is RunState.RETRYING


def test_a_server_that_is_away_never_fails_a_pipeline() -> None:
    bench = Bench()
    for _ in range(3 * RETRIES_MAX):
        assert bench.step(60_000) is RunState.RUNNING
        bench.queries[-1].die("x\ntopics.errors.ConnectionFailed: nobody listens\n")
        assert bench.step() is RunState.RETRYING


def test_what_trying_again_does_not_help_has_failed() -> None:
    bench = Bench()
    bench.step()
    bench.queries[-1].die("x\ntopics.spark.pipeline.stops.PositionGone: say where to go on\n")
    assert bench.step() is RunState.FAILED
    assert bench.step(10_000_000) is RunState.FAILED and len(bench.queries) == 1
    assert bench.server.told[-1].last_error == "say where to go on"
    bench.job.state = state("d2")
    assert bench.step() is RunState.RUNNING, "another definition may do better"


def test_a_definition_that_cannot_run_has_failed() -> None:
    bench = Bench()
    bench.refusal = InvalidRequest("there is no column nope")
    assert bench.step() is RunState.FAILED
    assert bench.server.told[-1].last_error == "there is no column nope"


@pytest.mark.parametrize("error", [ConnectionFailed("the server is away"), Unavailable("not just now")])
def test_what_is_away_for_now_is_tried_again(error: Exception) -> None:
    bench = Bench()
    bench.refusal = error
    assert bench.step() is RunState.RETRYING
    assert bench.server.told[-1].last_error == str(error)
    bench.refusal = None
    assert bench.step(999) is RunState.RETRYING
    assert bench.step(1) is RunState.RUNNING and bench.server.told[-1].restarts == 1


def test_a_query_that_spark_refuses_has_failed_at_once() -> None:
    bench = Bench()
    bench.refusal = AnalysisException("[UNRESOLVED_COLUMN] a column nope cannot be resolved")
    assert bench.step() is RunState.FAILED
    assert bench.server.told[-1].last_error == "[UNRESOLVED_COLUMN] a column nope cannot be resolved"


def test_other_columns_are_no_failure() -> None:
    bench = Bench()
    bench.step()
    bench.queries[-1].die("topics.spark.pipeline.stops.TableChanged: the columns were a and are b now")
    assert bench.step() is RunState.STARTING
    assert bench.step() is RunState.RUNNING and bench.server.told[-1].last_error is None


def test_pause_and_resume_and_another_definition() -> None:
    bench = Bench()
    bench.step()
    bench.job.state = state(paused=True)
    assert bench.step() is RunState.PAUSED and not bench.queries[0].isActive
    assert bench.step(60_000) is RunState.PAUSED
    bench.job.state = state()
    assert bench.step() is RunState.RUNNING and len(bench.queries) == 2
    bench.job.state = state("d2")
    assert bench.step() is RunState.RUNNING and len(bench.queries) == 3
    assert not bench.queries[1].isActive and bench.server.told[-1].digest == "d2"


def test_a_pipeline_of_another_runner_is_left_alone() -> None:
    bench = Bench()
    bench.server.refusal = PipelineTaken("there/2 has it")
    assert bench.step() is None and not bench.queries
    bench.server.refusal = None
    assert bench.step() is RunState.RUNNING
    bench.server.refusal = PipelineTaken("there/2 has it")
    assert bench.step(60_000) is None and not bench.queries[0].isActive


def test_another_runner_is_not_waited_for_for_ever() -> None:
    bench = Bench(available_now=True)
    bench.server.refusal = PipelineTaken("there/2 has it")
    assert bench.step() is None and not bench.job.ended
    bench.step(TAKEN_MS)
    assert bench.job.ended and bench.job.last_error == "there/2 has it"


def test_a_server_that_is_away_stops_nothing() -> None:
    bench = Bench()
    bench.step()
    bench.server.refusal = ConnectionFailed("away")
    assert bench.step(60_000) is RunState.RUNNING and bench.queries[0].isActive
    bench.queries[0].die("[BROKEN] meanwhile")
    bench.step()
    bench.server.refusal = None
    bench.step(60_000)
    assert any("meanwhile" in line.message for line in bench.server.lines), "told when somebody listens again"


@pytest.mark.parametrize(("error", "ended"), [("", RunState.DONE), ("[BROKEN]", RunState.FAILED)])
def test_with_an_end_in_sight(error: str, ended: RunState) -> None:
    bench = Bench(available_now=True)
    for _ in range(ATTEMPTS_MAX):
        assert bench.step(60_000) is RunState.RUNNING
        bench.queries[-1].die(error)
        if bench.step() is ended:
            break
    assert bench.job.phase is ended and bench.job.ended
    bench.job.end()
    assert bench.server.told[-1].state is ended


def test_it_begins_when_it_may() -> None:
    bench = Bench(available_now=True)
    bench.job.step(may_begin=False)
    assert bench.job.phase is None and not bench.server.told, "what is not run is not taken"
    bench.step()
    assert bench.job.is_busy
    bench.queries[-1].die("[BROKEN]")
    bench.step()
    bench.clock.advance(60_000)
    bench.job.step(may_begin=False)
    assert bench.job.phase is RunState.STARTING and len(bench.queries) == 1
    assert not bench.job.is_busy


def test_the_end_of_a_runner_is_told() -> None:
    bench = Bench()
    bench.step()
    bench.job.end()
    assert bench.server.told[-1].state is RunState.STOPPED and not bench.queries[0].isActive
