"""What a log knows of the routers that bring records into it: how far each has come, and where the copies came from.

routes   for each router and source log: the last seq there that is done with, and what has come of it
hops     for ranges of this log's seqs: how often the records were forwarded along the ring this topic is part of.
         Only of rings, only of what the ring may still have to forward; what is in no range was written here
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container
from dataclasses import dataclass, field
from typing import NamedTuple

from topics.core.routerfacts import Forwarded


class RouteKey(NamedTuple):
    router: int
    source_log_id: int


@dataclass(slots=True)
class Route:
    cursor: int
    forwarded_count: int = 0
    trimmed_count: int = 0


class HopRange(NamedTuple):
    first_seq: int
    last_seq: int
    hops: int


@dataclass(slots=True)
class Inflow:
    routes: dict[RouteKey, Route] = field(default_factory=dict)
    hops: list[HopRange] = field(default_factory=list)

    def apply(self, fact: Forwarded) -> None:
        key = RouteKey(fact.router, fact.source_log_id)
        route = self.routes.get(key)
        if route is None:
            route = self.routes[key] = Route(fact.cursor)
        route.cursor = fact.cursor
        route.forwarded_count += fact.count
        route.trimmed_count += fact.trimmed
        if fact.hops:
            # A gap goes around the ring as records do, and no further.
            self._add_hops(fact.first_seq - fact.trimmed, fact.first_seq + fact.count - 1, fact.hops)

    def _add_hops(self, first_seq: int, last_seq: int, hops: int) -> None:
        last = self.hops[-1] if self.hops else None
        if last is not None and last.last_seq + 1 == first_seq and last.hops == hops:
            self.hops[-1] = HopRange(last.first_seq, last_seq, hops)
        else:
            self.hops.append(HopRange(first_seq, last_seq, hops))

    def hops_at(self, seq: int, last_seq: int) -> tuple[int, int]:
        """How many hops the record `seq` has made, and up to which seq, at most `last_seq`, the others made as many."""
        at = bisect_left(self.hops, seq, key=lambda found: found.last_seq)
        if at == len(self.hops):
            return 0, last_seq
        found = self.hops[at]
        if found.first_seq > seq:
            return 0, min(last_seq, found.first_seq - 1)
        return found.hops, min(last_seq, found.last_seq)

    def forget_routers(self, existing: Container[int]) -> None:
        """Routers that are gone forward nothing any more."""
        self.routes = {key: route for key, route in self.routes.items() if key.router in existing}

    def forget_hops(self, upto_seq: int) -> None:
        """The ring has come past these."""
        if self.hops and self.hops[0].last_seq <= upto_seq:
            del self.hops[: bisect_left(self.hops, upto_seq + 1, key=lambda found: found.last_seq)]
