"""One connection: what it follows, and what happens while it does not read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.rig import with_limits
from tests.engine.watchrig import VIEW, Ear, WatchRig
from topics.errors import InvalidRequest, Throttled, TopicNotFound
from topics.limits import MATCHED_TOPICS_MAX

GRACE_MS = 5000


def test_a_subscription_tells_where_it_stands() -> None:
    rig = WatchRig()
    rig.configure("jobs", cap_records=2)
    rig.write("jobs", 1, 2, 3)
    ear = Ear(rig.watch)
    made = ear.watcher.subscribe("jobs", VIEW, tail=True)
    assert (made.key, made.topic, made.cursor, made.head_seq, made.earliest_seq) == ("jobs", "jobs", 3, 3, 2)
    assert rig.engine.state("jobs", touch=False).last_read_ts == rig.clock.now_ms(), "to watch is to read"


def test_what_cannot_be_followed_is_refused_and_changes_nothing() -> None:
    rig = WatchRig()
    rig.configure("jobs", partitions=2)
    ear = rig.ear("jobs")
    with pytest.raises(TopicNotFound):
        ear.watcher.subscribe("nowhere", VIEW)
    with pytest.raises(InvalidRequest, match="partitions 0 to 1"):
        ear.watcher.subscribe("jobs", VIEW, partition=2)
    assert list(ear.watcher.subscriptions) == ["jobs"] and len(rig.watch) == 1


def test_subscribing_again_replaces() -> None:
    rig = WatchRig()
    rig.write("jobs", 1, 2)
    ear = rig.ear("jobs")
    rig.pump()
    ear.take()
    ear.watcher.subscribe("jobs", VIEW, from_seq=1)
    rig.pump()
    assert ear.take() == [("record", "jobs", [2]), ("caught_up", "jobs", 2)]
    rig.write("jobs", 3)
    rig.pump()
    assert ear.take() == [("record", "jobs", [3])], "once"


def test_unsubscribing_ends_it() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ear = rig.ear("jobs")
    assert ear.watcher.unsubscribe("jobs") and not ear.watcher.unsubscribe("jobs")
    rig.pump()
    assert ear.told == [] and len(rig.watch) == 0


# ---- a connection that is full


def test_who_is_blocked_is_given_nothing_and_then_more_at_once() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    slow, quick = rig.ear("jobs"), rig.ear("jobs")
    rig.pump()
    slow.watcher.block()
    for number in range(5):
        rig.write("jobs", number)
        rig.pump()
    assert slow.seqs("jobs") == [1]
    assert quick.seqs("jobs") == [1, 2, 3, 4, 5, 6], "nobody waits for somebody else"
    slow.take(), quick.take()
    slow.watcher.unblock()
    rig.pump()
    assert slow.take() == [("record", "jobs", [2, 3, 4, 5, 6])], "one batch instead of five"
    rig.write("jobs", 7)
    rig.pump()
    assert slow.frames[-1] is quick.frames[-1], "together again"


def test_a_connection_that_fills_up_in_the_middle_loses_and_repeats_nothing() -> None:
    rig = WatchRig()
    rig.configure("ticks", cap_records=4)
    rig.write("ticks", *range(9))
    for room in range(1, 6):
        ear = rig.ear("ticks", view=replace(VIEW, limit=1))
        whole = rig.ear("ticks", view=replace(VIEW, limit=1))
        ear.room = room
        rig.pump()
        assert len(ear.told) == room
        ear.room = None
        ear.watcher.unblock()
        rig.pump()
        assert ear.told == whole.told, room


def test_short_of_the_grace_a_loss_has_its_reason_and_beyond_it_the_cursor_is_too_old() -> None:
    rig = WatchRig(with_limits(buffer_grace_ms=GRACE_MS))
    rig.configure("ticks", cap_records=2)
    for blocked_ms, reason in ((GRACE_MS - 1, "cap"), (GRACE_MS, "from_seq_too_old")):
        ear = rig.ear("ticks", tail=True)
        rig.pump()
        ear.take()
        head = rig.log("ticks").head_seq
        ear.watcher.block()
        rig.write("ticks", *range(5))
        rig.pump()
        rig.clock.advance(blocked_ms)
        ear.watcher.unblock()
        rig.pump()
        told = ear.take()
        assert told[:2] == [
            ("tombstone", "ticks", (reason, head + 1, head + 3)),
            ("record", "ticks", [head + 4, head + 5]),
        ]
        ear.watcher.close()


def test_whoever_was_blocked_is_counted_no_more_once_it_goes_on_or_is_gone() -> None:
    rig = WatchRig()
    rig.configure("jobs")
    first, second = rig.ear("jobs"), rig.ear("jobs")
    for ear in (first, second, second):
        ear.watcher.block()
    assert rig.watch.blocked_count == 2
    first.watcher.unblock()
    second.watcher.close()
    second.watcher.close()
    assert rig.watch.blocked_count == 0


def test_a_durable_topic_only_lags() -> None:
    rig = WatchRig()
    ear = Ear(rig.watch)
    rig.configure("jobs", durability="fsync")
    ear.watcher.subscribe("jobs", VIEW)
    rig.pump()
    ear.take()
    ear.watcher.block()
    rig.write("jobs", *range(300))
    rig.pump()
    rig.clock.advance(60_000)
    ear.watcher.unblock()
    rig.pump()
    assert [kind for kind, _, _ in ear.told] == ["record", "record", "caught_up"]
    assert ear.seqs("jobs") == list(range(1, 301))


def test_a_topic_that_goes_away_meanwhile_is_told_afterwards() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ear = rig.ear("jobs")
    rig.pump()
    ear.take()
    ear.watcher.block()
    rig.drop("jobs")
    rig.pump()
    assert ear.told == []
    ear.watcher.unblock()
    rig.pump()
    assert ear.take() == [("topic_deleted", "jobs", 1), ("ended", "jobs", 1)]


def test_who_leaves_while_blocked_leaves_nothing_behind() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ear = rig.ear("jobs")
    ear.watcher.block()
    rig.pump()
    assert ear.watcher.parked
    ear.watcher.unsubscribe("jobs")
    ear.watcher.unblock()
    rig.pump()
    ear.watcher.close()
    assert ear.told == [] and len(rig.watch) == 0


# ---- wildcards


def test_a_wildcard_follows_what_is_there_and_what_comes() -> None:
    rig = WatchRig()
    rig.write("a:1", 1)
    rig.write("b:1", 1)
    ear = Ear(rig.watch)
    (made,) = ear.watcher.subscribe_matching("a:", VIEW, tail=True)
    assert made.cursor == 1
    rig.pump()
    assert ear.take() == [("caught_up", "a:1", 1)]
    rig.configure("a:wide", partitions=2)
    rig.write("a:wide", "x", partition=1)
    rig.write("b:2", 1)
    rig.pump()
    told = ear.take()
    assert told[:2] == [("joined", "a:wide", 0), ("joined", "a:wide#1", 0)]
    assert ("record", "a:wide#1", [1]) in told and all(key.startswith("a:") for _, key, _ in told)


def test_a_wildcard_takes_up_a_topic_that_is_made_anew() -> None:
    rig = WatchRig()
    rig.write("a:1", 1, 2)
    ear = Ear(rig.watch)
    ear.watcher.subscribe_matching("a:", VIEW)
    rig.pump()
    ear.take()
    rig.drop("a:1")
    rig.write("a:1", "anew")
    rig.pump()
    assert ear.take() == [
        ("topic_deleted", "a:1", 2),
        ("ended", "a:1", 2),
        ("joined", "a:1", 0),
        ("record", "a:1", [1]),
        ("caught_up", "a:1", 1),
    ]


def test_a_stage_is_not_a_topic() -> None:
    rig = WatchRig()
    rig.write("a:1", 1)
    ear = Ear(rig.watch)
    ear.watcher.subscribe_matching("", VIEW)
    rig.pump()
    assert ear.watcher.unsubscribe("a:1")
    rig.stage("s", "a:1", 2)
    rig.pump()
    assert [kind for kind, _, _ in ear.told] == ["record", "caught_up"] and not ear.watcher.subscriptions


def test_a_name_beside_a_wildcard_keeps_its_place() -> None:
    rig = WatchRig()
    rig.write("a:1", 1, 2)
    rig.write("a:2", 1)
    ear = rig.ear("a:1", from_seq=1)
    assert [made.key for made in ear.watcher.subscribe_matching("a:", VIEW)] == ["a:2"]
    rig.pump()
    assert ear.seqs("a:1") == [2]


def test_a_wildcard_can_be_ended() -> None:
    rig = WatchRig()
    rig.write("a:1", 1)
    ear = Ear(rig.watch)
    ear.watcher.subscribe_matching("a:", VIEW)
    assert ear.watcher.unsubscribe_matching("a:") == ["a:1"]
    assert ear.watcher.unsubscribe_matching("a:") == []
    rig.write("a:2", 1)
    rig.pump()
    assert ear.told == [] and len(rig.watch) == 0
    ear.watcher.subscribe_matching("a:", VIEW)
    ear.watcher.close()
    rig.write("a:3", 1)
    rig.pump()
    assert ear.told == [] and len(rig.watch) == 0


def test_a_wildcard_is_bounded() -> None:
    rig = WatchRig()
    for number in range(MATCHED_TOPICS_MAX // 1000):
        rig.configure(f"a:{number}", partitions=1000)
    ear = Ear(rig.watch)
    ear.watcher.subscribe_matching("a:", VIEW)
    assert len(ear.watcher.subscriptions) == MATCHED_TOPICS_MAX
    rig.configure("a:more")
    assert ear.told == [("refused", "a:more", "matched_topics")]
    late = Ear(rig.watch)
    with pytest.raises(Throttled, match="longer prefix"):
        late.watcher.subscribe_matching("a:", VIEW)
    assert not late.watcher.subscriptions and not late.watcher.patterns
