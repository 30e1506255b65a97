"""What a scrape tells of pipelines: how each is, how far behind, and how much has passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from topics.engine.engine import Engine
from topics.pipelinemodel import PipelineCondition, PipelineState
from topics.server.exposition import Family, counter, gauge
from topics.server.principal import Principal
from topics.server.routes.pipelines import visible


def of_pipelines(engine: Engine, principal: Principal) -> Iterator[Family]:
    yield gauge("topics_tables", "Registered tables.", len(engine.machine.catalog.tables))
    states = visible(engine, principal)
    by_condition = Counter(state.condition for state in states)
    pipelines = gauge("topics_pipelines", "Pipelines, by how they are.")
    for condition in PipelineCondition:
        pipelines.add(by_condition[condition], ("condition", condition.value))
    yield pipelines
    yield from _by_pipeline(states)


def _by_pipeline(states: list[PipelineState]) -> Iterator[Family]:
    up = gauge("topics_pipeline_up", "Whether a pipeline is being run.")
    lag_records = gauge("topics_pipeline_lag_records", "Records or changes that a pipeline has not read yet.")
    lag_versions = gauge("topics_pipeline_lag_versions", "Versions of its table that a pipeline has not read yet.")
    lag_ms = gauge("topics_pipeline_lag_ms", "How long the oldest of them has been waiting.")
    batch_ms = gauge("topics_pipeline_batch_ms", "How long the last batch of a pipeline took.")
    rows_in = counter("topics_pipeline_input_rows_total", "Rows that a pipeline has read.")
    rows_out = counter("topics_pipeline_output_rows_total", "Rows that a pipeline has written.")
    errors = counter("topics_pipeline_error_rows_total", "Rows that a pipeline could not evaluate.")
    restarts = counter("topics_pipeline_restarts_total", "How often the runner of a pipeline began again.")
    for state in states:
        labels = (("pipeline", state.pipeline), ("kind", state.kind.value))
        up.add(int(state.condition in (PipelineCondition.RUNNING, PipelineCondition.STARTING)), *labels)
        report = state.report
        if report is None:
            continue
        lags = ((lag_records, report.lag_records), (lag_versions, report.lag_versions), (lag_ms, report.lag_ms))
        for family, value in (*lags, (batch_ms, report.batch_ms)):
            if value is not None:
                family.add(value, *labels)
        rows_in.add(report.input_rows_total, *labels)
        rows_out.add(report.output_rows_total, *labels)
        errors.add(report.error_rows_total, *labels)
        restarts.add(report.restarts, *labels)
    yield from (up, lag_records, lag_versions, lag_ms, batch_ms, rows_in, rows_out, errors, restarts)
