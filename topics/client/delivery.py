"""One record on its way to the log: to be awaited, or left alone until the producer's flush speaks for all."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import msgspec


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """Where a record is, as safe as its topic's durability class says."""

    topic: str
    partition: int
    seq: int


class Delivery:
    """A record that was handed to a producer. Await it to know where it is, or why it is not there.

        delivery = await producer.send({"sku": "A1"})
        print((await delivery).seq)

    Giving up waiting does not take the record back.
    """

    __slots__ = ("_future", "looked_at")

    def __init__(self) -> None:
        self._future: asyncio.Future[Delivered] = asyncio.get_running_loop().create_future()
        self.looked_at = False

    def __await__(self) -> Generator[Any, None, Delivered]:
        self.looked_at = True
        return asyncio.shield(self._future).__await__()

    async def result(self) -> Delivered:
        """Waits until the record is delivered; raises when it is not."""
        return await self

    def done(self) -> bool:
        """Whether it is decided, one way or the other."""
        return self._future.done()

    async def _settled(self) -> None:
        """Waits until it is decided; whoever waits like this has not looked at what."""
        await asyncio.wait([self._future])

    def _succeed(self, delivered: Delivered) -> None:
        self._future.set_result(delivered)

    def _fail(self, error: BaseException) -> None:
        self._future.set_exception(error)
        # Asked once here, because whoever does not look at a delivery is told by the producer's flush.
        self._future.exception()

    @property
    def error(self) -> BaseException | None:
        """Why it failed; None while it did not."""
        return self._future.exception() if self._future.done() else None
