"""Room in a bounded buffer: taken before something is put in, given back when it has left.

Who finds too little waits, in order: a large one is not overtaken by small ones for ever. Something larger than the
whole buffer gets in when nothing else is there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class Room:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.used_bytes = 0

    async def take(self, size_bytes: int) -> None:
        """Returns when there is room, which is then taken."""
        if not self._waiting and self._fits(size_bytes):
            self.used_bytes += size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    # Somebody who gave room meanwhile has passed over it.
                    self._waiting.remove((size_bytes, turn))
                self._let_in()
            else:
                self.give(size_bytes)
            raise

    def give(self, size_bytes: int) -> None:
        """Give room back; whoever waits for it goes on."""
        self.used_bytes -= size_bytes
        self._let_in()

    def _fits(self, size_bytes: int) -> bool:
        return not self.used_bytes or self.used_bytes + size_bytes <= self._bytes_max

    def _let_in(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size_bytes, turn = self._waiting.popleft()
            if not turn.done():
                self.used_bytes += size_bytes
                turn.set_result(None)
