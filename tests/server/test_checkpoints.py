"""Numbers that a stream can go back to."""

from __future__ import annotations

from topics.server import checkpoints
from topics.server.checkpoints import Checkpoints


def test_a_checkpoint_is_where_each_log_stood_then() -> None:
    found = Checkpoints({"a": (0, 1), "b": (5, 2)})
    assert [found.advance("a", (3, 1)), found.advance("b", (6, 2)), found.advance("a", (4, 1))] == [1, 2, 3]
    assert found.since(3) == {}
    assert found.since(2) == {"a": (3, 1)}
    assert found.since(0) == {"a": (0, 1), "b": (5, 2)}
    assert found.since(4) is None, "that never was"


def test_going_back_and_on_uses_no_number_twice() -> None:
    found = Checkpoints({"a": (0, 1)})
    for seq in (1, 2, 3):
        found.advance("a", (seq, 1))
    found.go_back(1)
    assert found.since(1) == {}
    assert found.advance("a", (2, 1)) == 4
    assert found.since(1) == {"a": (1, 1)}
    assert found.since(3) == {"a": (1, 1)}, "of what was undone, as far as is known for sure"


def test_a_log_that_joins_and_one_that_leaves() -> None:
    found = Checkpoints({})
    found.join("a", (7, 3))
    found.advance("a", (8, 3))
    assert found.since(0) == {"a": (7, 3)}
    found.forget("a")
    found.forget("a")
    found.join("a", (0, 4))
    found.advance("a", (1, 4))
    assert found.since(1) == {"a": (0, 4)}


def test_what_is_too_long_ago_is_not_known() -> None:
    found = Checkpoints({"a": (0, 1)})
    count = checkpoints.KEPT_MAX + 10
    for seq in range(1, count + 1):
        found.advance("a", (seq, 1))
    assert found.since(9) is None
    assert found.since(10) == {"a": (10, 1)}
