"""What there is to know about routers, for who asks: see docs/ROUTERS.md."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from topics.core import routing
from topics.core.machine import Machine
from topics.core.router import Router
from topics.engine.forwarding import Forwarding
from topics.limits import PAGE_SIZE_DEFAULT
from topics.routermodel import RouterState


class Routing:
    def __init__(self, machine: Machine, forwarding: Forwarding, now_ms: Callable[[], int]) -> None:
        self._machine = machine
        self._forwarding = forwarding
        self._now_ms = now_ms

    def state(self, name: str) -> RouterState:
        """How far a router is, and why it does not go on if it does not. `RouterNotFound` when there is none."""
        return self._state(routing.find(self._machine, name))

    def page(
        self,
        prefix: str = "",
        source: str | None = None,
        dest: str | None = None,
        after: str = "",
        limit: int = PAGE_SIZE_DEFAULT,
    ) -> list[RouterState]:
        """Routers in order of their names, behind `after`."""
        source, dest = self._name(source), self._name(dest)
        return [self._state(router) for router in self._machine.routers.page(after, prefix, limit, source, dest)]

    def _name(self, topic: str | None) -> str | None:
        """The name of a topic that may be meant by its alias."""
        found = None if topic is None else self._machine.topics.get(topic)
        return topic if found is None else found.name

    def _state(self, router: Router) -> RouterState:
        state = routing.state(self._machine, router, self._now_ms())
        ways = self._forwarding.ways(router.name)
        stalled = next((way.stalled for way in ways if way.stalled is not None), None)
        error_ts, error = max(
            ((way.last_error_ms, way.last_error) for way in ways if way.last_error_ms is not None),
            default=(None, None),
        )
        return msgspec.structs.replace(state, stalled=stalled, last_error=error, last_error_ts=error_ts)
