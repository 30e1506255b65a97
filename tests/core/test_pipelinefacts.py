"""Facts about tables and pipelines as they are stored."""

from __future__ import annotations

import pytest

from tests.core.catalogrig import pipeline, report, table
from topics.core.facts import MetaFact, SourcesChanged, encode, parse_meta_fact
from topics.core.pipelinefacts import (
    PipelineGone,
    PipelinePaused,
    PipelinePut,
    PipelineReported,
    TableGone,
    TablePut,
)
from topics.core.source import Operation, RouteStart, Source
from topics.pipelinemodel import PipelineOptions, RouteProgress, RunState
from topics.tablemodel import TableColumn

CONFIG = table(columns=(TableColumn("id", "bigint", False),), options={})
PROGRESS = RouteProgress(topic="t", operation="insert", number=4, position="version 9", lag_versions=2)


@pytest.mark.parametrize(
    "fact",
    [
        TablePut("chat.messages", CONFIG, 1, 2),
        TableGone("chat.messages"),
        PipelinePut("p", 7, pipeline("orders", tables=("t",), options=PipelineOptions(trigger_ms=9)), 1, 2),
        PipelineGone("p"),
        PipelinePaused("routes:t", True),
        PipelineReported("p", 5, report(state=RunState.FAILED, last_error="x", lag_ms=3, routes=(PROGRESS,))),
        SourcesChanged("t", (Source("a", Operation.INSERT, start=RouteStart.VERSION, start_version=3, number=8),)),
    ],
)
def test_facts_come_back(fact: MetaFact) -> None:
    assert parse_meta_fact(encode(fact)) == fact


def test_sources_of_an_earlier_version_stay_readable() -> None:
    """Bytes as they were written before a source had a start."""
    stored = bytes.fromhex(
        "83a474797065af736f75726365735f6368616e676564a5746f706963a174a7736f75726365739185a57461626c65a161"
        "a96f7065726174696f6ea6696e73657274a77061796c6f6164a36b6579a57768657265c0ac706172746974696f6e5f6279c0"
    )
    assert parse_meta_fact(stored) == SourcesChanged("t", (Source("a", Operation.INSERT),))
