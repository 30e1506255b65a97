from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.server.exposition import as_fields, as_text, counter, gauge, histogram, prefers_json
from topics.storage.walmetrics import Histogram


def sample() -> Histogram:
    made = Histogram.of((10, 100))
    for value in (5, 10, 11, 1000):
        made.add(value)
    return made


def test_text() -> None:
    topics = gauge("topics_head", "Heads,\nper \\ topic.")
    topics.add(3, ("topic", "a"), ("partition", "1"))
    topics.add(4, ("topic", 'b"\\\n'))
    families = [
        counter("topics_total", "All.", 7),
        gauge("topics_share", "Share.", 0.5),
        topics,
        gauge("topics_none", ""),
    ]
    assert as_text(families).decode() == (
        "# HELP topics_total All.\n# TYPE topics_total counter\ntopics_total 7\n"
        "# HELP topics_share Share.\n# TYPE topics_share gauge\ntopics_share 0.5\n"
        "# HELP topics_head Heads,\\nper \\\\ topic.\n# TYPE topics_head gauge\n"
        'topics_head{topic="a",partition="1"} 3\n'
        'topics_head{topic="b\\"\\\\\\n"} 4\n'
        "# HELP topics_none \n# TYPE topics_none gauge\n"
    )


def test_a_histogram_counts_up() -> None:
    durations = histogram("topics_us", "Microseconds.", sample())
    durations.add(sample(), ("route", "/x"))
    assert as_text([durations]).decode().splitlines()[2:] == [
        'topics_us_bucket{le="10"} 2',
        'topics_us_bucket{le="100"} 3',
        'topics_us_bucket{le="+Inf"} 4',
        "topics_us_sum 1026",
        "topics_us_count 4",
        'topics_us_bucket{route="/x",le="10"} 2',
        'topics_us_bucket{route="/x",le="100"} 3',
        'topics_us_bucket{route="/x",le="+Inf"} 4',
        'topics_us_sum{route="/x"} 1026',
        'topics_us_count{route="/x"} 4',
    ]


def test_fields() -> None:
    topics = gauge("topics_head", "Heads.")
    topics.add(3, ("topic", "a"))
    families = [gauge("topics_none", ""), topics, counter("topics_total", "All.", 7), histogram("us", "", sample())]
    assert as_fields(families) == {
        "topics_none": [],
        "topics_head": [{"topic": "a", "value": 3}],
        "topics_total": 7,
        "us": {"buckets": {"10": 2, "100": 3, "+Inf": 4}, "sum": 1026, "count": 4},
    }


@given(st.text())
def test_a_label_stays_on_its_line(text: str) -> None:
    family = gauge("topics_head", "Heads.")
    family.add(1, ("topic", text))
    line = as_text([family]).decode().split("\n")[2]
    inside = line.removeprefix('topics_head{topic="').removesuffix('"} 1')
    assert re.sub(r"\\(.)", lambda found: found[1].replace("n", "\n"), inside) == text


@pytest.mark.parametrize(
    ("accept", "json"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/*", True),
        ("application/json, */*;q=0.5", True),
        ("application/json, text/plain;q=0.9", True),
        ("application/json;q=0.5, text/plain", False),
        ("application/json, text/plain", False),
        ("application/json;q=0", False),
        ("application/json;q=high", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
    ],
)
def test_who_prefers_json(accept: str, json: bool) -> None:
    assert prefers_json(accept) is json
