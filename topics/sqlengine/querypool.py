"""Query processes of one engine, as many as may run at a time, and who is next when all of them are taken.

A free process goes to the key with the fewest queries running; among those, to the key whose last turn was longest ago.
So one key may use all processes while no other asks, and a flood of its queries is one competitor to the other keys.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from topics.errors import ShuttingDown, Throttled
from topics.limits import QUERIES_WAITING_MAX, QUERIES_WAITING_PER_KEY_MAX, SECOND_MS
from topics.sqlengine.queryprocess import QueryProcess

IDLE_SECONDS: Final = 60
"""After so long without a query, all free processes but one end."""


class QueryPool:
    """On the loop only; `threads` start and end processes."""

    def __init__(self, size: int, make: Callable[[], QueryProcess], threads: Executor) -> None:
        self._size = size
        self._make = make
        self._threads = threads
        self._idle: list[QueryProcess] = []
        self._running: Counter[str] = Counter()
        """Queries that run, by key."""
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        """By key, in order of arrival."""
        self._waiting_count = 0
        self._served: dict[str, int] = {}
        """When a key that runs or waits had its last turn, as a count of turns."""
        self._turns = 0
        self._arrivals = 0
        self._retiring: asyncio.TimerHandle | None = None
        self._closed = False

    async def take(self, owner: str, wait_ms: int) -> QueryProcess:
        """A process for one query of a key; `Throttled` when too many wait, or none was free in time."""
        if self._closed:
            raise ShuttingDown("the engine is closing")
        if self._running.total() < self._size:
            self._serve(owner)
        else:
            await self._turn(owner, wait_ms)
        while self._idle:
            process = self._idle.pop()
            if process.usable:
                return process
            self._discard(process)
        return self._make()

    def give(self, owner: str, process: QueryProcess) -> None:
        """The query is over."""
        self._left(owner)
        if self._closed:
            self._discard(process)
            return
        if not process.usable:
            self._discard(process)
            if self._idle or not process.started:
                return
            # The next query should not have to wait for a process to start.
            process = self._make()
            self._threads.submit(_started, process)
        self._idle.append(process)
        if self._retiring is not None:
            self._retiring.cancel()
        self._retiring = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._retire)

    def close(self) -> None:
        """End all free processes and refuse all who wait."""
        self._closed = True
        if self._retiring is not None:
            self._retiring.cancel()
        for process in self._idle:
            self._discard(process)
        self._idle.clear()
        for line in self._waiting.values():
            for _, turn in line:
                if not turn.done():
                    turn.set_exception(ShuttingDown("the engine is closing"))
        self._waiting.clear()

    # ---- turns

    async def _turn(self, owner: str, wait_ms: int) -> None:
        line = self._waiting.get(owner, ())
        if self._waiting_count >= QUERIES_WAITING_MAX or len(line) >= QUERIES_WAITING_PER_KEY_MAX:
            raise self._throttled("too many queries wait already")
        self._arrivals += 1
        self._waiting_count += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (self._arrivals, turn)
        self._waiting.setdefault(owner, deque()).append(place)
        try:
            async with asyncio.timeout(wait_ms / SECOND_MS):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                # It got its turn in the very moment in which it gave up.
                self._left(owner)
            else:
                self._remove(owner, place)
            if isinstance(error, TimeoutError):
                raise self._throttled(f"no process was free within {wait_ms} ms") from error
            raise
        finally:
            self._waiting_count -= 1

    def _remove(self, owner: str, place: tuple[int, asyncio.Future[None]]) -> None:
        line = self._waiting.get(owner)
        if line is not None and place in line:
            line.remove(place)
            if not line:
                del self._waiting[owner]
                self._forget(owner)

    def _left(self, owner: str) -> None:
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        if self._waiting:
            after = min(self._waiting, key=self._rank)
            place = self._waiting[after][0]
            self._serve(after)
            self._remove(after, place)
            place[1].set_result(None)
        self._forget(owner)

    def _rank(self, owner: str) -> tuple[int, int, int]:
        return self._running[owner], self._served.get(owner, 0), self._waiting[owner][0][0]

    def _serve(self, owner: str) -> None:
        self._turns += 1
        self._served[owner] = self._turns
        self._running[owner] += 1

    def _forget(self, owner: str) -> None:
        if owner not in self._running and owner not in self._waiting:
            self._served.pop(owner, None)

    def _throttled(self, why: str) -> Throttled:
        return Throttled(
            f"{why}: TOPICS_SQL_QUERIES_MAX is {self._size}; try again later, or raise it",
            limit="sql_queries_max",
            max=self._size,
        )

    # ---- processes

    def _retire(self) -> None:
        for process in self._idle[1:]:
            self._discard(process)
        del self._idle[1:]

    def _discard(self, process: QueryProcess) -> None:
        process.kill()
        self._threads.submit(process.close)


def _started(process: QueryProcess) -> None:
    """Start one ahead; why it cannot be started is told to the query that needs it."""
    try:
        process.start()
    except Exception:
        process.kill()
