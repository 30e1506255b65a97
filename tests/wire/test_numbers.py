from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.wire.numbers import whole


def test_within() -> None:
    assert [whole("n", value, 5) for value in (None, 0, 5)] == [0, 0, 5]


@pytest.mark.parametrize("value", [-1, 6, 2**70])
def test_without(value: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        whole("n", value, 5)
    assert caught.value.detail == {"field": "n", "value": str(value), "expected": "a whole number from 0 to 5"}
