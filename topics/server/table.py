"""The one table of routes, and finding the one a request asks for.

A path is a walk through a tree of its segments: a literal first, else the segment that captures. Every answer is
remembered, since most requests ask for what was asked for before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from topics.errors import MethodNotAllowed, NotFound, TopicsError
from topics.server.intake.order import Order, order_of_method
from topics.server.route import Route
from topics.server.routes import (
    archives,
    audit,
    backup,
    deadletters,
    delete,
    diff,
    discard,
    document,
    grouplist,
    groups,
    groupwatch,
    health,
    heaps,
    keys,
    leases,
    messages,
    metrics,
    observing,
    pipelines,
    priorities,
    producers,
    queues,
    records,
    redrive,
    routers,
    seqmap,
    signin,
    sql,
    stages,
    tables,
    tokens,
    topics,
    users,
    watch,
    web,
    work,
    ws,
)

_SERVED = (
    *topics.ROUTES,
    *records.ROUTES,
    *diff.ROUTES,
    *delete.ROUTES,
    *seqmap.ROUTES,
    *queues.ROUTES,
    *leases.ROUTES,
    *work.ROUTES,
    *groups.ROUTES,
    *grouplist.ROUTES,
    *groupwatch.ROUTES,
    *redrive.ROUTES,
    *discard.ROUTES,
    *heaps.ROUTES,
    *priorities.ROUTES,
    *messages.ROUTES,
    *deadletters.ROUTES,
    *routers.ROUTES,
    *tables.ROUTES,
    *pipelines.ROUTES,
    *stages.ROUTES,
    *sql.ROUTES,
    *tokens.ROUTES,
    *watch.ROUTES,
    *ws.ROUTES,
    *keys.ROUTES,
    *users.ROUTES,
    *signin.ROUTES,
    *audit.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
    *observing.ROUTES,
    *backup.ROUTES,
    *archives.ROUTES,
    *producers.ROUTES,
)
ROUTES = (*_SERVED, *document.routes(_SERVED))
"""Every route of the API."""
EVERYTHING = (*ROUTES, *web.ROUTES)
"""Those, and the files of the dashboard."""

FOUND_MAX = 8192
FOUND_CHARS_MAX = 512
"""Remembered answers to "which route is this", and the longest path that one is remembered for."""

SHOWN_CHARS = 80
"""As much of a path as an error repeats."""


@dataclass(slots=True)
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict)
    capture: _Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """What the captured segments on the way here are called."""


class Table:
    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            self._add(route)
        self._find_again = lru_cache(FOUND_MAX)(self._find)

    def _add(self, route: Route) -> None:
        node = self._root
        names = []
        for segment in route.path.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment.strip("{}"))
                if node.capture is None:
                    node.capture = _Node()
                node = node.capture
            else:
                node = node.literals.setdefault(segment, _Node())
        assert route.method not in node.routes, f"{route.method} {route.path} is there twice"
        assert not node.routes or node.names == tuple(names), f"{route.path} names its parts in another way"
        node.names = tuple(names)
        node.routes[route.method] = route

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """The route and what its path captured; `NotFound`, or `MethodNotAllowed` naming those that are."""
        return self._find_again(method, path) if len(path) <= FOUND_CHARS_MAX else self._find(method, path)

    def _find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        node, captured = self._walk(path)
        # Who answers a GET answers a HEAD: the protocol keeps the body back.
        route = node.routes.get(method) or (node.routes.get("GET") if method == "HEAD" else None)
        if route is None:
            allow = _allowed(node)
            raise MethodNotAllowed(
                f"{method} is not a method of {_shown(path)}; {', '.join(allow)} are", method=method, allow=allow
            )
        return route, dict(zip(node.names, captured, strict=True))

    def order_of(self, method: str, path: str) -> Order:
        """Which requests of the same connection may begin before this one is answered."""
        try:
            route, _ = self.find(method, path)
        except TopicsError:
            return order_of_method(method, path)
        return route.order or order_of_method(method, path)

    def allowed(self, path: str) -> list[str]:
        """The methods of a path; `NotFound` when there is no such path."""
        return _allowed(self._walk(path)[0])

    def _walk(self, path: str) -> tuple[_Node, list[str]]:
        node = self._root
        captured = []
        for segment in path.split("/")[1:]:
            child = node.literals.get(segment)
            if child is None:
                # An empty segment names nothing: `/v0/topics/` is not a topic.
                if node.capture is None or not segment:
                    raise _not_found(path)
                child = node.capture
                captured.append(segment)
            node = child
        if not node.routes:
            raise _not_found(path)
        return node, captured


def _allowed(node: _Node) -> list[str]:
    methods = {*node.routes, "OPTIONS"}
    if "GET" in methods:
        methods.add("HEAD")
    return sorted(methods)


def _not_found(path: str) -> NotFound:
    shown = _shown(path)
    return NotFound(f"there is nothing at {shown}; see /v0/docs for what there is", path=shown)


def _shown(path: str) -> str:
    return path if len(path) <= SHOWN_CHARS else path[: SHOWN_CHARS - 1] + "…"
