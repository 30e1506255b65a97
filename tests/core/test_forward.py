"""Steps of a router: what is copied, what is passed over, what is told, and what is refused."""

from __future__ import annotations

import pytest

from tests.core.routerrig import RouterRig
from topics.core.facts import parse_log_fact
from topics.core.payload import CopiedRun
from topics.core.routerfacts import Forwarded
from topics.core.stretch import Cuts
from topics.errors import RecordTooLarge, Throttled, TopicFull
from topics.limits import STEP_RECORDS_MAX
from topics.model import Reason
from topics.routermodel import Guarantee


def last_fact(rig: RouterRig) -> Forwarded:
    fact = parse_log_fact(rig.facts[-1].body[0])
    assert isinstance(fact, Forwarded)
    return fact


def test_a_copy_is_the_record_with_a_seq_and_time_of_its_own() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(0, topic="b")
    rig.write({"data": {"x": 1}, "tag": "t", "node": "n", "meta": {"k": "v"}}, topic="a")
    rig.now_ms += 7
    step = rig.advance("a->b")
    assert step is not None and (step.cursor, step.count) == (1, 1)
    copy = rig.scan("b")[1]
    assert (copy.seq, copy.ts, copy.data, copy.tag, copy.node, copy.meta) == (
        2,
        rig.now_ms,
        {"x": 1},
        "t",
        "n",
        {"k": "v"},
    )
    assert rig.advance("a->b") is None


def test_node_and_tag_may_be_dropped() -> None:
    rig = RouterRig()
    rig.put("a", "b", preserve_node=False, preserve_tag=False)
    rig.write({"data": 1, "tag": "t", "node": "n"}, topic="a")
    rig.run("a->b")
    (copy,) = rig.scan("b")
    assert (copy.tag, copy.node, copy.data) == (None, None, 1)


def test_a_filter_lets_through_what_matches() -> None:
    rig = RouterRig()
    rig.put("a", "b", filter=("tag", "Glob", "x:*"))
    rig.write(*({"data": n, "tag": tag} for n, tag in enumerate(["x:1", "y", "x:2", ""])), topic="a")
    rig.run("a->b")
    assert rig.numbers("b") == [0, 2] and last_fact(rig).chosen == bytes([0b10100000])
    facts = len(rig.facts)
    rig.write({"data": 9, "tag": "y"}, topic="a")
    step = rig.advance("a->b")
    assert step is not None and step.outcome is None and step.cursor == 5, "nothing to store: the cursor moves alone"
    assert len(rig.facts) == facts + 1


def test_deleted_records_are_passed_over() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write(*({"data": n, "tag": str(n)} for n in range(5)), topic="a")
    rig.delete("a", before_seq=2)
    rig.delete("a", match="3")
    rig.run("a->b")
    assert rig.numbers("b") == [1, 2, 4] and list(rig.log("b").holes) == []
    rig.write_numbers(5, topic="a")
    rig.delete("a", before_seq=100)
    rig.run("a->b")
    assert rig.lane("a->b").cursor == 6


def test_what_the_source_lost_becomes_a_gap_where_it_would_have_come() -> None:
    rig = RouterRig()
    rig.configure("a", cap_records=2)
    rig.put("a", "b")
    rig.write_numbers(1, topic="a")
    rig.run("a->b")
    rig.write_numbers(2, 3, 4, 5, 6, topic="a")
    rig.run("a->b")
    assert rig.numbers("b") == [1, 5, 6] and rig.seqs(topic="b") == [1]
    gap = rig.page(1, topic="b").tombstone
    assert gap is not None and (gap.gap_from, gap.gap_to, gap.reason) == (2, 4, Reason.SOURCE_TRIM)
    assert rig.seqs(1, topic="b") == [5, 6]
    rig.write_numbers(7, topic="a")
    rig.now_ms += 1
    rig.configure("a", ttl_ms=1, cap_records=2)
    rig.now_ms += 10
    rig.run("a->b")
    assert [hole.gap_to for hole in rig.log("b").holes] == [4, 7]


def test_a_gap_of_the_source_is_one_of_the_destination() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, topic="a")
    rig.log("a").add_hole(2, 4, Reason.RESTART)
    rig.write_numbers(5, topic="a")
    rig.run("a->b")
    assert rig.numbers("b") == [1, 5]
    assert [(hole.gap_from, hole.gap_to, hole.reason) for hole in rig.log("b").holes] == [(2, 4, Reason.SOURCE_TRIM)]


def test_a_destination_that_is_full_keeps_the_cursor_where_it_is() -> None:
    rig = RouterRig()
    rig.configure("b", cap_records=3, discard="reject")
    rig.put("a", "b")
    rig.write_numbers(1, 2, 3, 4, 5, topic="a")
    rig.advance("a->b")
    assert rig.numbers("b") == [1, 2, 3] and rig.lane("a->b").cursor == 3, "what fits is taken"
    with pytest.raises(TopicFull):
        rig.advance("a->b")
    assert rig.lane("a->b").cursor == 3
    rig.delete("b", before_seq=3)
    rig.advance("a->b")
    assert rig.numbers("b") == [3, 4, 5]


def test_a_full_destination_is_called_full_however_much_waits_for_it() -> None:
    rig = RouterRig()
    rig.configure("b", cap_records=2, cap_bytes=100, discard="reject")
    rig.put("a", "b")
    rig.write_numbers(1, 2, topic="a")
    rig.advance("a->b")
    rig.write({"data": "x" * 30}, {"data": "x" * 30}, {"data": "x" * 60}, topic="a")
    with pytest.raises(TopicFull, match='topic "b" is full'):
        rig.advance("a->b")
    assert rig.lane("a->b").cursor == 2


def test_bytes_count_as_records_do() -> None:
    rig = RouterRig()
    rig.configure("b", cap_bytes=10, discard="reject")
    rig.put("a", "b")
    rig.write({"data": "x" * 2}, {"data": "x" * 2}, {"data": "x" * 2}, topic="a")
    rig.advance("a->b")
    assert len(rig.numbers("b")) == 2
    rig.delete("b", before_seq=3)
    rig.advance("a->b")
    rig.write({"data": "x" * 20}, topic="a")
    rig.delete("b", before_seq=100)
    with pytest.raises(RecordTooLarge, match="a write of 1 record and 22 bytes is larger than all"):
        rig.advance("a->b")


def test_all_topics_together_may_be_full() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.write_numbers(1, topic="a")
    rig.machine.bounds = rig.machine.bounds.__class__(total_bytes_max=1)
    with pytest.raises(Throttled):
        rig.advance("a->b")
    assert rig.lane("a->b").cursor == 0 and rig.numbers("b") == []


def test_a_destination_that_drops_the_oldest_evicts_and_says_where() -> None:
    rig = RouterRig()
    rig.configure("b", cap_records=2)
    rig.put("a", "b")
    rig.write_numbers(1, 2, 3, topic="a")
    rig.run("a->b")
    assert rig.numbers("b") == [2, 3] and last_fact(rig).floors == (2, 2, {Reason.CAP: 1})


def test_large_batches_share_their_bytes_and_go_in_one_step() -> None:
    rig = RouterRig()
    rig.put("a", "b")
    rig.put("a", "c")
    for number in range(3):
        rig.write_numbers(*range(number * 600, number * 600 + 600), topic="a")
    cuts: Cuts = {}
    for name in ("a->b", "a->c"):
        step = rig.advance(name, cuts=cuts)
        assert step is not None and step.count == 1800
    runs = rig.log("b").runs
    assert all(isinstance(run, CopiedRun) for run in runs) and len(runs) == 3 and len(cuts) == 3
    assert rig.numbers("b") == rig.numbers("c") == list(range(1800))
    assert len(rig.facts[-1].body[0]) < 150
    assert STEP_RECORDS_MAX > 1800


def test_what_an_ephemeral_source_holds_is_in_the_fact() -> None:
    rig = RouterRig()
    rig.configure("a", durability="ephemeral")
    rig.put("a", "b")
    rig.write_numbers(1, 2, topic="a")
    rig.run("a->b")
    assert last_fact(rig).records and last_fact(rig).count == 2
    again, derivation = rig.rederived()
    assert again.numbers("b") == [1, 2] and again.numbers("a") == [] and not derivation.lost


def test_an_ephemeral_destination_stores_nothing() -> None:
    rig = RouterRig()
    rig.configure("b", durability="ephemeral")
    rig.put("a", "b")
    rig.write_numbers(1, topic="a")
    facts = len(rig.facts)
    step = rig.advance("a->b")
    assert step is not None and step.outcome is not None and step.outcome.facts == [] and len(rig.facts) == facts
    assert rig.numbers("b") == [1]


def test_partitions_go_to_those_of_the_same_number_or_wrap_around() -> None:
    rig = RouterRig()
    rig.configure("a", partitions=3)
    rig.configure("b", partitions=2)
    rig.put("a", "b")
    for partition in range(3):
        rig.write({"data": partition}, topic="a", partition=partition)
    rig.run("a->b")
    assert (rig.numbers("b", 0), rig.numbers("b", 1)) == ([0, 2], [1])


def test_a_ring_hands_each_record_around_once() -> None:
    rig = RouterRig()
    for source, dest in ("ab", "bc", "ca"):
        rig.put(source, dest, allow_cycle=True)
    rig.write_numbers(1, topic="a")
    rig.write_numbers(2, topic="b")
    for _ in range(5):
        for name in ("a->b", "b->c", "c->a"):
            rig.run(name)
    assert sorted(rig.numbers("a")) == sorted(rig.numbers("b")) == sorted(rig.numbers("c")) == [1, 2]


def test_a_gap_goes_around_a_ring_once() -> None:
    rig = RouterRig()
    rig.configure("a", cap_records=1)
    rig.put("a", "b", allow_cycle=True)
    rig.put("b", "a", allow_cycle=True)
    rig.write_numbers(1, 2, topic="a")
    for _ in range(5):
        rig.run("a->b")
        rig.run("b->a")
    assert len(rig.log("b").holes) == 1 and rig.log("a").head_seq == 2


def test_exactly_once_leaves_a_stamp() -> None:
    rig = RouterRig()
    rig.put("a", "b", guarantee=Guarantee.EXACTLY_ONCE)
    rig.write_numbers(7, topic="a")
    rig.run("a->b")
    (copy,) = rig.scan("b")
    assert copy.meta == {"_topics_router": "a->b/a/1/0/1"}


def test_a_step_takes_many_batches_unless_each_record_has_to_be_looked_at() -> None:
    rig = RouterRig()
    for source, dest in ("ab", "bc"):
        rig.put(source, dest, guarantee=Guarantee.EXACTLY_ONCE)
    for _ in range(3):
        rig.write_numbers(*range(600), topic="a")
    first = rig.advance("a->b")
    assert first is not None and first.count == 1800
    second = rig.advance("b->c")
    assert second is not None and second.count == 600, "these have a stamp, which is replaced"
    rig.run("b->c")
    again, _ = rig.rederived()
    for topic, router in (("b", "a->b/a/1"), ("c", "b->c/b/2")):
        metas = [copy.meta for copy in rig.scan(topic)]
        assert metas == [{"_topics_router": f"{router}/0/{seq}"} for seq in range(1, 1801)]
        assert [copy.meta for copy in again.scan(topic)] == metas


def test_what_is_there_already_is_not_copied_again() -> None:
    rig = RouterRig()
    rig.put("a", "b", guarantee=Guarantee.EXACTLY_ONCE)
    rig.write_numbers(1, 2, 3, topic="a")
    lane = rig.lane("a->b")
    lane.present = {1, 3}
    rig.advance("a->b", lane=lane)
    assert rig.numbers("b") == [2] and lane.cursor == 3
