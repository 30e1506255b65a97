"""Messages of a heap on their way to one stream: as many as it has credits for, and no more than it takes.

Credits are the client's word, and it may give billions of them. The engine is granted only as many as fit into what may
be under way to the client, by count and by what messages of this heap weigh lately, and more as the client reads: so a
message is leased shortly before it is sent, and a client that does not read holds up nobody but itself. Each credit is
one message, never more, and never less while the heap has any.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from topics.heapmodel import PoppedMessage, PoppedMessages
from topics.limits import KIB, MIB

UNDER_WAY_MAX: Final = 512
"""Messages that are granted and not sent yet."""
UNDER_WAY_BYTES_MAX: Final = 4 * MIB
"""What their payloads may weigh, unless one alone weighs more."""
WEIGHT_UNKNOWN_BYTES: Final = 256 * KIB
"""What a payload is taken to weigh before the first one has come."""


class Grants(Protocol):
    """The engine's side of a stream."""

    def grant(self, credits: int) -> None: ...

    def close(self) -> None: ...


class Delivering:
    def __init__(
        self, begin: Callable[[], int] = lambda: 0, popped: Callable[[int], None] = lambda began_ns: None
    ) -> None:
        """`begin` says when a grant is made that is to be timed, 0 for most; `popped` is told when messages came."""
        self._begin = begin
        self._popped = popped
        self._began_ns = 0
        self._grants: Grants | None = None
        self._credits = 0
        """Given by the client, and not granted to the engine yet."""
        self._granted = 0
        """Granted, and no message has come for them yet."""
        self._waiting: deque[PoppedMessage] = deque()
        self._waiting_bytes = 0
        self._weight_bytes = WEIGHT_UNKNOWN_BYTES
        """Of a message, as the last ones weighed."""
        self._error: Exception | None = None
        self._news = asyncio.Event()

    # ---- the engine's side

    def begin(self, grants: Grants) -> None:
        self._grants = grants
        self._grant()

    def deliver(self, messages: PoppedMessages) -> None:
        if self._began_ns:
            self._popped(self._began_ns)
            self._began_ns = 0
        self._granted -= len(messages.messages)
        weight_bytes = sum(len(message.payload) for message in messages.messages)
        self._waiting.extend(messages.messages)
        self._waiting_bytes += weight_bytes
        self._weight_bytes = max(1, weight_bytes // len(messages.messages))
        self._grant()
        self.wake()

    def ended(self, error: Exception) -> None:
        """Nothing will come any more, and why."""
        self._error = self._error or error
        self.wake()

    def close(self) -> None:
        """What was delivered and not settled is for others now."""
        if self._grants is not None:
            self._grants.close()

    # ---- the client's side

    def add_credits(self, count: int) -> None:
        self._credits += count
        self._grant()

    def take(self, count_max: int, bytes_max: int) -> list[PoppedMessage]:
        """The next messages to send, one at least if there is any."""
        taken: list[PoppedMessage] = []
        taken_bytes = 0
        waiting = self._waiting
        while waiting and len(taken) < count_max:
            size = len(waiting[0].payload)
            if taken and taken_bytes + size > bytes_max:
                break
            taken_bytes += size
            taken.append(waiting.popleft())
        self._waiting_bytes -= taken_bytes
        if taken:
            self._grant()
        return taken

    def check(self) -> None:
        """Raises what ended the stream."""
        if self._error is not None:
            raise self._error

    def wake(self) -> None:
        """Whoever waits for news looks again."""
        self._news.set()

    async def news(self) -> None:
        """Returns when something has happened since there was nothing to do."""
        self._news.clear()
        await self._news.wait()

    def _grant(self) -> None:
        if self._grants is None or not self._credits:
            return
        fitting = (UNDER_WAY_BYTES_MAX - self._waiting_bytes) // self._weight_bytes
        if not self._waiting:
            fitting = max(1, fitting)
        room = min(UNDER_WAY_MAX - len(self._waiting), fitting) - self._granted
        if room <= 0:
            return
        count = min(self._credits, room)
        self._credits -= count
        self._granted += count
        self._began_ns = self._began_ns or self._begin()
        self._grants.grant(count)
