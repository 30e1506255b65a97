from __future__ import annotations

import pytest

from topics.core.dedupe import IdempotencyKey
from topics.core.transaction import check_transaction, key_of, stage_of, staged_key
from topics.errors import InvalidRequest


@pytest.mark.parametrize("transaction", ["t", "a:b:c", "ü" * 50])
def test_a_stage_leaves_the_keys_of_its_transaction(transaction: str) -> None:
    assert staged_key(stage_of(transaction, "7.1.0"), 5) == key_of(transaction, 5)


def test_other_stages_leave_none() -> None:
    assert staged_key("mine", 0) is None


def test_keys_say_how_many_came_before() -> None:
    assert key_of("t", 0) == IdempotencyKey("txn:t:0") != key_of("t", 1)


def test_an_id_that_is_too_long() -> None:
    check_transaction("t" * 100)
    with pytest.raises(InvalidRequest, match="100 bytes"):
        check_transaction("ü" * 51)
