"""Quotas: how many requests one key may have under way at a time.

A request takes a slot and gives it back when its answer is given. A slot that is lost, because a handler failed or the
client went away and nobody will ever answer, is given back when the last reference to it goes.
"""

from __future__ import annotations

from collections.abc import Callable

from topics.errors import Throttled
from topics.server.principal import Principal

Release = Callable[[], None]
"""Gives a slot back; more than once does no harm."""


class Slot:
    __slots__ = ("_count", "_counts", "_key_id")

    def __init__(self, counts: dict[str, int], key_id: str, count: int) -> None:
        self._counts = counts
        self._key_id = key_id
        self._count = count
        counts[key_id] = counts.get(key_id, 0) + count

    def __call__(self) -> None:
        key_id = self._key_id
        if key_id:
            self._key_id = ""
            left = self._counts[key_id] - self._count
            if left:
                self._counts[key_id] = left
            else:
                del self._counts[key_id]

    def __del__(self) -> None:
        self()


def _nothing() -> None:
    """The slot of somebody who has no quota."""


class Quota:
    def __init__(self, inflight_per_key_max: int) -> None:
        """0 is no cap."""
        self._inflight_max = inflight_per_key_max
        self._inflight: dict[str, int] = {}

    def enter(self, principal: Principal, count: int = 1) -> Release:
        """A slot for one request, or for so many; `Throttled` when the key has too few left. Without keys there is
        nobody to charge."""
        key_id = principal.key_id
        most = self._inflight_max
        if not most or not key_id:
            return _nothing
        if self._inflight.get(key_id, 0) + count > most:
            raise Throttled(
                f"this key has {most} requests under way, as many as TOPICS_MAX_INFLIGHT_PER_KEY allows; "
                "try again when some are answered",
                limit="max_inflight_per_key",
                max=most,
            )
        return Slot(self._inflight, key_id, count)
