"""Which queries the routes of a table need."""

from __future__ import annotations

from topics.spark.pipeline.strands import MAIN, strands_of
from topics.tablemodel import TableRoute


def route(number: int, topic: str = "t", operation: str = "insert", start: str = "now", at: int = 5) -> TableRoute:
    return TableRoute(topic=topic, operation=operation, payload="key", start=start, declared_ms=at, number=number)


def test_routes_from_now_share_one_query() -> None:
    (strand,) = strands_of([route(2, "b", at=9), route(1, "a", at=7)])
    assert (strand.name, strand.since_ms, [each.number for each in strand.routes]) == (MAIN, 7, [1, 2])


def test_what_was_declared_together_stays_together() -> None:
    """Otherwise the insert and the update of a row could be written in the wrong order."""
    together = [route(1, operation="insert", start="snapshot"), route(2, operation="update", start="snapshot")]
    later = route(3, operation="delete", start="snapshot", at=6)
    strands = strands_of([*together, later, route(4)])
    assert sorted([each.number for each in strand.routes] for strand in strands) == [[1, 2], [3], [4]]
    assert len({strand.name for strand in strands}) == 3


def test_who_comes_later_is_not_taken_into_a_query_that_runs() -> None:
    routes = [route(number, start="snapshot") for number in (1, 2, 3)]
    strands = strands_of(routes, lambda strand, numbers: frozenset({1, 2}))
    assert [[each.number for each in strand.routes] for strand in strands] == [[1, 2], [3]]


def test_dropping_a_route_moves_no_other() -> None:
    routes = [route(1, operation="insert", start="snapshot"), route(2, operation="update", start="snapshot")]
    assert strands_of(routes)[0].name == strands_of(routes[1:])[0].name
