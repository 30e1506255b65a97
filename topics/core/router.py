"""The routers that there are, and the graph they make of topics.

A topic has at most one source, however many routers lead from that source to it. So a cycle is always a ring that
nothing leads into, and the way back from a topic to where its records come from is a walk without a fork.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

from topics.core.match import Match, parse_match
from topics.routermodel import RouterConfig


@dataclass(frozen=True, slots=True)
class Router:
    """One router of that name. A later one of the same name, or with other topics at its ends, has a higher number."""

    name: str
    number: int
    config: RouterConfig
    created_ms: int
    starts: tuple[int, ...]
    """For each partition of the source: the last seq that is not forwarded."""
    match: Match | None

    @classmethod
    def of(cls, name: str, number: int, config: RouterConfig, created_ms: int, starts: tuple[int, ...]) -> Router:
        match = None if config.filter is None else parse_match(config.filter, "filter")
        return cls(name, number, config, created_ms, starts, match)


class Routers:
    """All routers by name, in order of their names, and by the topics at their ends."""

    def __init__(self) -> None:
        self._routers: dict[str, Router] = {}
        self._names: list[str] = []
        self._by_source: dict[str, dict[str, Router]] = {}
        self._by_dest: dict[str, dict[str, Router]] = {}
        self.changed: set[str] = set()
        """Names of routers that came, changed or went since a checkpoint last looked."""
        self.version = 0
        """Goes up with each change."""

    def __len__(self) -> int:
        return len(self._routers)

    def __iter__(self) -> Iterator[Router]:
        return iter(self._routers.values())

    def get(self, name: str) -> Router | None:
        return self._routers.get(name)

    def put(self, router: Router) -> None:
        self.remove(router.name)
        self._routers[router.name] = router
        insort(self._names, router.name)
        self._by_source.setdefault(router.config.source, {})[router.name] = router
        self._by_dest.setdefault(router.config.dest, {})[router.name] = router
        self._note(router.name)

    def remove(self, name: str) -> Router | None:
        router = self._routers.pop(name, None)
        if router is None:
            return None
        del self._names[bisect_left(self._names, name)]
        for index, topic in ((self._by_source, router.config.source), (self._by_dest, router.config.dest)):
            del index[topic][name]
            if not index[topic]:
                del index[topic]
        self._note(name)
        return router

    def _note(self, name: str) -> None:
        self.changed.add(name)
        self.version += 1

    def out_of(self, topic: str) -> list[Router]:
        return list(self._by_source.get(topic, {}).values())

    def into(self, topic: str) -> list[Router]:
        return list(self._by_dest.get(topic, {}).values())

    def touching(self, topic: str) -> list[str]:
        """The names of all routers with this topic at one of their ends, in order."""
        return sorted(self._by_source.get(topic, {}).keys() | self._by_dest.get(topic, {}).keys())

    def page(
        self, after: str, prefix: str, limit: int, source: str | None = None, dest: str | None = None
    ) -> list[Router]:
        """Up to `limit` routers behind the name `after`, in order of their names."""
        names = self._names
        if source is not None:
            names = sorted(self._by_source.get(source, {}))
        elif dest is not None:
            names = sorted(self._by_dest.get(dest, {}))
        found: list[Router] = []
        for index in range(bisect_left(names, max(prefix, after + "\0" if after else "")), len(names)):
            router = self._routers[names[index]]
            if not router.name.startswith(prefix) or len(found) == limit:
                break
            if dest is None or router.config.dest == dest:
                found.append(router)
        return found

    # ---- the graph

    def source_of(self, topic: str, without: str = "") -> str | None:
        """Where the records of a topic come from, as far as routers bring them; `without` is left out of account."""
        for router in self._by_dest.get(topic, {}).values():
            if router.name != without:
                return router.config.source
        return None

    def cycle_of(self, source: str, dest: str, without: str = "") -> list[str] | None:
        """The topics that records would pass from `source` through `dest` back to it, if a router led there."""
        path = {source: None}
        topic = source
        while topic != dest:
            before = self.source_of(topic, without)
            if before is None or before in path:
                return None
            path[before] = None
            topic = before
        return [source, *reversed(path)]

    def ring_of(self, router: Router) -> int:
        """How many topics are in the ring that a router is part of; 0 when it is in none."""
        cycle = self.cycle_of(router.config.source, router.config.dest)
        return 0 if cycle is None else len(cycle) - 1
