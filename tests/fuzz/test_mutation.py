"""Inputs that are made of others, and the pieces in which they come."""

from __future__ import annotations

from random import Random

import pytest

from proof.fuzz.mutation import CHANGES, SIBLINGS, Change, siblings
from proof.fuzz.pieces import ONE_BY_ONE_EVERY, cuttings, one_in

OTHERS = [b"", b"abc", bytes(range(256)), b"12 345 6"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_takes_whatever_there_is(change: Change) -> None:
    chance = Random(1)
    made = {change(chance.random, data, OTHERS, ()) for data in OTHERS for _ in range(200)}
    assert len(made) > len(OTHERS)


def test_siblings_are_short_enough_and_differ() -> None:
    chance = Random(2)
    for _ in range(200):
        made = siblings(chance, b"0123456789" * 5, OTHERS, (b"word",), 64)
        assert len(made) == SIBLINGS
        assert all(len(data) <= 64 for data in made)
    assert len(set(made)) > 1


def test_the_same_chance_makes_the_same() -> None:
    first, second = (siblings(Random(3), b"abcdef", OTHERS, (), 64) for _ in range(2))
    assert first == second


def test_pieces_are_all_of_an_input_and_always_the_same() -> None:
    inputs = [b"%d" % number for number in range(4 * ONE_BY_ONE_EVERY)]
    for data in (b"", *inputs):
        assert all(b"".join(pieces) == data for pieces in cuttings(data))
        assert cuttings(data) == cuttings(data)
    apart = [data for data in inputs if len(cuttings(data)) == 2]
    assert apart and len(apart) < len(inputs) // 8
    assert cuttings(apart[0])[1] == [apart[0][at : at + 1] for at in range(len(apart[0]))]
    assert 0 < sum(one_in(4, data) for data in inputs) < len(inputs) // 2
