"""Signs become alerts, each with what to do; and they say when they came and went."""

from __future__ import annotations

import pytest

from topics.limits import GIB, MIB
from topics.server.alerts import Alerts, Dead, Lag, Signs, judge

QUIET = Signs(free_bytes=100 * GIB)


@pytest.mark.parametrize(
    ("signs", "ids"),
    [
        (QUIET, []),
        (Signs(), []),
        (Signs(free_bytes=4 * GIB), ["disk_filling"]),
        (Signs(free_bytes=100 * GIB, bytes_per_s=2 * MIB), ["disk_filling"]),
        (Signs(stopped_shards=(1,), stop_reason="EIO"), ["sync_failing"]),
        (Signs(checkpoint_error="full"), ["checkpoint_failing"]),
        (Signs(admitted_share=0.5), ["throttled"]),
        (Signs(overrun_count=3, overrun_topic="t"), ["overrun"]),
        (Signs(stalled_routers=1), ["routers_stalled"]),
        (Signs(lags=(Lag("group", "g", "t", 5000, 100),)), ["lag:group:t:g"]),
        (Signs(lags=(Lag("group", "g", "t", 5000, 5000), Lag("group", "h", "t", 50, 1))), []),
        (Signs(dead=(Dead("q", 7, 2), Dead("r", 7, 0))), ["dead:q"]),
    ],
)
def test_each_sign_has_its_alert(signs: Signs, ids: list[str]) -> None:
    alerts = list(judge(signs))
    assert [alert.id for alert in alerts] == ids
    assert all(alert.title and alert.text and alert.todo for alert in alerts)


def test_a_nearly_full_disk_is_critical() -> None:
    assert [next(judge(Signs(free_bytes=size))).severity for size in (GIB // 2, 4 * GIB)] == ["critical", "warning"]


def test_an_alert_stays_the_same_while_it_lasts() -> None:
    alerts = Alerts()
    alerts.update(Signs(checkpoint_error="full"), 1000)
    alerts.update(Signs(checkpoint_error="fuller"), 2000)
    (alert,) = alerts.current.values()
    assert alert.since_ts == 1000 and "fuller" in alert.text
    alerts.update(QUIET, 3000)
    assert not alerts.current and [(event.at, event.kind) for event in alerts.events] == [
        (1000, "alert"),
        (3000, "over"),
    ]
