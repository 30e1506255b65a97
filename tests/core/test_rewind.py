"""Routers whose source lost its end."""

from __future__ import annotations

from tests.core.routerrig import RouterRig
from topics.core import routing
from topics.core.rewind import rewind
from topics.core.router import Router


def router(rig: RouterRig) -> Router:
    return routing.find(rig.machine, "a->b")


def test_a_router_goes_back_to_what_is_left_and_no_further() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, 2, 3, topic="a")
    rig.run("a->b")
    assert rewind(rig.machine, router(rig)) == []
    rig.log("a").next_seq = 2
    facts = rewind(rig.machine, router(rig))
    assert [fact.log_id for fact in facts] == [rig.log("b").log_id], "where it begins was before that"
    assert rig.lane("a->b").cursor == 1
    assert rewind(rig.machine, router(rig)) == []
    rig.store(facts)
    again, _ = rig.rederived()
    assert again.lane("a->b").cursor == 1


def test_so_does_one_that_has_only_begun() -> None:
    rig = RouterRig()
    rig.configure("a", partitions=2)
    for partition in range(2):
        rig.write(*({"data": number} for number in range(5)), topic="a", partition=partition)
    rig.put("a", "b")
    rig.log("a", 1).next_seq = 3
    facts = rewind(rig.machine, router(rig))
    assert router(rig).starts == (5, 2) and len(facts) == 1
    rig.store(facts)
    again, _ = rig.rederived()
    assert router(again).starts == (5, 2) and again.lane("a->b", 1).cursor == 2
