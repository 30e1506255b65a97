"""Which queries the routes of a table need: one for all that count from NOW, and one for each other beginning.

Routes that were declared together begin together, so that what they write is in the order of the changes. A route from
NOW takes part in the one query there is: the moment it counts from is a condition, not a position. What was declared
with a place of its own reads on its own, from there on; who came later than the first look at such a query is not in
it, because the query may have moved on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from topics.tablemodel import TableRoute

MAIN: Final = "main"


@dataclass(frozen=True)
class Strand:
    """One query: some routes of a table, with one position."""

    name: str
    start: str
    start_version: int
    since_ms: int
    routes: tuple[TableRoute, ...]


Members = Callable[[str, frozenset[int]], frozenset[int]]
"""Given a strand and the routes that could be in it: those that are, which is decided once and for good."""


def strands_of(routes: Iterable[TableRoute], members_of: Members = lambda strand, numbers: numbers) -> list[Strand]:
    groups: dict[str, list[TableRoute]] = {}
    for route in sorted(routes, key=lambda route: route.number):
        name = MAIN if route.start == "now" else f"{route.start}-{route.start_version}-{route.declared_ms}"
        groups.setdefault(name, []).append(route)
    found: dict[str, list[TableRoute]] = {}
    for name, group in groups.items():
        numbers = frozenset(route.number for route in group)
        members = numbers if name == MAIN else members_of(name, numbers)
        for route in group:
            own = name if route.number in members else f"{name}-{route.number}"
            found.setdefault(own, []).append(route)
    return [
        Strand(
            name,
            members[0].start,
            members[0].start_version,
            min(member.declared_ms for member in members),
            tuple(members),
        )
        for name, members in sorted(found.items())
    ]
