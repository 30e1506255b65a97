"""Quotas: how many requests one key may have under way at a time, and how many streams may be open.

A request takes a slot and gives it back when its answer is given; a stream keeps its own until it is closed, and none
of those for requests. A slot that is lost, because a handler failed or the client went away and nobody will ever
answer, is given back when the last reference to it goes.

Streams that take over from each other share one slot: whoever comes back to a watch session whose last connection is
half-open must not be refused because of that very connection. At most one of them is open at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from topics.errors import Throttled
from topics.server.principal import Principal

Release = Callable[[], None]
"""Gives a slot back; more than once does no harm."""

NOBODY: Final = "-"
"""Under which the streams of those who have no key are counted."""


class Slot:
    __slots__ = ("__weakref__", "_count", "_counts", "_key_id")

    def __init__(self, counts: dict[str, int], key_id: str, count: int = 1) -> None:
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


class Share:
    """A part of a slot, which is given back with the last part."""

    __slots__ = ("_slot",)

    def __init__(self, slot: Slot) -> None:
        self._slot: Slot | None = slot

    def __call__(self) -> None:
        self._slot = None


def _nothing() -> None:
    """The slot of somebody who has no quota."""


class Quota:
    def __init__(self, inflight_per_key_max: int, streams_max: int = 0, streams_per_key_max: int = 0) -> None:
        """0 is no cap."""
        self._inflight_max = inflight_per_key_max
        self._inflight: dict[str, int] = {}
        self._streams_max = streams_max
        self._streams_per_key_max = streams_per_key_max
        self._streams: dict[str, int] = {}
        self.used: set[str] = set()
        """Keys that were used since somebody last looked, and emptied it."""
        self._shared: WeakValueDictionary[tuple[str, str], Slot] = WeakValueDictionary()
        """By key and name: the slots of streams that take over from each other."""

    @property
    def stream_count(self) -> int:
        """Event streams and WebSockets that are open."""
        return sum(self._streams.values())

    def enter(self, principal: Principal, count: int = 1) -> Release:
        """A slot for one request, or for so many; `Throttled` when the key has too few left. Without keys there is
        nobody to charge."""
        key_id = principal.key_id
        most = self._inflight_max
        if not key_id:
            return _nothing
        self.used.add(key_id)
        if not most:
            return _nothing
        if self._inflight.get(key_id, 0) + count > most:
            raise Throttled(
                f"this key has {most} requests under way, as many as TOPICS_MAX_INFLIGHT_PER_KEY allows; "
                "try again when some are answered",
                limit="max_inflight_per_key",
                max=most,
            )
        return Slot(self._inflight, key_id, count)

    def open_stream(self, principal: Principal, name: str = "") -> Release:
        """A slot for one stream; `Throttled` when there is none left, for this key or for anybody.

        Streams of a key with the same name, unless that is empty, share one.
        """
        self.used.add(principal.key_id)
        place = (principal.key_id, name)
        slot = self._shared.get(place) if name else None
        if slot is None:
            slot = self._stream_slot(principal.key_id)
            if name:
                self._shared[place] = slot
        return Share(slot)

    def _stream_slot(self, key_id: str) -> Slot:
        most = self._streams_max
        if most and self.stream_count >= most:
            raise Throttled(
                f"{most} streams are open, as many as TOPICS_MAX_SSE_CONNECTIONS allows; "
                "try again when some have ended",
                limit="max_sse_connections",
                max=most,
            )
        most = self._streams_per_key_max
        if most and key_id and self._streams.get(key_id, 0) >= most:
            raise Throttled(
                f"this key has {most} streams open, as many as TOPICS_MAX_SSE_CONNECTIONS_PER_KEY allows; "
                "try again when some have ended",
                limit="max_sse_connections_per_key",
                max=most,
            )
        return Slot(self._streams, key_id or NOBODY)
