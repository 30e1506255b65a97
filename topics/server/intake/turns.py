"""Turns: how much of one connection is worked on before others get their turn.

A connection has a budget for each turn of the event loop. When the budget is spent, the connection reads no more and
waits in one line with all others that spent theirs; each turn resumes the first of the line. So a connection that
sends little is never behind one that sends much, and its delay does not grow with the number of those.

The budget is counted in bytes. A request or a message costs far more time than its bytes do, and so does a piece of a
body or a header, so each counts as many bytes as can be copied in that time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from topics.limits import KIB

REQUEST_BYTES: Final = 96 * KIB
"""What a request or a message costs of the budget."""
TURN_BYTES: Final = 48 * REQUEST_BYTES
"""The budget of a turn: some milliseconds of work."""
PIECE_BYTES: Final = 1 * KIB
"""What a header, a chunk of a body or a frame costs."""
LOOK_BYTES: Final = TURN_BYTES // 4
"""A connection that has spent less than this does not look whether the turn has ended."""
RESUMED_PER_TURN: Final = 1

Resume = Callable[[], None]


class Turns:
    """The line of those who wait for their next turn."""

    def __init__(self) -> None:
        self._line: deque[Resume] = deque()
        self._planned = False

    def __len__(self) -> int:
        return len(self._line)

    def wait(self, resume: Resume) -> None:
        """Call `resume` in one of the next turns, not in this one."""
        self._line.append(resume)
        self._plan()

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._planned = False
        for _ in range(min(RESUMED_PER_TURN, len(self._line))):
            self._line.popleft()()
        if self._line:
            self._plan()


class Budget:
    """What one connection may still do in this turn."""

    __slots__ = ("_looks", "_resume", "_spent_bytes", "_turns", "is_spent")

    def __init__(self, turns: Turns, resume: Resume) -> None:
        """`resume` is called when it is this connection's turn again."""
        self._turns = turns
        self._resume = resume
        self._spent_bytes = 0
        self._looks = False
        self.is_spent = False
        """Whether the connection has to wait; `resume` follows."""

    def spend(self, count: int) -> bool:
        """Take so many bytes from the budget; whether it is spent now."""
        self._spent_bytes += count
        if self._spent_bytes >= TURN_BYTES:
            if not self.is_spent:
                self.is_spent = True
                self._turns.wait(self._next_turn)
        elif self._spent_bytes >= LOOK_BYTES and not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._look)
        return self.is_spent

    def _look(self) -> None:
        """The turn has ended."""
        self._looks = False
        if not self.is_spent:
            self._spent_bytes = 0

    def _next_turn(self) -> None:
        self._spent_bytes = 0
        self.is_spent = False
        self._resume()
