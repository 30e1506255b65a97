"""Argon2id: hashes of passwords and of managed keys, made and compared on threads of their own.

A hash takes tens of milliseconds and megabytes on purpose. So there are two threads for them, and only so many may wait
for one: whoever sends wrong passwords as fast as they can slows down other sign-ins at most, never the loop.

The parameters are the second choice of RFC 9106 for passwords, which people choose, and less for keys, whose secrets
are 192 bits of chance that nobody guesses. A hash says its own parameters, so both can change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

from topics.errors import Throttled
from topics.limits import KIB, SECOND_MS

THREADS: Final = 2
WAITING_MAX: Final = 32
RETRY_MS: Final = 1 * SECOND_MS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cost:
    passes: int
    memory_kib: int
    lanes: int


PASSWORD_COST: Final = Cost(3, 64 * KIB, 4)
KEY_COST: Final = Cost(2, 19 * KIB, 1)


class Hashing:
    def __init__(self, password_cost: Cost = PASSWORD_COST, key_cost: Cost = KEY_COST) -> None:
        self._password_cost = password_cost
        self._key_cost = key_cost
        self._threads = ThreadPoolExecutor(THREADS, "argon2")
        self._under_way = 0
        self._nobodys: str | None = None

    async def password(self, text: str) -> str:
        """The hash of a password."""
        return await self._on_thread(lambda: _hash(self._password_cost, text))

    async def key(self, secret: str) -> str:
        """The hash of a key's secret."""
        return await self._on_thread(lambda: _hash(self._key_cost, secret))

    async def matches(self, hashed: str, text: str) -> bool:
        """Whether this is the text that was hashed."""
        return await self._on_thread(lambda: _matches(hashed, text))

    async def match_nobody(self, text: str) -> None:
        """Take as long as `matches` does for a password, for a user who is not there."""
        if self._nobodys is None:
            self._nobodys = await self.password("nobody has this password")
        await self.matches(self._nobodys, text)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        if self._under_way >= THREADS + WAITING_MAX:
            raise Throttled(
                "too many passwords and keys are being checked at the moment; try again in a second",
                limit="hashing",
                retry_after_ms=RETRY_MS,
            )
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """What is under way ends; nothing else begins."""
        self._threads.shutdown(wait=False, cancel_futures=True)


# The library is loaded by the first hash, on its thread: a server on somebody's own machine may never need it.


def _hash(cost: Cost, text: str) -> str:
    from argon2 import PasswordHasher

    return PasswordHasher(cost.passes, cost.memory_kib, cost.lanes).hash(text)


def _matches(hashed: str, text: str) -> bool:
    """A hash says itself what it cost."""
    from argon2 import PasswordHasher
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return PasswordHasher().verify(hashed, text)
    except (VerificationError, InvalidHashError):
        return False
