"""Groups in a scrape: those that fit, and whether that is all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.groups import Consumers
from topics.server import groupmetrics


@on_loop
async def test_of_too_many_groups_some_are_shown_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groupmetrics, "GROUPS_SHOWN_MAX", 2)
    async with serving(tmp_path) as api:
        for topic in ("a", "b"):
            await api.write(topic, 1, 2)
            await Consumers(api, topic, "first").consume(1)
        text = (await api.get("/v0/metrics")).raw.decode()
        for topic in ("a", "b"):
            assert f'topics_group_in_flight{{topic="{topic}",partition="0",group="first"}} 1' in text
        assert "topics_group_metrics_truncated 0" in text
        await Consumers(api, "a", "second").consume(1)
        text = (await api.get("/v0/metrics")).raw.decode()
        shown = [line for line in text.splitlines() if line.startswith("topics_group_in_flight{")]
        assert len(shown) == 2 and all('topic="a"' in line for line in shown)
        assert "topics_group_metrics_truncated 1" in text
