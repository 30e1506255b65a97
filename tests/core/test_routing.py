"""Routers put and dropped: what is refused, what is kept, how far each one is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.damage import spoil
from tests.core.routerrig import RouterRig
from topics.core import routing
from topics.core.commands import PutRouter
from topics.core.machine import Bounds
from topics.errors import (
    InvalidRequest,
    RouterCycle,
    RouterNotFound,
    Throttled,
    TopicExistsIncompatible,
    TopicNotFound,
    TopicsError,
)
from topics.routermodel import RouterConfig, RouterDropped


def test_a_router_makes_the_topics_that_it_names() -> None:
    rig = RouterRig()
    state = rig.put("a", "b")
    assert state.created and state.cursors == (0,) and state.router == "a->b"
    assert [topic.name for topic in rig.machine.topics] == ["a", "b"]
    assert len(rig.facts) == 3


def test_the_same_router_again_changes_nothing() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    before = len(rig.facts)
    assert not rig.put("a", "b").created
    assert len(rig.facts) == before


def test_a_change_keeps_number_and_place_and_other_topics_do_not() -> None:
    rig = RouterRig()
    rig.put("a", "b", "r")
    rig.write_numbers(1, 2, topic="a")
    rig.run("r")
    number = routing.find(rig.machine, "r").number
    changed = rig.put("a", "b", "r", filter=("tag", "Eq", "x"))
    assert not changed.created and changed.cursors == (2,) and changed.forwarded_total == 2
    assert routing.find(rig.machine, "r").number == number
    moved = rig.put("a", "c", "r")
    assert not moved.created and moved.cursors == (2,) and moved.forwarded_total == 0
    assert routing.find(rig.machine, "r").number > number


def test_a_new_router_begins_at_the_head_or_with_what_is_retained() -> None:
    rig = RouterRig()
    rig.configure("a", cap_records=3, partitions=2)
    rig.write_numbers(1, 2, 3, 4, topic="a")
    assert rig.put("a", "b").cursors == (4, 0)
    assert rig.put("a", "c", backfill=True).cursors == (1, 0)


@pytest.mark.parametrize(
    ("router", "config", "error", "told"),
    [
        ("r r", {"source": "a", "dest": "x"}, InvalidRequest, "router name"),
        ("r", {"source": "a/b", "dest": "x"}, InvalidRequest, "source"),
        ("r", {"source": "a", "dest": ""}, InvalidRequest, "dest"),
        ("r", {"source": "a", "dest": "a"}, InvalidRequest, "both"),
        ("r", {"source": "a", "dest": "x", "filter": ("tag", "Like", "x")}, InvalidRequest, "filter"),
        ("r", {"source": "a", "dest": "x", "create_dest": False}, TopicNotFound, "create_dest"),
        ("r", {"source": "c", "dest": "a"}, RouterCycle, "c -> a -> b -> c"),
        ("r", {"source": "x", "dest": "b"}, TopicExistsIncompatible, '"a" already'),
    ],
)
def test_what_is_refused_changes_nothing(router: str, config: Any, error: type[TopicsError], told: str) -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.put("b", "c")
    facts, topics = len(rig.facts), len(rig.machine.topics)
    with pytest.raises(error, match=told):
        rig.step(PutRouter(router, RouterConfig(**config)))
    assert (len(rig.facts), len(rig.machine.topics), len(rig.machine.routers)) == (facts, topics, 2)


def test_refusals_say_what_a_program_needs_to_know() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    with pytest.raises(RouterCycle) as cycle:
        rig.put("b", "a")
    assert cycle.value.detail["cycle"] == ["b", "a", "b"]
    with pytest.raises(TopicExistsIncompatible) as fan_in:
        rig.put("x", "b")
    assert fan_in.value.detail["reason"] == "router_dest_fan_in" and fan_in.value.detail["source"] == "a"
    assert rig.put("b", "a", allow_cycle=True).created
    with pytest.raises(RouterCycle):
        rig.put("b", "a")


def test_several_routers_may_lead_from_one_topic_to_another() -> None:
    rig = RouterRig()
    rig.put("a", "b", "one", filter=("tag", "Eq", "x"))
    assert rig.put("a", "b", "two", filter=("tag", "Eq", "y")).created


def test_limits_come_before_topics() -> None:
    rig = RouterRig(Bounds(routers_max=1))
    rig.put("a", "b")
    with pytest.raises(Throttled, match="TOPICS_MAX_ROUTERS") as refused:
        rig.put("c", "d")
    assert refused.value.detail == {"limit": "max_routers", "max": 1}
    assert not rig.put("a", "b", preserve_tag=False).created, "one that is there may be changed"
    rig = RouterRig(Bounds(topics_max=3))
    rig.put("a", "b")
    with pytest.raises(Throttled) as full:
        rig.put("c", "d")
    assert full.value.detail["limit"] == "max_topics" and len(rig.machine.topics) == 2
    assert rig.put("b", "c").created


def test_an_alias_stands_for_its_topic() -> None:
    rig = RouterRig()
    rig.configure("orders", alias="o")
    assert rig.put("o", "b").config.source == "orders"


def test_dropping_a_router_leaves_what_it_brought() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, topic="a")
    rig.run("a->b")
    assert rig.drop_router("a->b") == RouterDropped(router="a->b", deleted=True)
    assert rig.drop_router("a->b") == RouterDropped(router="a->b", deleted=False)
    assert rig.numbers("b") == [1]
    with pytest.raises(RouterNotFound, match='"a->b"'):
        routing.find(rig.machine, "a->b")


def test_a_topic_takes_its_routers_with_it() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.put("b", "c")
    rig.put("x", "y")
    assert rig.drop("b").routers == ("a->b", "b->c")
    assert [router.name for router in rig.machine.routers] == ["x->y"]
    assert rig.drop("b").routers == ()


def test_facts_make_the_same_routers() -> None:
    rig = RouterRig()
    rig.put("a", "b", filter=("tag", "Glob", "x*"))
    rig.put("b", "c")
    rig.put("c", "d")
    rig.drop_router("b->c")
    rig.drop("d")
    again, _ = rig.rederived()
    assert list(again.machine.routers) == list(rig.machine.routers)
    assert again.machine.next_epoch == rig.machine.next_epoch


def test_how_far_a_router_is() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, 2, topic="a")
    rig.run("a->b")
    rig.now_ms += 1000
    rig.write_numbers(3, topic="a")
    rig.show()
    rig.now_ms += 50
    state = routing.state(rig.machine, routing.find(rig.machine, "a->b"), rig.now_ms)
    assert (state.cursors, state.forwarded_total, state.lag_records, state.lag_ms) == ((2,), 2, 1, 50)


def test_how_far_a_router_is_behind_what_is_gone_or_cannot_be_read() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, 2, topic="a")
    rig.show()
    rig.now_ms += 50

    def lag() -> tuple[int, int]:
        state = routing.state(rig.machine, routing.find(rig.machine, "a->b"), rig.now_ms)
        return state.lag_records, state.lag_ms

    assert lag() == (2, 50)
    spoil(rig.log("a"))
    assert lag() == (2, 0), "nobody knows since when it waits"
    rig.delete("a", before_seq=3)
    assert lag() == (2, 0)


def test_a_repair_lets_go_of_routers_without_topics() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.put("x", "y")
    rig.machine.topics.remove("b")
    assert routing.prune(rig.machine) == ["a->b"] and len(rig.machine.routers) == 1
