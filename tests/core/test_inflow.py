"""What a log knows of the routers that bring records into it."""

from __future__ import annotations

from topics.core.inflow import HopRange, Inflow, Route, RouteKey
from topics.core.routerfacts import Forwarded


def forwarded(cursor: int, first_seq: int = 0, count: int = 0, trimmed: int = 0, hops: int = 0) -> Forwarded:
    return Forwarded(7, 3, cursor, first_seq=first_seq, count=count, trimmed=trimmed, hops=hops)


def test_cursor_and_counts_are_those_of_all_facts() -> None:
    inflow = Inflow()
    inflow.apply(forwarded(4, 1, 4))
    inflow.apply(forwarded(10, 7, 4, trimmed=2))
    assert inflow.routes == {RouteKey(7, 3): Route(10, 8, 2)}
    inflow.apply(forwarded(9))
    assert inflow.routes[RouteKey(7, 3)].cursor == 9, "the last fact counts, also when it goes back"


def test_hops_of_neighbours_are_one_range() -> None:
    inflow = Inflow()
    inflow.apply(forwarded(4, 1, 4, hops=1))
    inflow.apply(forwarded(6, 5, 2, hops=1))
    inflow.apply(forwarded(7, 7, 1, hops=2))
    inflow.apply(forwarded(9, 20, 2, trimmed=3, hops=2))
    assert inflow.hops == [HopRange(1, 6, 1), HopRange(7, 7, 2), HopRange(17, 21, 2)]


def test_hops_are_told_up_to_where_they_change() -> None:
    inflow = Inflow(hops=[HopRange(3, 6, 1), HopRange(7, 7, 2)])
    assert inflow.hops_at(1, 100) == (0, 2)
    assert inflow.hops_at(1, 1) == (0, 1)
    assert inflow.hops_at(3, 100) == (1, 6) == inflow.hops_at(5, 100)
    assert inflow.hops_at(5, 5) == (1, 5)
    assert inflow.hops_at(7, 100) == (2, 7)
    assert inflow.hops_at(8, 100) == (0, 100)


def test_what_the_ring_has_passed_is_forgotten() -> None:
    inflow = Inflow(hops=[HopRange(3, 6, 1), HopRange(7, 9, 2)])
    inflow.forget_hops(5)
    assert len(inflow.hops) == 2
    inflow.forget_hops(6)
    assert inflow.hops == [HopRange(7, 9, 2)]
    inflow.forget_hops(100)
    assert inflow.hops == []


def test_routers_that_are_gone_are_forgotten() -> None:
    inflow = Inflow({RouteKey(1, 3): Route(5), RouteKey(2, 3): Route(6)})
    inflow.forget_routers({2})
    assert inflow.routes == {RouteKey(2, 3): Route(6)}
