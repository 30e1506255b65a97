"""The news that the server stops, for streams that have no end of their own."""

from __future__ import annotations

from collections.abc import Callable


class Stopping:
    def __init__(self) -> None:
        self.is_over = False
        self._streams: set[Callable[[], None]] = set()

    def stop(self) -> None:
        self.is_over = True
        for end in list(self._streams):
            end()

    def add(self, end: Callable[[], None]) -> None:
        """Have `end` called when the server stops, unless it is removed before."""
        self._streams.add(end)
        if self.is_over:
            end()

    def remove(self, end: Callable[[], None]) -> None:
        self._streams.discard(end)
