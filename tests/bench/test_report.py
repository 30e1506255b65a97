from __future__ import annotations

import msgspec

from bench.figure import Figure, Unit
from bench.report import Report, as_json, as_markdown

FAST = Figure(name="write batches", value=2_000_000.0, unit=Unit.RECORDS_PER_S, bar=1_000_000.0, peer=500_000.0)
SLOW = Figure(name="longest pause", value=40.0, unit=Unit.MS, bar=20.0, note="why")
REPORT = Report({"processor": "one"}, {"writes": [FAST], "checkpoint": [SLOW]})


def test_what_is_below_its_bar_is_missed() -> None:
    assert REPORT.missed() == [SLOW]


def test_the_document_has_a_row_a_figure_and_the_machine() -> None:
    lines = as_markdown(REPORT).splitlines()
    assert "| write batches | 2.00 M/s | ≥ 1.00 M/s | 2.00 × | 500.0 k/s | 4.00 × |  |" in lines
    assert "| longest pause | 40.0 ms | ≤ 20.0 ms | 0.50 × |  |  | why |" in lines
    assert "- processor: one" in lines


def test_json_holds_the_whole_report() -> None:
    assert msgspec.json.decode(as_json(REPORT), type=Report) == REPORT


def test_a_server_is_shown_as_times_its_peer_with_both_spreads() -> None:
    figure = Figure(
        name="a lone write",
        value=300.0,
        unit=Unit.US,
        spread=(290.0, 310.0),
        peer=100.0,
        peer_spread=(90.0, 110.0),
        peer_name="Redis",
        factor=2.0,
    )
    row = (
        "| a lone write | 300.0 µs | 290.0 µs – 310.0 µs | 3.00 × | ≤ 2.00 × | 100.0 µs | 90.0 µs – 110.0 µs | Redis |"
    )
    assert row + " missed |" in as_markdown(Report({}, {"http_latency": [figure]})).splitlines()
