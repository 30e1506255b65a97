"""The pump: nobody polls, nobody is forgotten, and who is more important goes first."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tests.engine.watchrig import SLICE_MS, VIEW, Ear, Slow, WatchRig
from topics.engine.watch import AGING_MS, PACED_MS, SENDS_AT_ONCE


def slow(rig: WatchRig, *topics: str) -> Slow:
    ear = Slow(rig.watch)
    ear.rig = rig
    for topic in topics:
        ear.watcher.subscribe(topic, VIEW, tail=True)
    rig.pump()
    ear.take()
    return ear


def test_a_pump_is_asked_for_once_and_only_when_there_is_something_to_do() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    rig.write("other", 1)
    rig.work()
    assert rig.pumps_wanted == 0, "nobody watches"
    rig.ear("jobs")
    rig.ear("jobs")
    assert rig.pumps_wanted == 1
    rig.pump()
    rig.write("other", 2)
    rig.work()
    assert rig.pumps_wanted == 0, "nobody watches that"
    for number in range(3):
        rig.write("jobs", number)
    rig.work()
    assert rig.pumps_wanted == 1


def test_a_write_to_one_of_many_touches_that_one_only() -> None:
    rig = WatchRig()
    topics = [f"t{number}" for number in range(1000)]
    for topic in topics:
        rig.configure(topic)
    ear = rig.ear(*topics)
    rig.pump()
    ear.take()
    rig.write("t500", 1)
    rig.work()
    assert [feed.key for feed in rig.watch._news] == ["t500"] and not rig.watch._line.values
    rig.pump()
    assert ear.take() == [("record", "t500", [1])]


def test_no_wake_up_is_missed_whenever_a_watcher_comes() -> None:
    """A watcher that registers at any step of a write gets the record, once, without anything else happening."""
    steps = 6
    for at in range(steps):
        rig = WatchRig()
        rig.configure("jobs", durability="fsync")
        rig.work()
        log = rig.log("jobs")
        shard = rig.engine.wal.shard_of(log.log_id)
        ears = []

        def come(step: int, at: int = at, rig: WatchRig = rig, ears: list[Ear] = ears) -> None:
            if step == at:
                ears.append(rig.ear("jobs"))

        come(0)
        rig.submit("jobs", 1)
        come(1)
        rig.engine.flush()
        come(2)
        rig.engine.written(shard, rig.engine.turn._shards[shard].last_group)
        come(3)
        if rig.pumps_wanted:
            rig.pumps_wanted = 0
            rig.watch.pump()
        come(4)
        rig.engine.synced(shard, rig.engine.turn._shards[shard].last_group)
        come(5)
        while rig.pumps_wanted:
            rig.pumps_wanted = 0
            rig.watch.pump()
        assert ears[0].seqs("jobs") == [1], at


# ---- waiting for one piece of news


def test_a_waiter_is_called_once_when_there_is_more() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    rig.work()
    log = rig.log("jobs")
    called: list[str] = []
    rig.watch.wait(log, 0, lambda: called.append("there already"))
    rig.watch.wait(log, 1, lambda: called.append("new"))
    rig.pump()
    assert called == ["there already"]
    rig.write("jobs", 2)
    rig.pump()
    rig.write("jobs", 3)
    rig.pump()
    assert called == ["there already", "new"] and len(rig.watch) == 0


def test_a_waiter_can_give_up_and_is_called_when_there_is_no_more_to_wait_for() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    rig.write("gone", 1)
    rig.work()
    called: list[str] = []
    give_up = rig.watch.wait(rig.log("jobs"), 1, lambda: called.append("never"))
    give_up()
    give_up()
    assert len(rig.watch) == 0
    rig.watch.wait(rig.log("gone"), 1, lambda: called.append("gone"))
    rig.drop("gone")
    rig.pump()
    rig.watch.wait(rig.log("jobs"), 1, lambda: called.append("over"))
    rig.watch.end_waiting()
    rig.pump()
    assert called == ["gone", "over"] and len(rig.watch) == 0


# ---- pressure


def test_a_pump_ends_with_its_slice_and_the_rest_is_for_the_next_one() -> None:
    rig = WatchRig()
    for topic in ("a", "b", "c"):
        rig.configure(topic)
    ear = slow(rig, "a", "b", "c")
    for topic in ("a", "b", "c"):
        rig.write(topic, 1)
    rig.work()
    told = []
    while rig.pumps_wanted:
        rig.pumps_wanted = 0
        rig.watch.pump()
        told.append([key for _, key, _ in ear.take()])
    assert told == [["a"], ["b"], ["c"]], "the loop had a turn after each"


def test_a_pump_ends_when_it_has_sent_enough() -> None:
    rig = WatchRig()
    topics = [f"t{number}" for number in range(SENDS_AT_ONCE + 1)]
    for topic in topics:
        rig.configure(topic)
    ear = rig.ear(*topics)
    rig.pump()
    ear.take()
    for topic in topics:
        rig.write(topic, 1)
    rig.work()
    rig.watch.pump()
    assert [key for _, key, _ in ear.take()] == topics[:-1]
    rig.pump()
    assert [key for _, key, _ in ear.take()] == topics[-1:]


def test_a_pump_may_take_half_as_long_as_the_loop_took_since_the_last_one() -> None:
    rig = WatchRig()
    topics = [f"t{number}" for number in range(3 * SENDS_AT_ONCE)]
    for topic in topics:
        rig.configure(topic, priority=0)
    ears = [rig.ear(topic) for topic in topics]
    rig.pump()
    for busy_ms, more_count in ((0, 0), (2, 1), (2 * SLICE_MS, SLICE_MS), (5 * SLICE_MS, SLICE_MS)):
        for ear in ears:
            ear.take()
        for topic in topics:
            rig.write(topic, 1)
        rig.work()
        rig.clock.advance(busy_ms)
        for ear in ears[SENDS_AT_ONCE:]:
            ear.on_told = lambda: rig.clock.advance(1)
        rig.watch.pump()
        assert sum(bool(ear.told) for ear in ears) == SENDS_AT_ONCE + more_count, busy_ms
        rig.pump()


def test_a_cohort_is_served_at_once_when_there_is_time() -> None:
    rig = WatchRig()
    rig.configure("jobs")
    ears = [rig.ear("jobs") for _ in range(3 * SENDS_AT_ONCE)]
    rig.pump()
    rig.clock.advance(2 * SLICE_MS)
    rig.write("jobs", 1)
    rig.work()
    rig.watch.pump()
    assert all(ear.seqs("jobs") == [1] for ear in ears)
    assert len({id(ear.frames[-1]) for ear in ears}) == 1, "the same bytes"


def test_a_pump_ends_within_a_topic_too() -> None:
    rig = WatchRig()
    rig.configure("jobs")
    ears = [rig.ear("jobs", view=replace(VIEW, limit=10 + number)) for number in range(SENDS_AT_ONCE + 1)]
    rig.pump()
    rig.write("jobs", 1)
    rig.work()
    rig.watch.pump()
    assert [ear.seqs("jobs") for ear in ears] == [[1]] * SENDS_AT_ONCE + [[]]
    rig.pump()
    assert ears[-1].seqs("jobs") == [1]


def test_what_is_written_between_two_parts_goes_out_with_the_next_one() -> None:
    rig = WatchRig()
    rig.configure("jobs")
    ears = [rig.ear("jobs") for _ in range(2 * SENDS_AT_ONCE)]
    rig.pump()
    for ear in ears:
        ear.take()
    rig.write("jobs", 1)
    rig.work()
    rig.watch.pump()
    assert [len(ear.told) for ear in ears] == [1] * SENDS_AT_ONCE + [0] * SENDS_AT_ONCE, "the loop has a turn"
    rig.write("jobs", 2)
    rig.pump()
    assert [ear.take() for ear in ears[:SENDS_AT_ONCE]] == [
        [("record", "jobs", [1]), ("record", "jobs", [2])]
    ] * SENDS_AT_ONCE
    assert [ear.take() for ear in ears[SENDS_AT_ONCE:]] == [[("record", "jobs", [1, 2])]] * SENDS_AT_ONCE
    rig.write("jobs", 3)
    rig.work()
    rig.watch.pump()
    assert sum(len(ear.told) for ear in ears) == SENDS_AT_ONCE, "they have met, and are one cohort again"


def test_a_delivery_is_brief_when_one_or_two_are_told_what_is_new() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    rig.work()
    rig.ear("jobs")
    assert not rig.watch.is_brief(), "it has not been told what is there"
    rig.pump()
    assert not rig.watch.is_brief(), "there is nothing to do"
    rig.write("jobs", 2)
    rig.work()
    assert rig.watch.is_brief()
    rig.pump()
    leaving = [rig.ear("jobs"), rig.ear("jobs")]
    rig.pump()
    rig.write("jobs", 3)
    rig.work()
    assert not rig.watch.is_brief(), "three are more than two"
    leaving[0].watcher.close()
    assert rig.watch.is_brief()
    rig.watch.wait(rig.log("jobs"), 3, lambda: None)
    assert not rig.watch.is_brief(), "one who waits is told as well"
    rig.pump()
    leaving[1].watcher.close()
    rig.configure("other")
    rig.write("jobs", 4)
    rig.work()
    assert rig.watch.is_brief()
    rig.ear("other")
    assert not rig.watch.is_brief(), "there is another topic as well"


def test_who_was_not_reached_comes_before_who_wants_more() -> None:
    rig = WatchRig()
    rig.write("long", *range(5))
    for topic in ("b", "c"):
        rig.write(topic, 1)
    ear = Slow(rig.watch)
    ear.rig = rig
    for topic in ("long", "b", "c"):
        ear.watcher.subscribe(topic, replace(VIEW, limit=1))
    for _ in range(3):
        rig.watch.pump()
    assert [key for kind, key, _ in ear.told if kind == "record"] == ["long", "b", "c"]


def test_who_was_not_reached_within_a_topic_is_not_forgotten() -> None:
    rig = WatchRig()
    rig.configure("jobs")
    ears = [Slow(rig.watch) for _ in range(3)]
    for limit, ear in enumerate(ears, 10):
        ear.rig = rig
        ear.watcher.subscribe("jobs", replace(VIEW, limit=limit))
    rig.pump()
    rig.write("jobs", 1)
    rig.pump()
    assert [ear.seqs("jobs") for ear in ears] == [[1]] * 3


def test_under_pressure_the_more_important_topic_goes_first() -> None:
    rig = WatchRig()
    for number, topic in enumerate(("low", "middle", "high")):
        rig.configure(topic, priority=number * 50)
    ear = slow(rig, "low", "middle", "high")
    rig.clock.advance(AGING_MS)
    for _ in range(100):
        for topic in ("low", "middle", "high"):
            rig.write(topic, "x")
        rig.work()
        rig.watch.pump()
        rig.clock.advance(AGING_MS)
    order = [key for kind, key, _ in ear.told if kind == "record"]
    assert order[0] == "high"
    assert order.count("high") > order.count("middle") > order.count("low")


def test_nobody_starves() -> None:
    rig = WatchRig()
    rig.configure("low", priority=-500)
    rig.configure("high", priority=500)
    ear = slow(rig, "low", "high")
    waited_ms = 0
    rig.write("high", 0)
    rig.write("low", 0)
    rig.work()
    rig.watch.pump()
    ear.take()
    while not any((kind, key) == ("record", "low") for kind, key, _ in ear.told):
        rig.write("high", 1)
        rig.work()
        rig.watch.pump()
        rig.clock.advance(AGING_MS)
        waited_ms += AGING_MS + SLICE_MS
    assert waited_ms > 5000, "a thousand points are ten seconds of waiting"
    assert waited_ms < 20_000


def test_who_waits_is_told_at_most_once_a_second() -> None:
    rig = WatchRig()
    rig.configure("low", priority=-1000)
    rig.configure("high", priority=1000)
    ear = slow(rig, "low", "high")
    rig.write("high", 0)
    rig.write("low", 0)
    told = []
    for _ in range(100):
        rig.write("high", 1)
        rig.work()
        rig.watch.pump()
        rig.clock.advance(AGING_MS)
        told += [(rig.clock.now_ms(), key, gist) for kind, key, gist in ear.take() if kind == "paced"]
    assert {key for _, key, _ in told} == {"low"} and len(told) >= 3
    assert all(gist >= PACED_MS for _, _, gist in told)
    moments = [moment for moment, _, _ in told]
    assert all(late - early >= PACED_MS for early, late in pairwise(moments))


def test_to_be_delivered_is_to_be_read() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    rig.ear("jobs")
    rig.pump()
    rig.clock.advance(60_000)
    rig.write("jobs", 2)
    rig.pump()
    assert rig.engine.state("jobs", touch=False).last_read_ts == rig.clock.now_ms()


def test_who_cannot_be_told_is_not_told_that_it_waits() -> None:
    rig = WatchRig()
    rig.configure("low", priority=-1000)
    rig.configure("high", priority=1000)
    ear, full = slow(rig, "low", "high"), rig.ear("low", tail=True)
    rig.pump()
    full.take()
    full.watcher.block()
    rig.write("high", 0)
    rig.write("low", 0)
    told = []
    for _ in range(100):
        rig.write("high", 1)
        rig.work()
        rig.watch.pump()
        rig.clock.advance(AGING_MS)
        told += [kind for kind, _, _ in ear.take()]
    assert "paced" in told and full.take() == []


def test_a_topic_that_comes_back_is_taken_up_by_the_wildcard_that_means_it() -> None:
    rig = WatchRig()
    ear = Ear(rig.watch)
    for prefix in ("a:", "b:"):
        ear.watcher.subscribe_matching(prefix, VIEW)
    rig.write("b:1", 1)
    rig.pump()
    ear.take()
    rig.drop("b:1")
    rig.write("b:1", "anew")
    rig.pump()
    told = ear.take()
    assert [kind for kind, key, _ in told if key == "b:1"] == [
        "topic_deleted",
        "ended",
        "joined",
        "record",
        "caught_up",
    ]
