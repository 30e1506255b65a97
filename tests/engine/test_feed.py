"""What the watchers of one log are told, in which order, and how much of it they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.watchrig import VIEW, Ear, WatchRig, other, plain
from topics.core.cut import Shape
from topics.core.match import parse_match
from topics.core.view import View
from topics.engine.events import Event
from topics.engine.feed import PART_MEMBERS_MIN


def test_the_backlog_comes_first_then_what_is_new() -> None:
    rig = WatchRig()
    rig.write("jobs", 1, 2, 3)
    ear = rig.ear("jobs", view=replace(VIEW, limit=2))
    assert ear.told == [], "nothing from inside subscribe"
    rig.pump()
    assert ear.take() == [("record", "jobs", [1, 2]), ("record", "jobs", [3]), ("caught_up", "jobs", 3)]
    rig.write("jobs", 4)
    rig.pump()
    assert ear.take() == [("record", "jobs", [4])], "who is live stays so"
    rig.write("jobs", 5, 6, 7)
    rig.pump()
    assert ear.take() == [("record", "jobs", [5, 6]), ("record", "jobs", [7]), ("caught_up", "jobs", 7)]


def test_a_batch_says_where_it_stands() -> None:
    rig = WatchRig()
    rig.write("jobs", {"data": {"n": 1}, "tag": "a", "meta": {"m": "x"}, "node": "n1"}, 2, 3)
    shape = Shape(tags=True, meta=False, data=False)
    ear = rig.ear("jobs", from_seq=0, view=replace(VIEW, limit=2, shape=shape))
    rig.watch.pump()
    ts = rig.clock.now_ms()
    text = (
        f'record {{"topic":"jobs","records":[{{"$seq":1,"$ts":{ts},"$node":"n1","$tag":"a"}},{{"$seq":2,"$ts":{ts}}}]'
    )
    assert ear.frames[0].decode() == text + ',"from_seq":0,"to_seq":2,"head_seq":3}'


@pytest.mark.parametrize(("place", "expected"), [({"from_seq": 2}, [3]), ({"tail": True}, []), ({}, [1, 2, 3])])
def test_where_it_begins(place: dict[str, object], expected: list[int]) -> None:
    rig = WatchRig()
    rig.write("jobs", 1, 2, 3)
    ear = rig.ear("jobs", **place)
    rig.pump()
    assert ear.seqs("jobs") == expected
    assert ear.told[-1] == ("caught_up", "jobs", 3)
    rig.write("jobs", 4)
    rig.pump()
    assert ear.seqs("jobs") == [*expected, 4]


def test_a_partition_of_several_names_itself() -> None:
    rig = WatchRig()
    rig.configure("wide", partitions=3)
    rig.write("wide", "x", partition=2)
    ear = rig.ear("wide", partition=2)
    rig.pump()
    assert [key for _, key, _ in ear.told] == ["wide#2", "wide#2"]
    assert b'{"topic":"wide","partition":2,"records":[' in ear.frames[0]


# ---- sharing


def test_watchers_in_the_same_place_get_the_same_bytes() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ears = [rig.ear("jobs") for _ in range(3)]
    rig.pump()
    late = rig.ear("jobs", from_seq=1)
    rig.pump()
    rig.write("jobs", 2)
    rig.pump()
    frames = [ear.frames[-1] for ear in (*ears, late)]
    assert all(frame is frames[0] for frame in frames), "also who came later, since it has caught up"
    assert len(rig.watch._feeds[rig.log("jobs").log_id]._cohorts) == 1


def test_an_event_is_read_once_for_all_protocols_and_encoded_once_for_each() -> None:
    mine: list[Event] = []
    theirs: list[Event] = []

    def counted(event: Event) -> bytes:
        mine.append(event)
        return plain(event)

    def counted_too(event: Event) -> bytes:
        theirs.append(event)
        return other(event)

    rig = WatchRig()
    rig.write("jobs", 1)
    for form in (counted, counted, counted_too, counted_too):
        rig.ear("jobs", form=form)
    rig.pump()
    assert [event.kind.value for event in mine] == ["record", "caught_up"]
    assert mine[0] is theirs[0] and len(theirs) == 2


def test_a_large_cohort_is_served_in_parts() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ears = [rig.ear("jobs") for _ in range(PART_MEMBERS_MIN + 3)]
    rig.watch._news[0].advance(0)
    assert [len(ear.told) for ear in ears].count(2) == PART_MEMBERS_MIN, "the first part"
    rig.write("jobs", 2)
    rig.pump()
    assert all(ear.seqs("jobs") == [1, 2] for ear in ears)


# ---- filters


def test_own_nodes_and_other_tags_are_passed_over_in_silence() -> None:
    rig = WatchRig()
    rig.write("jobs", {"data": 1, "node": "me"}, {"data": 2, "tag": "a:1"}, {"data": 3, "tag": "b"})
    mine = rig.ear("jobs", view=replace(VIEW, nodes=(b"me",)))
    tagged = rig.ear("jobs", view=replace(VIEW, match=parse_match(["tag", "Glob", "a:*"])))
    rig.pump()
    assert mine.take() == [("record", "jobs", [2, 3]), ("caught_up", "jobs", 3)]
    assert tagged.take() == [("record", "jobs", [2]), ("caught_up", "jobs", 3)]
    rig.write("jobs", {"data": 4, "node": "me"})
    rig.pump()
    assert mine.take() == tagged.take() == []
    assert mine.watcher.subscriptions["jobs"].cursor == 4, "the cursor moves all the same"
    rig.configure("jobs", merge=True, dedupe_node=False)
    rig.write("jobs", {"data": 5, "node": "me"})
    rig.pump()
    assert mine.take() == [("record", "jobs", [5])]


# ---- gaps


def test_a_cap_is_told_once_with_its_range() -> None:
    rig = WatchRig()
    rig.configure("ticks", cap_records=2)
    rig.write("ticks", *range(5))
    ear = rig.ear("ticks")
    rig.pump()
    assert ear.take() == [
        ("tombstone", "ticks", ("from_seq_too_old", 1, 3)),
        ("record", "ticks", [4, 5]),
        ("caught_up", "ticks", 5),
    ]
    rig.write("ticks", *range(4))
    rig.pump()
    assert ear.take() == [("tombstone", "ticks", ("cap", 6, 7)), ("record", "ticks", [8, 9])]


def test_what_expired_before_it_came_is_told() -> None:
    rig = WatchRig()
    rig.configure("ticks", ttl_ms=1000)
    rig.write("ticks", 1, 2)
    ear = rig.ear("ticks", tail=True)
    rig.pump()
    assert ear.take() == [("caught_up", "ticks", 2)], "what it did not ask for is not lost to it"
    rig.write("ticks", 3)
    rig.clock.advance(2000)
    rig.write("ticks", 4)
    rig.pump()
    assert ear.take() == [("tombstone", "ticks", ("ttl", 3, 3)), ("record", "ticks", [4])]


def test_a_delete_is_not_told() -> None:
    rig = WatchRig()
    rig.write("jobs", 1, {"data": 2, "tag": "x"}, 3)
    rig.delete("jobs", match="x")
    ear = rig.ear("jobs", from_seq=1)
    rig.pump()
    assert ear.take() == [("record", "jobs", [3]), ("caught_up", "jobs", 3)]
    rig.write("jobs", 4)
    rig.delete("jobs", before_seq=5)
    rig.pump()
    assert ear.take() == []
    assert ear.watcher.subscriptions["jobs"].cursor == 4


def test_a_cursor_from_the_future_or_from_another_life_is_told_and_rewound() -> None:
    rig = WatchRig()
    rig.write("before", 1)
    rig.write("jobs", 1, 2)
    epoch = rig.engine.state("jobs").epoch
    future = rig.ear("jobs", from_seq=7)
    other_life = rig.ear("jobs", from_seq=1, epoch=epoch - 1)
    same_life = rig.ear("jobs", from_seq=1, epoch=epoch)
    assert other_life.watcher.subscriptions["jobs"].epoch == epoch - 1
    rig.pump()
    told = [("tombstone", "jobs", ("recreated", 1, 2)), ("record", "jobs", [1, 2]), ("caught_up", "jobs", 2)]
    assert future.take() == other_life.take() == told
    assert other_life.watcher.subscriptions["jobs"].epoch == epoch
    assert same_life.take() == [("record", "jobs", [2]), ("caught_up", "jobs", 2)]


def test_a_deleted_topic_is_the_end_of_its_subscription_only() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    rig.write("rest", 1)
    ear = rig.ear("jobs", "rest")
    rig.pump()
    ear.take()
    rig.drop("jobs")
    rig.write("rest", 2)
    rig.write("jobs", "of another topic")
    rig.pump()
    assert sorted(ear.take()) == [("ended", "jobs", 1), ("record", "rest", [2]), ("topic_deleted", "jobs", 1)]
    assert list(ear.watcher.subscriptions) == ["rest"]


# ---- strong


def test_strong_waits_for_the_sync_and_eventual_does_not() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    rig.work()
    strong = rig.ear("jobs", view=replace(VIEW, strong=True))
    eventual = rig.ear("jobs")
    rig.pump()
    assert strong.take() == eventual.take() == [("record", "jobs", [1]), ("caught_up", "jobs", 1)]
    log = rig.log("jobs")
    assert log.synced_seq == 1

    # The sync is held back: the write itself is through.
    ticket = rig.submit("jobs", 2)
    rig.engine.flush()
    shard = rig.engine.wal.shard_of(log.log_id)
    rig.engine.written(shard, rig.engine.turn._shards[shard].last_group)
    assert ticket.done and log.visible_seq == 2 and log.synced_seq == 1
    rig.watch.pump()
    assert eventual.take() == [("record", "jobs", [2])]
    assert strong.take() == []
    assert strong.watcher.subscriptions["jobs"].head_seq == 1

    rig.engine.synced(shard, rig.engine.turn._shards[shard].last_group)
    rig.watch.pump()
    assert strong.take() == [("record", "jobs", [2])]
    strong.watcher.close()
    assert rig.watch.strong_logs == set()


def test_strong_on_a_topic_that_is_never_synced_sees_what_there_is() -> None:
    rig = WatchRig()
    rig.configure("ticks", durability="ephemeral")
    strong = rig.ear("ticks", view=replace(VIEW, strong=True))
    rig.write("ticks", 1)
    rig.pump()
    assert strong.seqs("ticks") == [1]


def test_an_unfinished_batch_is_not_seen() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ear = rig.ear("jobs")
    rig.stage("s", "jobs", "staged")
    rig.pump()
    assert ear.seqs("jobs") == [1]
    rig.driver.wait(rig.publish("s"))
    rig.pump()
    assert ear.seqs("jobs") == [1, 2]


# ---- what goes wrong


def test_a_read_that_fails_ends_its_subscription_and_no_other() -> None:
    rig = WatchRig()
    rig.write("bad", *range(4000))
    rig.checkpoint()
    rig.disk = rig.disk.kill()
    (path,) = [path for path in rig.disk.contents() if path.endswith(".data")]
    file = rig.disk.open(path, "write")
    (byte,) = file.read_at(1000, 1)
    file.write_at(1000, [bytes([byte ^ 1])])
    file.close()
    rig.start()
    rig.write("good", 1)
    ear = Ear(rig.watch)
    for topic in ("bad", "good"):
        ear.watcher.subscribe(topic, VIEW)
    rig.watch.pump()
    failed, *rest = ear.take()
    assert failed[:2] == ("failed", "bad") and "is damaged" in failed[2]
    assert rest == [("record", "good", [1]), ("caught_up", "good", 1)]
    assert list(ear.watcher.subscriptions) == ["good"] and len(rig.watch) == 1


def test_an_edge_that_fails_is_the_only_one_to_suffer() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ears = [rig.ear("jobs") for _ in range(3)]
    ears[1].broken = True
    rig.pump()
    assert [ear.seqs("jobs") for ear in ears] == [[1], [], [1]]
    assert ears[1].told == [("failed", "jobs", "a bug of the edge")]


def test_who_is_told_may_send_away_one_who_was_to_be_told_next() -> None:
    rig = WatchRig()
    rig.write("jobs", 1, 2, 3)
    first, second, third = (rig.ear("jobs", from_seq=place) for place in range(3))
    first.on_told = second.watcher.close
    rig.pump()
    assert second.told == []
    assert first.seqs("jobs") == [1, 2, 3] and third.seqs("jobs") == [3], "everybody else is told"
    rig.write("jobs", 4)
    rig.pump()
    assert second.told == [] and first.seqs("jobs")[-1] == third.seqs("jobs")[-1] == 4


def test_views_are_kept_within_what_is_allowed() -> None:
    rig = WatchRig()
    rig.write("jobs", *range(1500))
    ear = rig.ear("jobs", view=View(limit=5000, byte_budget=0))
    rig.watch.pump()
    assert [len(gist) for kind, _, gist in ear.told if kind == "record"] == [1000, 500]


def test_nothing_is_left_when_everybody_has_gone() -> None:
    rig = WatchRig()
    rig.write("jobs", 1)
    ears: list[Ear] = [rig.ear("jobs", form=form) for form in (plain, other)]
    rig.pump()
    for ear in ears:
        ear.watcher.close()
        ear.watcher.close()
    assert len(rig.watch) == 0
