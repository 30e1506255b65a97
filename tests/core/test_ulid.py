from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.ulid import MessagePlace, message_id, message_ids, parse_message_id

PLACES = st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 2**16 - 1), st.integers(0, 2**64 - 1))


@given(PLACES)
def test_an_id_says_where_its_message_is(place: tuple[int, int, int]) -> None:
    text = message_id(*place)
    assert len(text) == 26 and parse_message_id(text) == MessagePlace(*place)


@given(PLACES, PLACES)
def test_ids_sort_as_their_places_do(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    assert (message_id(*one) < message_id(*other)) == (one < other)


@given(st.integers(0, 2**48 - 1), st.integers(0, 1023), st.integers(1, 2**40), st.integers(0, 40))
def test_ids_of_a_batch_are_those_of_its_messages(ts: int, partition: int, first: int, count: int) -> None:
    for start in (first, 2**20 - 5, 2**21 - 1):
        wanted = [message_id(ts, partition, seq) for seq in range(start, start + count)]
        assert message_ids(ts, partition, start, count) == wanted


def test_a_known_one() -> None:
    """Bits by hand: 1 ms, partition 1, seq 1."""
    assert message_id(1, 1, 1) == "0000000001" + "000G" + "000000000001"


@pytest.mark.parametrize("text", ["", "0" * 25, "0" * 27, "O" + "0" * 25, "8" + "0" * 25, "0" * 25 + "u", "é" * 26])
def test_what_is_no_id(text: str) -> None:
    assert parse_message_id(text) is None
