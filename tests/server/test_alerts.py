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
        (Signs(storage_error="EIO"), ["storage_unreadable"]),
        (Signs(admitted_share=0.5), ["throttled"]),
        (Signs(overrun_count=3, overrun_topic="t"), ["overrun"]),
        (Signs(stalled_routers=1), ["routers_stalled"]),
        (Signs(clock_ahead_ms=-1001), ["clock_jumped"]),
        (Signs(clock_ahead_ms=1000), []),
        (Signs(clock_jumps=2), ["clock_jumped"]),
        (Signs(lags=(Lag("group", "g", "t", 5000, 100),)), ["lag:group:t:g"]),
        (Signs(lags=(Lag("router", "a->b", "a", 5000, 100),)), ["lag:router:a:a->b"]),
        (Signs(lags=(Lag("group", "g", "t", 5000, 5000), Lag("group", "h", "t", 50, 1))), []),
        (Signs(dead=(Dead("q", 7, 2), Dead("r", 7, 0))), ["dead:q"]),
    ],
)
def test_each_sign_has_its_alert(signs: Signs, ids: list[str]) -> None:
    alerts = list(judge(signs))
    assert [alert.id for alert in alerts] == ids
    assert all(alert.title and alert.text and alert.todo for alert in alerts)


@pytest.mark.parametrize(
    ("signs", "link"),
    [
        (Signs(lags=(Lag("group", "g:1", "a:b", 5000, 100),)), "/groups/a%3Ab/g%3A1"),
        (Signs(lags=(Lag("router", "a->b", "a", 5000, 100),)), "/routers"),
        (Signs(dead=(Dead("jobs", 7, 2),)), "/dead/jobs"),
        (Signs(overrun_count=3, overrun_topic="t"), "/topics/t"),
        (Signs(overrun_count=3), "/topics"),
    ],
)
def test_an_alert_leads_to_what_it_is_about(signs: Signs, link: str) -> None:
    assert [alert.link for alert in judge(signs)] == [link]


def test_dead_letters_of_a_heap_have_a_command_of_their_own() -> None:
    (of_queue,), (of_heap,) = (list(judge(Signs(dead=(Dead("q", 7, 2, is_heap),)))) for is_heap in (False, True))
    assert "topics queue dead q" in of_queue.todo and of_queue.text.startswith("Jobs given up")
    assert "topics dlq ls q" in of_heap.todo and of_heap.text.startswith("Messages given up")


def test_clock_alert_says_how_far_apart_the_times_are() -> None:
    for ahead_ms, told in ((7_200_000, "7,200 s ahead of"), (-3_000, "3 s behind"), (5, "agrees with")):
        (alert,) = judge(Signs(clock_jumps=1, clock_ahead_ms=ahead_ms))
        assert told in alert.text and "5 minutes" in alert.todo


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
