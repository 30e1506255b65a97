"""Small segments are merged when there are more than a few: the workloads here are short."""

from __future__ import annotations

import pytest

from topics.engine import checkpoint


@pytest.fixture(autouse=True)
def _merge_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PACKS_MAX", 1)
