from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.heaporder import SEQ_BITS, SEQ_MASK, Order, priority_of, rank_of, ranks_of
from topics.limits import HEAP_RUN_MESSAGES, HEAP_YOUNG_MESSAGES
from topics.model import Mode

I64 = st.integers(-(2**63), 2**63 - 1)


def drain(order: Order) -> list[int]:
    found = []
    while (key := order.first()) is not None:
        found.append(key)
        order.pop()
    return found


def push_many(order: Order, keys: list[int]) -> None:
    ranks = np.array([key >> SEQ_BITS for key in keys], np.uint64)
    order.push_many(ranks, np.array([key & SEQ_MASK for key in keys], np.uint64))


@given(one=I64, other=I64, mode=st.sampled_from(Mode))
def test_ranks_are_in_the_order_of_priorities(one: int, other: int, mode: Mode) -> None:
    assert priority_of(rank_of(one, mode), mode) == one
    assert 0 <= rank_of(one, mode) < 2**64
    better = one < other if mode is Mode.MIN else one > other
    assert (rank_of(one, mode) < rank_of(other, mode)) == better
    assert ranks_of(np.array([one, other], np.int64), mode).tolist() == [rank_of(one, mode), rank_of(other, mode)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_way_keys_come_they_leave_in_order(seed: int) -> None:
    """Single ones, batches that become runs, merges, and keys that leave in between; now and then a restart."""
    chance = random.Random(seed)
    order, known = Order(), list[int]()
    stored: dict[int, bytes] = {}
    seq = 1
    for _ in range(40):
        count = chance.choice([1, 30, 600, HEAP_YOUNG_MESSAGES + 1])
        keys = [chance.choice([0, 7, chance.getrandbits(64)]) << SEQ_BITS | seq + at for at in range(count)]
        seq += count
        push_many(order, keys)
        known = sorted(known + keys)
        for _ in range(chance.choice([0, 10, 2000])):
            if known:
                assert order.first() == known.pop(0)
                order.pop()
        if chance.random() < 0.2:
            stored |= dict(order.unstored())
            image = order.image()
            order.stored([number for number, _, _ in image.runs])
            for number in order.take_gone():
                stored.pop(number, None)
            assert {number for number, _, _ in image.runs} <= stored.keys()
            order = Order.of(image, stored)
        assert order.count == len(known)
    assert list(order.in_order()) == known
    assert drain(order) == known


def test_runs_stay_few_and_small() -> None:
    order = Order()
    for seq in range(1, 40 * HEAP_YOUNG_MESSAGES):
        order.push(seq % 977, seq)
    assert order.run_count < 20
    assert max(len(stored) for _, stored in order.unstored()) <= 16 * HEAP_RUN_MESSAGES
    drained = drain(order)
    assert drained == sorted(drained) and len(drained) == 40 * HEAP_YOUNG_MESSAGES - 1


def test_a_run_is_stored_once_and_removed_when_it_is_passed() -> None:
    order = Order()
    push_many(order, list(range(1, 1001)))
    ((number, _),) = order.unstored()
    order.stored([number])
    assert not list(order.unstored()) and not order.take_gone()
    drain(order)
    assert order.take_gone() == [number]


def test_a_run_that_went_while_its_snapshot_was_written_is_removed_from_the_next() -> None:
    order = Order()
    push_many(order, list(range(1, 1001)))
    ((number, _),) = order.unstored()
    drain(order)
    order.stored([number])
    assert order.take_gone() == [number]


def test_everything_is_stored_anew_after_a_repair() -> None:
    order = Order()
    push_many(order, list(range(1, 1001)))
    order.stored([number for number, _ in order.unstored()])
    order.store_anew()
    assert len(list(order.unstored())) == 1


def test_clearing() -> None:
    order = Order()
    push_many(order, list(range(1, 1001)))
    order.push(0, 1001)
    order.stored([number for number, _ in order.unstored()])
    order.clear()
    assert order.first() is None and order.count == 0 and len(order.take_gone()) == 1


@pytest.mark.parametrize("seed", range(3))
def test_keys_that_are_taken_from_the_end_and_put_back(seed: int) -> None:
    chance = random.Random(seed)
    order, known = Order(), list[int]()
    stored: dict[int, bytes] = {}
    for round_no in range(30):
        keys = [chance.randrange(100) << SEQ_BITS | round_no * 1000 + at for at in range(chance.choice([5, 700]))]
        push_many(order, keys)
        known = sorted(known + keys)
        taken = order.take_last(chance.choice([1, 300, 5000]))
        kept = [key for key in taken if chance.random() < 0.5]
        for key in taken:
            known.remove(key)
        for key in kept:
            order.push(key >> SEQ_BITS, key & SEQ_MASK)
        known = sorted(known + kept)
        for _ in range(chance.choice([0, 50])):
            if known:
                assert order.first() == known.pop(0)
                order.pop()
        stored |= dict(order.unstored())
        order = Order.of(order.image(), stored)
        assert order.count == len(known)
    assert drain(order) == known
    assert order.take_last(5) == []
