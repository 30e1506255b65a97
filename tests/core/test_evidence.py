"""What is in a destination already, by its stamps."""

from __future__ import annotations

from tests.core.damage import spoil
from tests.core.routerrig import RouterRig
from topics.core.evidence import Evidence
from topics.routermodel import Guarantee


def looked(evidence: Evidence) -> set[int]:
    while evidence.look():
        pass
    return evidence.found


def test_stamps_are_found_in_every_run_and_only_in_live_records() -> None:
    rig = RouterRig()
    rig.put("a", "b", guarantee=Guarantee.EXACTLY_ONCE)
    rig.write_numbers(1, 2, 3, topic="a")
    rig.run("a->b")
    rig.write_numbers(*range(600), topic="a")
    rig.run("a->b")
    rig.write_numbers(9, topic="a")
    rig.run("a->b")
    stamp = rig.lane("a->b").shape.stamp
    assert looked(Evidence(rig.log("b"), stamp)) == set(range(1, 605))
    rig.delete("b", before_seq=3)
    rig.log("b").delete_seqs([4, 604])
    assert looked(Evidence(rig.log("b"), stamp)) == set(range(3, 604)) - {4}


def test_only_a_stamp_in_meta_counts_and_only_of_that_router() -> None:
    rig = RouterRig()
    rig.configure("b")
    stamp = "a->b/a/1/0/"
    rig.write(
        {"data": {"_topics_router": f"{stamp}7"}, "meta": {"k": "v"}},
        {"data": 1, "meta": {"_topics_router": "a.>b/a/1/0/8"}},
        {"data": 1, "meta": {"_topics_router": f"{stamp}9"}},
        {"data": 1, "meta": {"_topics_router": f"{stamp}x"}},
        topic="b",
    )
    assert looked(Evidence(rig.log("b"), stamp)) == {9}


def test_a_log_without_meta_has_none() -> None:
    rig = RouterRig()
    rig.write_numbers(1, topic="b")
    assert looked(Evidence(rig.log("b"), "r/")) == set()


def test_what_cannot_be_read_proves_nothing() -> None:
    rig = RouterRig()
    rig.put("a", "b", guarantee=Guarantee.EXACTLY_ONCE)
    rig.write_numbers(1, 2, 3, topic="a")
    rig.run("a->b")
    spoil(rig.log("b"))
    rig.write_numbers(4, 5, topic="a")
    rig.run("a->b")
    assert looked(Evidence(rig.log("b"), rig.lane("a->b").shape.stamp)) == {4, 5}
