"""A contest in delivering, with whoever is installed; how fast is not asked here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.audience import OURS, PEERS, XREAD, Audience
from bench.clients.live import LiveClient, Pace
from bench.figure import Unit

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def test_each_side_delivers_everything_to_everybody(tmp_path: Path) -> None:
    audience = Audience(LiveClient(tmp_path), 3, Pace(writes=4))
    audience.compete(1, tmp_path, lambda doing: None, "a few")
    counts = audience.figures("deliveries", Unit.RECORDS_PER_S, lambda each: each.deliveries)
    assert [figure.name for figure in counts] == [f"deliveries, {own}" for own in OURS for _ in PEERS]
    assert [figure.peer_name for figure in counts] == [*PEERS, *PEERS]
    for figure in counts:
        assert figure.value == 12
        assert figure.peer == 12 or "not installed" in figure.note


def test_a_bar_for_any_peer_stands_at_the_first(tmp_path: Path) -> None:
    audience = Audience(LiveClient(tmp_path), 1, Pace(writes=2))
    audience.compete(1, tmp_path, lambda doing: None, "a few")
    figures = audience.figures("p99", Unit.US, lambda each: each.p99_us, {XREAD: 1.5}, bar=1e9)
    assert [figure.bar for figure in figures] == [1e9, None, None] * 2
    assert [figure.factor for figure in figures] == [1.5, None, None] * 2
    assert not any(figure.is_missed for figure in figures if figure.bar)
