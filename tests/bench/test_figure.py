from __future__ import annotations

import pytest

from bench.figure import Figure, Unit, show


def test_more_of_a_rate_is_better() -> None:
    figure = Figure(name="write", value=900.0, unit=Unit.RECORDS_PER_S, bar=300.0, peer=1800.0)
    assert (figure.bar_ratio, figure.peer_ratio) == (3.0, 0.5)


def test_less_of_anything_else_is_better() -> None:
    figure = Figure(name="pause", value=5.0, unit=Unit.MS, bar=20.0, peer=2.5)
    assert (figure.bar_ratio, figure.peer_ratio) == (4.0, 0.5)


def test_a_factor_makes_the_bar_a_multiple_of_the_peer() -> None:
    rate = Figure(name="write", value=60.0, unit=Unit.RECORDS_PER_S, peer=100.0, factor=0.7)
    time = Figure(name="wait", value=60.0, unit=Unit.US, peer=40.0, factor=2.0)
    assert rate.is_missed and not time.is_missed
    assert Figure(name="alone", value=60.0, unit=Unit.US, factor=2.0).bar_ratio is None


def test_without_a_bar_or_a_peer_there_is_no_ratio() -> None:
    figure = Figure(name="write", value=1.0, unit=Unit.RECORDS_PER_S)
    assert figure.bar_ratio is None and figure.peer_ratio is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_240_000, Unit.RECORDS_PER_S, "1.24 M/s"),
        (79_040, Unit.RECORDS_PER_S, "79.0 k/s"),
        (12.34, Unit.MS, "12.3 ms"),
        (3 << 20, Unit.BYTES, "3.0 MiB"),
        (7, Unit.FILES, "7"),
        (1.034, Unit.TIMES, "1.03 ×"),
        (None, Unit.MS, ""),
    ],
)
def test_a_value_is_shown_in_its_unit(value: float | None, unit: Unit, text: str) -> None:
    assert show(value, unit) == text
