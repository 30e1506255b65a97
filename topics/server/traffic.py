"""What the server counts of its requests.

Counting must cost next to nothing beside a small write: each request adds one to a number that its route holds, and
only every `SAMPLE`th is timed. Refusals, which are rare, are counted one by one.
"""

from __future__ import annotations

from topics.storage.walmetrics import Histogram

DURATION_BOUNDS_US = (100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000)
SAMPLE = 16


class RouteTraffic:
    __slots__ = ("duration_us", "method", "path", "requests")

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.path = path
        self.requests = 0
        self.duration_us = Histogram.of(DURATION_BOUNDS_US)

    def arrived(self) -> bool:
        """Count a request; whether it is one that is timed. The first one is."""
        self.requests += 1
        return self.requests % SAMPLE == 1

    def arrived_together(self, count: int) -> int:
        """Count several requests; how many of them are timed."""
        before = self.requests
        self.requests = before + count
        return (before + count + SAMPLE - 1) // SAMPLE - (before + SAMPLE - 1) // SAMPLE

    def answered(self, duration_ns: int) -> None:
        self.duration_us.add(duration_ns // 1000)


class Traffic:
    def __init__(self) -> None:
        self.routes: dict[tuple[str, str], RouteTraffic] = {}
        self.errors: dict[tuple[int, str], int] = {}
        """Answers that were errors, by status and code."""

    def of(self, method: str, path: str) -> RouteTraffic:
        """The counters of a route, made when first asked for. `path` is the route's, never the request's."""
        found = self.routes.get((method, path))
        if found is None:
            found = self.routes[method, path] = RouteTraffic(method, path)
        return found

    def refused(self, status: int, code: str) -> None:
        self.errors[status, code] = self.errors.get((status, code), 0) + 1
