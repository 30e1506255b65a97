"""What runners say about pipelines, and pipelines paused and resumed.

A report is kept in memory. It is stored when the state, the error or the runner is another one, and else every ten
seconds: what a restart forgets are a few numbers. A pipeline is the runner's that last reported on it, for a while: the
reports of another one are refused, so that no two work on the same checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from topics.core.catalogview import ALIVE, pipeline_state
from topics.core.facts import encode
from topics.core.outcome import Outcome, StoredFact
from topics.core.pipelinecommands import PausePipeline, ReportPipeline
from topics.core.pipelinefacts import CatalogFact, PipelinePaused, PipelineReported
from topics.core.registry import META_LOG_ID
from topics.errors import PipelineNotFound, PipelineTaken
from topics.limits import REPORT_LINES_MAX, REPORT_STORED_MS, REPORT_TAKEN_MS, REPORT_TEXT_CHARS_MAX
from topics.pipelinemodel import LogLine, PipelineOrders, PipelineReport

if TYPE_CHECKING:
    from topics.core.catalog import Pipeline
    from topics.core.machine import Machine


def pause(machine: Machine, command: PausePipeline, now_ms: int) -> Outcome:
    state = pipeline_state(machine, command.pipeline, now_ms)
    if state.paused == command.paused:
        return Outcome(state)
    fact = PipelinePaused(command.pipeline, command.paused)
    machine.catalog.apply(fact)
    return stored(pipeline_state(machine, command.pipeline, now_ms), fact)


def report(machine: Machine, command: ReportPipeline, now_ms: int) -> Outcome:
    """The reply says what the runner is to do. One that is gone is no error: its runner has to hear of that."""
    try:
        state = pipeline_state(machine, command.pipeline, now_ms)
    except PipelineNotFound:
        return Outcome(PipelineOrders(pipeline=command.pipeline, exists=False, paused=True, digest=""))
    known = machine.catalog.pipelines.get(command.pipeline)
    if known is not None:
        _check_taken(known, command.report, now_ms)
    new = _bounded(command.report)
    orders = PipelineOrders(pipeline=state.pipeline, exists=True, paused=state.paused, digest=state.digest)
    pipeline = machine.catalog.entry(command.pipeline)
    pipeline.lines.extend(map(_line, command.lines[-REPORT_LINES_MAX:]))
    if _is_news(pipeline, new, now_ms):
        fact = PipelineReported(command.pipeline, now_ms, new)
        machine.catalog.apply(fact)
        return Outcome(orders, [StoredFact(META_LOG_ID, False, [encode(fact)])])
    pipeline.report, pipeline.reported_ms = new, now_ms
    return Outcome(orders)


def stored(reply: object, fact: CatalogFact) -> Outcome:
    return Outcome(reply, [StoredFact(META_LOG_ID, False, [encode(fact)])], must_sync=True)


def _check_taken(pipeline: Pipeline, new: PipelineReport, now_ms: int) -> None:
    last = pipeline.report
    if last is None or last.runner == new.runner or last.state not in ALIVE:
        return
    age_ms = now_ms - pipeline.reported_ms
    if age_ms < REPORT_TAKEN_MS:
        raise PipelineTaken(
            f'pipeline "{pipeline.name}" is being run by {last.runner}, which said so {age_ms} ms ago; stop that one, '
            "or leave it this pipeline",
            pipeline=pipeline.name,
            runner=last.runner,
            retry_after_ms=REPORT_TAKEN_MS - age_ms,
        )


def _is_news(pipeline: Pipeline, new: PipelineReport, now_ms: int) -> bool:
    last = pipeline.report
    if last is None or now_ms - pipeline.stored_ms >= REPORT_STORED_MS:
        return True
    return (last.state, last.last_error, last.runner) != (new.state, new.last_error, new.runner)


def _bounded(said: PipelineReport) -> PipelineReport:
    error = said.last_error
    return msgspec.structs.replace(
        said,
        position=_cut(said.position),
        last_error=None if error is None else _cut(error),
        routes=tuple(msgspec.structs.replace(route, position=_cut(route.position)) for route in said.routes),
    )


def _line(line: LogLine) -> LogLine:
    return msgspec.structs.replace(line, message=_cut(line.message))


def _cut(text: str) -> str:
    return text if len(text) <= REPORT_TEXT_CHARS_MAX else text[: REPORT_TEXT_CHARS_MAX - 1] + "…"
