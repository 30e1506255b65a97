"""The line of feeds: the most urgent first, equals in order, and none starves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.engine.watchrig import VIEW, Ear, Slow, WatchRig
from topics.core.priority import AGE_CAP_MS, RECENCY_MAX
from topics.engine.feed import Feed
from topics.engine.urgency import OVERDUE, UrgencyLine, urgency
from topics.engine.watch import AGING_MS


def feeds(**priorities: int | None) -> tuple[WatchRig, list[Feed]]:
    rig = WatchRig()
    ear = Ear(rig.watch)
    found = []
    for name, priority in priorities.items():
        rig.configure(name, priority=priority)
        found.append(ear.watcher.subscribe(name, replace(VIEW)).feed)
    for feed in found:
        feed.waiting_ms = rig.clock.now_ms()
    return rig, found


def order(line: UrgencyLine) -> list[str]:
    found = []
    while line.values:
        found.append(line.pop().key)
    return found


def test_higher_priorities_leave_the_line_first() -> None:
    rig, found = feeds(a=-5, b=7, c=0, d=7)
    line = UrgencyLine()
    line.join(found, rig.clock.now_ms())
    assert sorted(feed.key for feed in line) == ["a", "b", "c", "d"]
    assert order(line) == ["b", "d", "c", "a"]


def test_feed_that_joins_later_with_more_urgency_overtakes() -> None:
    rig, (low, high) = feeds(low=-1, high=1)
    line = UrgencyLine()
    line.join([low], rig.clock.now_ms())
    line.join([high], rig.clock.now_ms())
    assert order(line) == ["high", "low"]


def test_topics_without_priority_count_by_their_last_read() -> None:
    rig, found = feeds(cold=None, warm=None, fixed=RECENCY_MAX - 1)
    now_ms = rig.clock.now_ms()
    found[0].topic.last_read_ts = now_ms - 60_000
    found[1].topic.last_read_ts = now_ms
    line = UrgencyLine()
    line.join(found, now_ms)
    assert order(line) == ["warm", "fixed", "cold"]


def test_age_changes_the_order_of_those_in_line() -> None:
    rig, (low, high) = feeds(low=0, high=100)
    line = UrgencyLine()
    line.join([low, high], rig.clock.now_ms())
    rig.clock.advance(2000)
    high.waiting_ms = rig.clock.now_ms()
    line.age(rig.clock.now_ms())
    assert order(line) == ["low", "high"]


def test_feed_that_waited_for_all_of_its_age_is_overdue() -> None:
    rig, (low, high) = feeds(low=-1000, high=1000)
    rig.clock.advance(AGE_CAP_MS - 1)
    assert urgency(low, rig.clock.now_ms()) > urgency(high, rig.clock.now_ms()) > OVERDUE
    rig.clock.advance(1)
    assert urgency(low, rig.clock.now_ms()) == OVERDUE


# ---- through the pump


HIGH_AND_LOW = (("high", 1000), ("low", -1000))


def backlogs(rig: WatchRig, *topics: tuple[str, int | None], count: int = 40) -> None:
    for topic, priority in topics:
        rig.configure(topic, priority=priority)
        rig.write(topic, *range(count))


def drain(rig: WatchRig, ear: Ear, room: int | None = None) -> list[str]:
    """The topics of all records in the order in which they come to a connection that is full after so many frames."""
    order: list[str] = []
    ear.room = room
    for _ in range(1000):
        rig.watch.pump()
        told = ear.take()
        order += [key for kind, key, seqs in told if kind == "record" for _ in seqs]
        if ear.watcher.blocked:
            ear.room = room
            ear.watcher.unblock()
        elif not told:
            break
    return order


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("room", [None, 1, 2, 3, 7])
def test_higher_backlog_of_a_stream_is_drained_first(room: int | None, order: int) -> None:
    rig = WatchRig()
    backlogs(rig, *HIGH_AND_LOW)
    ear = Ear(rig.watch)
    for topic, _ in HIGH_AND_LOW[::order]:
        ear.watcher.subscribe(topic, replace(VIEW, limit=2))
    assert drain(rig, ear, room) == ["high"] * 40 + ["low"] * 40


@pytest.mark.parametrize("room", [None, 3])
def test_higher_backlog_of_a_wildcard_is_drained_first(room: int | None) -> None:
    rig = WatchRig()
    backlogs(rig, ("t:1", -1000), ("t:2", None), ("t:3", 1000))
    ear = Ear(rig.watch)
    ear.watcher.subscribe_matching("t:", replace(VIEW, limit=2))
    assert drain(rig, ear, room) == ["t:3"] * 40 + ["t:2"] * 40 + ["t:1"] * 40


def test_equal_backlogs_of_a_stream_take_turns() -> None:
    rig = WatchRig()
    backlogs(rig, ("a", 7), ("b", 7))
    ear = Ear(rig.watch)
    for topic in ("a", "b"):
        ear.watcher.subscribe(topic, replace(VIEW, limit=2))
    assert drain(rig, ear, room=3) == ["a", "a", "b", "b"] * 20


def test_lower_backlog_of_one_stream_waits_for_a_higher_one_of_another() -> None:
    rig = WatchRig()
    backlogs(rig, *HIGH_AND_LOW)
    told: list[str] = []
    for topic, _ in HIGH_AND_LOW[::-1]:
        ear = Ear(rig.watch)
        ear.on_told = lambda topic=topic: told.append(topic)  # type: ignore[misc]
        ear.watcher.subscribe(topic, replace(VIEW, limit=2))
    rig.pump()
    assert told == ["high"] * 21 + ["low"] * 21


def test_stream_without_room_holds_back_no_lower_stream() -> None:
    rig = WatchRig()
    backlogs(rig, *HIGH_AND_LOW)
    full, free = Ear(rig.watch), Ear(rig.watch)
    full.watcher.subscribe("high", replace(VIEW, limit=2))
    free.watcher.subscribe("low", replace(VIEW, limit=2))
    full.room = 1
    rig.pump()
    assert len(full.seqs("high")) == 2 and len(free.seqs("low")) == 40


@pytest.mark.parametrize("room", [None, 1])
def test_lowest_topic_gets_a_batch_when_age_counts_no_more(room: int | None) -> None:
    """Also when its connection is full most of the time: that time counts."""
    rig = WatchRig()
    backlogs(rig, *HIGH_AND_LOW, count=1)
    ear = Slow(rig.watch)
    ear.rig = rig
    for topic, _ in HIGH_AND_LOW:
        ear.watcher.subscribe(topic, VIEW)
    rig.pump()
    ear.take()
    times: list[int] = []
    rig.write("low", "first")
    for number in range(600):
        rig.write("high", number)
        rig.write("low", number)
        rig.work()
        ear.room = room
        rig.watch.pump()
        ear.watcher.unblock()
        rig.clock.advance(AGING_MS)
        times += [rig.clock.now_ms() for kind, key, _ in ear.take() if (kind, key) == ("record", "low")]
    assert len(times) >= 2
    assert all(AGE_CAP_MS <= late - early <= AGE_CAP_MS + 1000 for early, late in pairwise(times))


def test_waiting_reader_of_the_lowest_topic_is_woken_at_once() -> None:
    rig = WatchRig()
    rig.configure("low", priority=-1000)
    backlogs(rig, ("high", 1000))
    ear = Slow(rig.watch)
    ear.rig = rig
    woken: list[str] = []
    rig.watch.wait(rig.log("low"), 0, lambda: woken.append("low"))
    ear.watcher.subscribe("high", replace(VIEW, limit=1))
    rig.write("low", 1)
    rig.work()
    rig.watch.pump()
    assert woken == ["low"] and len(ear.seqs("high")) < 40
