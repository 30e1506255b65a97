"""A consumer group against its oracle: random histories, every short one, and whatever a crash leaves of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.core.grouprig import EARLIEST, LATEST, GroupRig, Pair, at_seq
from topics.core.groupcommands import AckGroup, Consume, ResetGroup
from topics.groupmodel import GroupBatch

CONSUMERS = st.sampled_from(["", "", "a", "b"])
STARTS = st.one_of(st.just(EARLIEST), st.just(LATEST), st.builds(at_seq, st.integers(0, 20)))


class GroupMachine(RuleBasedStateMachine):
    pair: Pair

    @initialize(
        deliveries=st.sampled_from([0, 0, 2]), ttl_ms=st.sampled_from([0, 0, 400]), cap=st.sampled_from([0, 0, 6])
    )
    def begin(self, deliveries: int, ttl_ms: int, cap: int) -> None:
        self.pair = Pair(max_deliveries=deliveries, ttl_ms=ttl_ms, cap_records=cap)

    @rule(count=st.integers(1, 5), tag=st.sampled_from(["", "x", "y"]))
    def write(self, count: int, tag: str) -> None:
        self.pair.write(count, tag)

    @rule(consumer=CONSUMERS, limit=st.integers(1, 4), start=STARTS, lease_ms=st.sampled_from([100, 250]))
    def consume(self, consumer: str, limit: int, start: object, lease_ms: int) -> None:
        self.pair.consume(consumer, limit, start, lease_ms)  # type: ignore[arg-type]

    def _named(self, data: st.DataObject) -> tuple[int, str, int, str | None]:
        """Something that was handed out once, whole or in part, with or without the claim of that time; or anything."""
        if not self.pair.claims or data.draw(st.integers(0, 5)) == 0:
            upto_seq = data.draw(st.integers(0, 25))
            return upto_seq, data.draw(CONSUMERS), data.draw(st.sampled_from([0, 0, max(upto_seq - 2, 0)])), None
        claim = data.draw(st.sampled_from(self.pair.claims[-8:]))
        upto_seq = data.draw(st.integers(claim.first_seq, claim.last_seq))
        from_seq = data.draw(st.one_of(st.just(0), st.integers(claim.first_seq, upto_seq)))
        consumer = data.draw(st.sampled_from(["", claim.consumer]))
        return upto_seq, consumer, from_seq, claim.claim_id if data.draw(st.booleans()) else None

    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        self.pair.ack(*self._named(data))

    @rule(data=st.data())
    def ack_whole(self, data: st.DataObject) -> None:
        if self.pair.claims:
            claim = data.draw(st.sampled_from(self.pair.claims[-4:]))
            self.pair.ack(claim.last_seq, claim.consumer)

    @rule(data=st.data(), delay_ms=st.sampled_from([0, 0, 120]))
    def nack(self, data: st.DataObject, delay_ms: int) -> None:
        self.pair.nack(*self._named(data), delay_ms=delay_ms)

    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        self.pair.extend(*self._named(data))

    @rule(start=STARTS)
    def reset(self, start: object) -> None:
        self.pair.reset(start)  # type: ignore[arg-type]

    @rule()
    def drop(self) -> None:
        self.pair.drop()

    @rule(before_seq=st.integers(1, 20))
    def delete_prefix(self, before_seq: int) -> None:
        self.pair.delete(before_seq=before_seq)

    @rule(tag=st.sampled_from(["x", "y"]))
    def delete_tag(self, tag: str) -> None:
        self.pair.delete(tag=tag)

    @rule(ms=st.sampled_from([1, 99, 100, 101, 500]))
    def wait(self, ms: int) -> None:
        self.pair.wait(ms)

    @invariant()
    def memory_and_facts_are_what_the_oracle_says(self) -> None:
        if hasattr(self, "pair"):
            self.pair.check()
            self.pair.check_replay()

    def teardown(self) -> None:
        if hasattr(self, "pair"):
            self.pair.check_crashes()


GroupMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestGroup = GroupMachine.TestCase

STEPS: dict[str, Callable[[Pair], object]] = {
    "a consumes": lambda pair: pair.consume("a", 1),
    "b consumes 2": lambda pair: pair.consume("b", 2),
    "somebody consumes": lambda pair: pair.consume("", 3),
    "a acks": lambda pair: pair.ack(2, "a"),
    "b acks": lambda pair: pair.ack(3, "b"),
    "somebody acks 1": lambda pair: pair.ack(1),
    "somebody acks 3": lambda pair: pair.ack(3),
    "the first claim is acked": lambda pair: _first(pair, pair.ack),
    "2 is acked alone": lambda pair: pair.ack(2, "", 2),
    "the first claim is given back": lambda pair: _first(pair, pair.nack),
    "3 is given back for later": lambda pair: pair.nack(3, delay_ms=150),
    "the first claim is kept": lambda pair: _first(pair, pair.extend),
    "claims run out": lambda pair: pair.wait(101),
    "1 is deleted": lambda pair: pair.delete(before_seq=2),
    "x is deleted": lambda pair: pair.delete(tag="x"),
    "the TTL passes": lambda pair: pair.wait(1001),
    "the cap evicts": lambda pair: pair.write(2),
    "it is reset to 2": lambda pair: pair.reset(at_seq(2)),
}


def _first(pair: Pair, verb: Callable[[int, str, int, str], object]) -> None:
    """The first claim that was made, whatever became of it."""
    for claim in pair.claims[:1]:
        verb(claim.last_seq, claim.consumer, 0, claim.claim_id)


WORN = ("somebody consumes", "claims run out", "somebody consumes")
"""All was delivered as often as it may be, and is with somebody for the last time."""


def run(names: tuple[str, ...]) -> None:
    """Three records, the second one tagged, in a topic with a TTL, room for three, and two deliveries each."""
    pair = Pair(crashes=False, max_deliveries=2, ttl_ms=1000, cap_records=3)
    pair.write(1)
    pair.write(1, tag="x")
    pair.write(1)
    for count, name in enumerate(names, 1):
        try:
            STEPS[name](pair)
            pair.check()
        except AssertionError as error:
            raise AssertionError(f"{names[:count]}: {error}") from error
    pair.check_replay()


def test_a_part_that_somebody_else_has_got_is_not_buried_with_the_rest() -> None:
    pair = Pair()
    pair.write(3)
    pair.consume("", 3)
    pair.nack(2, from_seq=2)
    assert [record.seq for record in pair.consume("", 3).records] == [2]
    pair.ack(3)
    pair.check()
    assert pair.oracle.committed(pair.now_ms) == 1
    pair.check_replay()


def test_an_ack_of_what_was_given_back_is_none() -> None:
    pair = Pair()
    pair.write(3)
    pair.consume("", 3)
    pair.nack(3)
    pair.ack(3)
    pair.check()
    assert pair.oracle.committed(pair.now_ms) == 0


def test_claims_that_ran_out_come_back_together_up_to_what_is_done() -> None:
    pair = Pair()
    pair.write(3)
    pair.write(1, tag="x")
    pair.write(1)
    for consumer in ("a", "b", "c"):
        pair.consume(consumer, 1)
    pair.delete(tag="x")
    pair.consume("d", 1)
    pair.wait(101)
    assert [record.seq for record in pair.consume("", 9).records] == [1, 2, 3]
    assert [record.seq for record in pair.consume("", 9).records] == [5], "4 was gone before anybody got it"
    pair.check_replay()


def test_what_is_gone_before_it_could_be_buried_is_passed_over() -> None:
    pair = Pair(max_deliveries=1)
    for tag in ("", "x", ""):
        pair.write(1, tag=tag)
    for consumer in ("a", "b", "c"):
        pair.consume(consumer, 1)
    pair.delete(tag="x")
    pair.wait(101)
    pair.extend(1, "a")
    pair.ack(3, "c")
    pair.consume()
    pair.check()
    group = pair.rig.group()
    assert group is not None and [(found.first, found.last) for found in group.ranges] == [(1, 1), (2, 3)]
    pair.ack(1, "a")
    assert pair.oracle.committed(pair.now_ms) == 3
    pair.check_replay()


def test_what_was_deleted_within_a_claim_is_told_with_its_loss() -> None:
    pair = Pair(ttl_ms=1000)
    for tag in ("", "x", ""):
        pair.write(1, tag=tag)
    pair.consume("b", 2)
    pair.delete(tag="x")
    pair.wait(1001)
    pair.ack(1)
    told = [batch.tombstone for batch in (pair.consume("", 3), pair.consume("", 3))]
    assert [each and (each.gap_from, each.gap_to) for each in told] == [(2, 2), (3, 3)]
    pair.ack(3)
    assert pair.consume("", 3).tombstone is None
    pair.check()
    pair.check_crashes()


def test_two_groups_know_nothing_of_each_other() -> None:
    rig = GroupRig()
    rig.write_numbers(1, 2, 3)
    for name in ("a", "b"):
        batch = rig.step(Consume("t", name, limit=2)).reply
        assert isinstance(batch, GroupBatch) and batch.count == 2
    rig.step(AckGroup("t", "a", 2))
    log = rig.log()
    assert [(group.name, group.committed) for group in log.groups] == [("a", 2), ("b", 0)]


@pytest.mark.parametrize("first", STEPS)
@pytest.mark.parametrize("before", [(), WORN], ids=["fresh", "worn"])
def test_every_short_history(before: tuple[str, ...], first: str) -> None:
    for rest in itertools.product(STEPS, repeat=2):
        run((*before, first, *rest))


@pytest.mark.soak
@pytest.mark.parametrize("first", STEPS)
def test_every_history_of_five_steps(first: str) -> None:
    for rest in itertools.product(STEPS, repeat=4):
        run((first, *rest))


# ---- retention that waits for groups


def test_retention_waits_for_a_group_and_goes_on_with_its_ack() -> None:
    rig = GroupRig()
    rig.configure("t", cap_records=2, protect_groups=["g"])
    rig.write_numbers(1, 2, 3, 4, 5)
    assert rig.log().count == 5, "it has not come yet, and needs all of it"
    rig.step(Consume("t", "g", limit=4))
    rig.step(AckGroup("t", "g", 2))
    assert (rig.log().count, rig.log().evict_floor) == (3, 3)
    rig.step(AckGroup("t", "g", 4))
    assert (rig.log().count, rig.log().evict_floor) == (2, 4)
    other = rig.replayed()
    assert (other.log().count, other.log().evict_floor) == (2, 4)
    group = other.group()
    assert group is not None and group.committed == 4 and not len(group.losses)


def test_what_a_group_keeps_is_bounded_and_then_told() -> None:
    rig = GroupRig()
    rig.configure("t", cap_records=2, protect_groups=["g"], protect_max_bytes=5)
    rig.step(ResetGroup("t", "g", at_seq(1)))
    rig.write_numbers(*range(8))
    assert rig.log().count == 5 and rig.log().holds.overrun_count == 3
    batch = rig.step(Consume("t", "g")).reply
    assert isinstance(batch, GroupBatch) and batch.tombstone is not None
    assert (batch.tombstone.gap_from, batch.tombstone.gap_to, batch.first_seq) == (1, 3, 4)


def test_a_reset_goes_back_no_further_than_what_is_there() -> None:
    rig = GroupRig()
    rig.configure("t", ttl_ms=100, protect_groups=["g"])
    rig.write_numbers(1, 2, 3)
    rig.step(ResetGroup("t", "g", at_seq(3)))
    rig.now_ms += 200
    assert rig.seqs() == [3]
    rig.step(ResetGroup("t", "g", at_seq(1)))
    assert rig.seqs() == rig.replayed().seqs() == [3]
    batch = rig.step(Consume("t", "g")).reply
    assert isinstance(batch, GroupBatch) and batch.tombstone is not None
    assert (batch.tombstone.gap_from, batch.tombstone.gap_to) == (1, 2)
