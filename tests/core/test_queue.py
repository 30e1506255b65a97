"""A queue against its oracle: random histories, every short one, and whatever a crash leaves of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.core.queuerig import Pair, QueueRig
from topics.core.commands import Claim, Claimer

NODES = st.sampled_from(["a", "b", "c"])


class QueueMachine(RuleBasedStateMachine):
    pair: Pair

    @initialize(
        deliveries=st.sampled_from([0, 0, 2]), ttl_ms=st.sampled_from([0, 0, 400]), cap=st.sampled_from([0, 0, 6])
    )
    def begin(self, deliveries: int, ttl_ms: int, cap: int) -> None:
        self.pair = Pair(lease_ms=100, max_deliveries=deliveries, ttl_ms=ttl_ms, cap_records=cap)

    @rule(count=st.integers(1, 5), tag=st.sampled_from(["", "x", "y"]), delay_ms=st.sampled_from([0, 0, 1, 150]))
    def write(self, count: int, tag: str, delay_ms: int) -> None:
        self.pair.write(count, tag, delay_ms)

    @rule(
        claimers=st.lists(st.tuples(NODES, st.integers(1, 4)), min_size=1, max_size=3),
        lease_ms=st.sampled_from([None, 100, 250]),
    )
    def claim(self, claimers: list[tuple[str, int]], lease_ms: int | None) -> None:
        self.pair.claim(*claimers, lease_ms=lease_ms)

    def _named(self, data: st.DataObject) -> tuple[str, list[int], list[str] | None]:
        """Jobs that were handed out once, with or without the lease ids of that time; or any others."""
        if not self.pair.held or data.draw(st.integers(0, 5)) == 0:
            return data.draw(NODES), data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)), None
        chosen = data.draw(st.lists(st.sampled_from(self.pair.held[-12:]), min_size=1, max_size=4))
        node = chosen[0][0]
        seqs = [seq for _, seq, _ in chosen]
        return node, seqs, [lease for _, _, lease in chosen] if data.draw(st.booleans()) else None

    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        self.pair.ack(*self._named(data))

    @rule(data=st.data(), delay_ms=st.sampled_from([0, 0, 120]), undelivered=st.booleans())
    def nack(self, data: st.DataObject, delay_ms: int, undelivered: bool) -> None:
        self.pair.nack(*self._named(data), delay_ms=delay_ms, undelivered=undelivered)

    @rule(data=st.data(), lease_ms=st.sampled_from([100, 300]))
    def extend(self, data: st.DataObject, lease_ms: int) -> None:
        node, seqs, lease_ids = self._named(data)
        self.pair.extend(node, seqs, lease_ms, lease_ids)

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


QueueMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestQueue = QueueMachine.TestCase

STEPS: dict[str, Callable[[Pair], object]] = {
    "a claims": lambda pair: pair.claim(("a", 1)),
    "b claims 2": lambda pair: pair.claim(("b", 2)),
    "both claim": lambda pair: pair.claim(("a", 2), ("b", 1)),
    "a acks": lambda pair: pair.ack("a", [1, 2]),
    "b acks": lambda pair: pair.ack("b", [1, 2]),
    "a acks by lease": lambda pair: _last(pair, "a", pair.ack),
    "a nacks": lambda pair: pair.nack("a", [1, 2]),
    "b nacks late": lambda pair: pair.nack("b", [1, 2], delay_ms=150),
    "a extends": lambda pair: pair.extend("a", [1, 2], 300),
    "leases run out": lambda pair: pair.wait(101),
    "1 is deleted": lambda pair: pair.delete(before_seq=2),
    "x is deleted": lambda pair: pair.delete(tag="x"),
    "the TTL passes": lambda pair: pair.wait(1001),
    "the cap evicts": lambda pair: pair.write(1),
}


def _last(pair: Pair, node: str, verb: Callable[[str, list[int], list[str]], object]) -> None:
    """What a worker got first, with the lease it had then, whatever became of it."""
    own = [(seq, lease) for holder, seq, lease in pair.held if holder == node][:1]
    if own:
        verb(node, [own[0][0]], [own[0][1]])


WORN = ("both claim", "leases run out", "both claim")
"""Both jobs were delivered as often as they may be, and are with somebody for the last time."""


def run(names: tuple[str, ...]) -> None:
    """Two jobs, the second one tagged, in a queue with a TTL, room for two, and two deliveries a job."""
    pair = Pair(crashes=False, lease_ms=100, max_deliveries=2, ttl_ms=1000, cap_records=2)
    pair.write(1)
    pair.write(1, tag="x")
    for name in names:
        STEPS[name](pair)
        pair.check()
    pair.check_replay()


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


def test_a_queue_does_not_look_again_at_what_is_done() -> None:
    """A hundred thousand jobs done behind the cursor, and as many deleted before it, cost the next claim nothing."""
    rig = QueueRig()
    rig.configure("q", type="queue")
    for _ in range(50):
        rig.write(*({"data": 0, "tag": "old"} for _ in range(2000)), topic="q")
    rig.write({"data": 1}, topic="q")
    rig.delete("q", match="old")
    log = rig.log("q")
    assert log.queue is not None and len(log.runs) + (log.tail is not None) <= 2
    (answer,) = rig.step(Claim("q", (Claimer("a", 5),))).reply
    assert answer.seqs == [100_001]
    assert log.queue.cursor == 100_002


def test_the_cursor_passes_what_is_deleted_although_nothing_is_handed_out() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue")
    rig.write(*({"data": 0, "tag": "x"} for _ in range(10)), {"data": 1, "tag": "y"}, topic="q")
    rig.delete("q", match="x")
    rig.delete("q", match="y")
    assert rig.step(Claim("q", (Claimer("a"),))).reply[0].seqs == []
    queue = rig.log("q").queue
    assert queue is not None and queue.cursor == 12
