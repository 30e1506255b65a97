"""Copies made again out of facts, in whatever order the logs come: the same seqs, the same times, the same bytes."""

from __future__ import annotations

import pytest

from tests.core.routerrig import RouterRig
from topics.core.block import Block
from topics.core.derive import Derivation
from topics.core.facts import encode
from topics.core.inflow import Inflow
from topics.core.outcome import StoredFact
from topics.core.routerfacts import CopiesLost
from topics.core.run import Marks, MemoryRun
from topics.errors import Damaged
from topics.model import Reason
from topics.routermodel import Guarantee

SEEDS = range(12)


def check(rig: RouterRig, *topics: str) -> None:
    """Whatever comes first, the state is the same."""
    for seed in SEEDS:
        again, derivation = rig.rederived(seed)
        assert not derivation.lost
        for topic in topics:
            assert again.page(topic=topic, limit=10_000).body == rig.page(topic=topic, limit=10_000).body, (topic, seed)
            assert again.view(topic) == rig.view(topic)
            assert again.log(topic).holes == rig.log(topic).holes
            ours, theirs = rig.log(topic).inflow or Inflow(), again.log(topic).inflow or Inflow()
            assert ours.hops == theirs.hops
            assert {key: route for key, route in ours.routes.items() if route.forwarded_count} == theirs.routes
        assert all(log.kept is None for log in again.machine.logs.values())


def test_a_chain_of_copies() -> None:
    rig = RouterRig()
    for source, dest in ("ab", "bc", "cd"):
        rig.put(source, dest)
    for number in range(6):
        rig.write({"data": number, "tag": "t", "node": "n", "meta": {"k": "v"}}, topic="a")
        rig.now_ms += 1
        rig.write_numbers(100 + number, topic="c")
        for name in ("a->b", "b->c", "c->d"):
            rig.run(name)
    rig.write_numbers(*range(700), topic="a")
    for name in ("a->b", "b->c", "c->d"):
        rig.run(name)
    check(rig, "a", "b", "c", "d")


def test_shapes_filters_and_stamps() -> None:
    rig = RouterRig()
    rig.put("a", "b", filter=("tag", "Eq", "x"), preserve_node=False)
    rig.put("a", "c", preserve_tag=False, guarantee=Guarantee.EXACTLY_ONCE)
    for number in range(4):
        drafts = [{"data": n, "tag": "xy"[n % 2], "node": "n"} for n in range(number * 300)] or [{"data": 0}]
        rig.write(*drafts, topic="a")
        rig.run("a->b")
        rig.run("a->c")
    check(rig, "a", "b", "c")


def test_deletes_and_evictions_on_both_sides() -> None:
    rig = RouterRig()
    rig.configure("a", cap_records=7)
    rig.configure("b", cap_records=9)
    rig.put("a", "b")
    for number in range(12):
        rig.write(*({"data": n, "tag": str(n)} for n in range(number)) if number else ({"data": 0},), topic="a")
        if number % 2:
            rig.run("a->b")
            rig.delete("b", match="1")
            rig.delete("a", match="0")
    rig.run("a->b")
    check(rig, "a", "b")


def test_a_source_that_was_emptied_or_dropped_since() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.put("c", "d")
    rig.write_numbers(1, 2, topic="a")
    rig.write_numbers(*range(600), topic="c")
    rig.run("a->b")
    rig.run("c->d")
    rig.delete("a", before_seq=100)
    rig.drop("c")
    check(rig, "a", "b", "d")


def test_a_topic_between_two_others_that_was_dropped_since() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.put("b", "c")
    for number in range(3):
        rig.write_numbers(number, topic="a")
        rig.run("a->b")
        rig.write_numbers(100 + number, topic="b")
        rig.run("b->c")
    rig.drop("b")
    assert rig.numbers("c") == [0, 100, 1, 101, 2, 102]
    check(rig, "a", "c")


def test_a_topic_that_was_made_again_is_another_one() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, topic="a")
    rig.run("a->b")
    rig.drop("a")
    rig.put("a", "b")
    rig.write_numbers(2, topic="a")
    rig.run("a->b")
    assert rig.numbers("b") == [1, 2]
    check(rig, "a", "b")


def test_a_ring() -> None:
    rig = RouterRig()
    for source, dest in ("ab", "bc", "ca"):
        rig.put(source, dest, allow_cycle=True)
    for number in range(9):
        rig.write_numbers(number, topic="abc"[number % 3])
        rig.run(("a->b", "b->c", "c->a")[number % 2])
    check(rig, "a", "b", "c")


def test_what_is_nowhere_is_told_as_a_gap_with_the_same_seqs() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, 2, topic="a")
    rig.run("a->b")
    rig.write_numbers(3, 4, topic="a")
    rig.run("a->b")
    rig.write_numbers(9, topic="b")
    source_log_id = rig.log("a").log_id
    lost = [fact for fact in rig.facts if fact.log_id == source_log_id][1]
    rig.facts.remove(lost)
    for seed in SEEDS:
        again, derivation = rig.rederived(seed)
        assert [(found.log.topic, found.first_seq, found.last_seq) for found in derivation.lost] == [("b", 3, 4)]
        assert again.numbers("b") == [1, 2, 9]
        assert [(hole.gap_from, hole.gap_to, hole.reason) for hole in again.log("b").holes] == [
            (3, 4, Reason.SOURCE_TRIM)
        ]
        assert again.lane("a->b").cursor == 4


def test_what_was_lost_once_stays_lost() -> None:
    """The source may give out the same seqs again: other records must not appear in the place of lost ones."""
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, 2, 3, topic="a")
    rig.run("a->b")
    rig.facts.append(StoredFact(rig.log("b").log_id, False, [encode(CopiesLost(2, 2))]))
    again, derivation = rig.rederived()
    assert again.numbers("b") == [1, 3] and not derivation.lost
    assert [(hole.gap_from, hole.gap_to) for hole in again.log("b").holes] == [(2, 2)]


def test_copies_that_are_known_to_be_lost_are_no_news_to_a_log_that_waits_for_nothing() -> None:
    rig = RouterRig()
    rig.write_numbers(1, 2, topic="b")
    rig.facts.append(StoredFact(rig.log("b").log_id, False, [encode(CopiesLost(1, 1))]))
    again, derivation = rig.rederived()
    assert again.numbers("b") == [1, 2] and not again.log("b").holes and not derivation.lost


def test_copies_that_a_repair_has_found_already_are_not_made_twice() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, 2, topic="a")
    rig.run("a->b")
    log_id = rig.log("b").log_id
    rig.facts += [fact for fact in rig.facts if fact.log_id == log_id]
    again, derivation = rig.rederived()
    assert again.numbers("b") == [1, 2] and not again.log("b").holes and not derivation.lost
    assert again.view("b") == rig.view("b") and again.lane("a->b").cursor == 2


def test_copies_of_what_cannot_be_read_are_lost_and_others_are_made() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(*range(600), topic="a")
    rig.write_numbers(*range(600, 1200), topic="a")
    rig.run("a->b")
    whole = MemoryRun.block_at

    def block_at(run: MemoryRun, seq: int) -> tuple[Block, Marks | None]:
        if run.last_seq == 600:
            raise Damaged("the block is damaged")
        return whole(run, seq)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRun, "block_at", block_at)
        again, derivation = rig.rederived()
    assert [(found.log.topic, found.first_seq, found.last_seq) for found in derivation.lost] == [("b", 1, 600)]
    assert again.numbers("b") == list(range(600, 1200))
    assert [(hole.gap_from, hole.gap_to, hole.reason) for hole in again.log("b").holes] == [
        (1, 600, Reason.SOURCE_TRIM)
    ]


@pytest.mark.parametrize("count", [1, 600])
def test_logs_that_wait_for_each_other_in_vain_come_to_an_end(count: int) -> None:
    rig = RouterRig()
    rig.put("a", "b", allow_cycle=True)
    rig.put("b", "a", allow_cycle=True)
    rig.write_numbers(*range(count), topic="a")
    rig.run("a->b")
    rig.write_numbers(-1, topic="b")
    rig.run("b->a")
    appended = [fact for fact in rig.facts if fact.appended]
    for fact in appended:
        rig.facts.remove(fact)
    again, derivation = rig.rederived()
    assert again.numbers("a") == [] == again.numbers("b") and derivation.lost
    assert isinstance(derivation, Derivation)
