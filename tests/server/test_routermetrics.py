from __future__ import annotations

import pytest

from tests.engine.rig import Rig
from tests.server.probing import serving
from topics.core.commands import PutRouter
from topics.routermodel import RouterConfig
from topics.server import routermetrics


def routed() -> Rig:
    """Three routers, one of them held up by a destination that is full."""
    rig = Rig()
    rig.configure("full", cap_records=1, discard="reject")
    for source, dest in (("a", "b"), ("a", "full"), ("t42:x", "t42:y")):
        rig.engine.submit(PutRouter(f"{source}->{dest}", RouterConfig(source=source, dest=dest)))
    rig.work()
    rig.write("a", 1, 2, 3)
    rig.work()
    rig.clock.advance(5_000)
    return rig


def labels(source: str, dest: str) -> str:
    return f'{{router="{source}->{dest}",source="{source}",dest="{dest}"}}'


def test_each_router_is_told() -> None:
    with serving(routed()) as probe:
        lines = probe.lines()
    assert (lines["topics_routers"], lines["topics_routers_stalled"]) == ("3", "1")
    assert lines["topics_router_metrics_truncated"] == "0"
    good, held = labels("a", "b"), labels("a", "full")
    assert lines[f"topics_router_forwarded_total{good}"] == "3"
    assert (lines[f"topics_router_lag_records{good}"], lines[f"topics_router_lag_ms{good}"]) == ("0", "0")
    assert (lines[f"topics_router_stalled{good}"], lines[f"topics_router_stalled{held}"]) == ("0", "1")
    assert int(lines[f"topics_router_lag_records{held}"]) >= 2 and lines[f"topics_router_lag_ms{held}"] == "5000"
    assert lines[f"topics_router_trimmed_total{held}"] == "0"


@pytest.mark.parametrize(("most", "shown", "truncated"), [(2, 2, "1"), (3, 3, "0"), (4, 3, "0")])
def test_the_block_by_router_is_bounded(monkeypatch: pytest.MonkeyPatch, most: int, shown: int, truncated: str) -> None:
    monkeypatch.setattr(routermetrics, "ROUTERS_SHOWN_MAX", most)
    with serving(routed()) as probe:
        lines = probe.lines()
    assert sum(name.startswith("topics_router_lag_ms{") for name in lines) == shown
    assert lines["topics_router_metrics_truncated"] == truncated


def test_a_key_sees_its_own_routers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routermetrics, "ROUTERS_SHOWN_MAX", 1)
    with serving(routed(), api_keys="all,few:read:t42:") as probe:
        lines = probe.lines("few")
    shown = [name for name in lines if name.startswith("topics_router_forwarded_total")]
    assert shown == [f"topics_router_forwarded_total{labels('t42:x', 't42:y')}"]
    assert (lines["topics_routers"], lines["topics_router_metrics_truncated"]) == ("3", "0")
