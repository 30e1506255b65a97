"""Positions in words, and how far behind they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from topics.spark.pipeline.progress import Progress, lag_between, position_text


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ({"version": 17}, "version 17"),
        ({"id": 4, "seen": "1:2:"}, "id 4"),
        ({"files": 3}, "file 3"),
        ({"orders": {"epoch": 1, "0": 1200, "10": 9, "2": 7}}, "orders/0@1200 orders/2@7 orders/10@9"),
        ({"start": "snapshot"}, ""),
        (None, ""),
    ],
)
def test_a_position_is_said_in_words(offset: Any, words: str) -> None:
    assert position_text(None if offset is None else json.dumps(offset)) == words


@pytest.mark.parametrize("offset", ["not JSON", "[1]", "7"])
def test_an_offset_that_is_not_ours_has_no_words_and_no_lag(offset: str) -> None:
    assert position_text(offset) == ""
    assert lag_between([offset], [json.dumps({"version": 4})]) is None


def test_a_lag_is_what_lies_between() -> None:
    def lag(here: Any, there: Any) -> int | None:
        return lag_between([json.dumps(here)], [json.dumps(there)])

    assert lag({"version": 3}, {"version": 10}) == 7
    assert lag({"start": "snapshot"}, {"version": 10}) is None
    assert lag({"a": {"epoch": 1, "0": 5}}, {"a": {"epoch": 1, "0": 8, "1": 2}}) == 5
    assert lag({"a": {"epoch": 1, "0": 5}}, {"a": {"epoch": 2, "0": 3}}) == 3, "another life of the topic"
    assert lag_between([json.dumps({"version": 3}), None], [json.dumps({"version": 4}), None]) == 1


def batch(number: int, counts: Any) -> StreamingQueryProgress:
    told = {
        "id": "eae7ae1b-c986-4f40-afb1-7309f0225e82",
        "runId": "73faee63-2397-4536-8567-3a27dc405337",
        "name": "routes",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": number,
        "batchDuration": 80,
        "durationMs": {"triggerExecution": 79, "addBatch": 53},
        "eventTime": {},
        "stateOperators": [],
        "sources": [],
        "sink": {"description": "topics", "numOutputRows": 0, "metrics": {}},
        "numInputRows": 4,
        "observedMetrics": {"routes": counts},
    }
    return StreamingQueryProgress.fromJson(told)


def test_what_is_counted_is_the_same_in_both_ways_that_spark_tells_it() -> None:
    """A session of its own gives rows with names, Spark Connect their values and a schema beside them."""
    fields = [{"name": name, "type": "long"} for name in ("records0", "errors0")]
    apart = {"values": [3, None], "schema": {"type": "struct", "fields": fields}}
    progress = Progress()
    assert progress.take([batch(0, {"records0": 2, "errors0": 1}), batch(1, apart)])
    assert progress.observed == {"routes.records0": 5, "routes.errors0": 1}
    assert not progress.take([batch(1, apart)]), "no batch counts twice"
    assert (progress.input_rows, progress.batch_id, progress.batch_ms) == (8, 1, 79)
