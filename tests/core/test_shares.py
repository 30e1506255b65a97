"""One pass divides evenly, then by what is wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.shares import cut, deal, shares


@pytest.mark.parametrize(
    ("available", "wanted", "parts"),
    [
        (50, [10] * 10, [5] * 10),
        (50, [1, 10, 100], [1, 10, 39]),
        (3, [10, 10, 10, 10], [1, 1, 1, 0]),
        (5, [1, 10, 100, 3], [1, 1, 2, 1]),
        (7, [3, 3, 3], [3, 2, 2]),
        (100, [5, 5], [5, 5]),
        (0, [3, 1], [0, 0]),
        (4, [], []),
    ],
)
def test_even_parts_and_the_rest_to_those_who_want_most(available: int, wanted: list[int], parts: list[int]) -> None:
    assert shares(available, wanted) == parts


@given(st.integers(0, 200), st.lists(st.integers(1, 60), max_size=12))
def test_all_is_given_out_and_nobody_can_complain(available: int, wanted: list[int]) -> None:
    parts = shares(available, wanted)
    assert sum(parts) == min(available, sum(wanted))
    assert all(part <= want for part, want in zip(parts, wanted, strict=True))
    for part, want in zip(parts, wanted, strict=True):
        if part < want:
            assert part >= max(parts) - 1, "who wants more than it got has as much as anybody, but for one"


@given(st.lists(st.integers(1, 1000), unique=True, max_size=40), st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_dealing_gives_everybody_their_part_once(items: list[int], wanted: list[int]) -> None:
    parts = shares(len(items), wanted)
    hands = deal(items, parts)
    assert [len(hand) for hand in hands] == parts
    assert sorted(item for hand in hands for item in hand) == sorted(items[: sum(parts)])
    assert all(hand == sorted(hand) for hand in hands)


def test_dealing_goes_round_so_that_nobody_gets_all_of_the_oldest() -> None:
    assert deal([1, 2, 3, 4, 5, 6], [2, 2, 2]) == [[1, 4], [2, 5], [3, 6]]


def test_cutting_gives_to_each_the_next_ones() -> None:
    assert cut([1, 2, 3, 4, 5, 6], [2, 0, 3, 1]) == [[1, 2], [], [3, 4, 5], [6]]
    assert cut([8, 9, 1, 2], [3, 1]) == [[1, 8, 9], [2]]
