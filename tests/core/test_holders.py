from __future__ import annotations

from topics.core.holders import NOBODY, Holders


def test_a_holder_is_a_number_as_long_as_a_lease_names_it() -> None:
    holders = Holders()
    first = holders.take("a", 0, 2)
    assert first != NOBODY
    assert holders.take("a", 0, 1) == first
    assert holders.take("b", 0, 1) != first
    assert (holders.nodes[first], len(holders)) == ("a", 2)
    for _ in range(3):
        holders.drop(first)
    assert len(holders) == 1
    assert holders.take("c", 0, 1) == first, "the number of a holder that is gone is used again"


def test_many_workers_that_come_and_go_leave_nothing_behind() -> None:
    holders = Holders()
    for number in range(1000):
        holders.drop(holders.take(f"worker-{number}", number, 1))
    assert len(holders) == 0
    assert holders.take("last", 0, 1) == 1


def test_a_connection_knows_what_it_holds_and_tells_when_it_holds_less() -> None:
    holders = Holders()
    streamed = holders.take("a", 7, 2)
    polled = holders.take("a", 0, 1)
    assert streamed != polled
    holders.holds(streamed, 12)
    holders.holds(streamed, 11)
    holders.holds(polled, 13)
    assert (holders.on_connection(7), holders.held_count(7)) == ([11, 12], 2)
    assert holders.lighter == set()
    holders.lost(polled, 13)
    assert holders.lighter == set()
    holders.lost(streamed, 11)
    assert (holders.on_connection(7), holders.lighter) == ([12], {7})
    holders.lost(streamed, 12)
    assert (holders.on_connection(7), holders.held_count(7)) == ([], 0)
