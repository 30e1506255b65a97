"""A message in somebody's hands: what it is, its lease, and what has become of it.

held      from the pop on
settled   acked or given back: nothing more is said about it
lost      its lease ran out, or the stream it came on broke: whatever is said about it now is refused
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from topics.heapmodel import LeaseRef, PoppedMessage
from topics.limits import SECOND_MS


class HeldMessage:
    """A `Kept`."""

    def __init__(self, message: PoppedMessage, lease_ms: int) -> None:
        self.message = message
        self.partition = 0
        """Leases of all partitions are extended together."""
        self.lease_ms = lease_ms
        self.deadline_ms = message.lease_deadline_ms
        """By the clock of the server."""
        self.expires_s = _in_s(lease_ms)
        """The same moment by the clock of the event loop."""
        self.settled = False
        self.lost = False
        self._watchers: list[Callable[[], None]] = []

    @property
    def lease(self) -> LeaseRef:
        return LeaseRef(self.message.lease_token, self.message.message_id)

    @property
    def over(self) -> bool:
        return self.settled or self.lost

    def extended(self, deadline_ms: int, lease_ms: int) -> None:
        """Its lease counts anew from now on."""
        self.deadline_ms = deadline_ms
        self.lease_ms = lease_ms
        self.expires_s = _in_s(lease_ms)

    def settle(self) -> None:
        """It was acked or given back, and so it was not lost, whatever an extend on its way has found."""
        self.settled = True
        self.lost = False
        self._tell()

    def lose(self) -> None:
        if not self.over:
            self.lost = True
            self._tell()

    def on_over(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called once, when it is settled or lost."""
        self._watchers.append(watcher)

    def _tell(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()


def _in_s(lease_ms: int) -> float:
    return asyncio.get_running_loop().time() + lease_ms / SECOND_MS
