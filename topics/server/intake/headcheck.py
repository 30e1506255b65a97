"""What the server decides about a request when its head is there and its body is not.

A request that will be refused whatever its body says is refused here, so that nobody without a key makes the server
take in a body. Requests that are there as a whole skip this: the dispatch checks them all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from topics.errors import TopicsError
from topics.server.intake.order import Order, order_of_method
from topics.server.managedkeys import Unverified
from topics.server.requesthead import RequestHead

Verified = Callable[[TopicsError | None], None]
"""Called when a key was compared: with None when it is good, else with the refusal."""


class HeadCheck(Protocol):
    def order_of(self, method: str, path: str) -> Order:
        """Which requests of the same connection may begin before this one is answered."""

    def admit(self, head: RequestHead, peer: str) -> int | None:
        """Return how many bytes the body may have, None for as many as any. Raises the refusal, or `Unverified`."""

    def verify(self, unverified: Unverified, head: RequestHead, peer: str, verified: Verified) -> None:
        """Compare a key that was never seen before."""

    def knows(self, head: RequestHead, peer: str) -> bool:
        """Whether the head brings a good key, or no key is needed."""


class NoCheck:
    """A `HeadCheck` that admits everything."""

    def order_of(self, method: str, path: str) -> Order:
        return order_of_method(method, path)

    def admit(self, head: RequestHead, peer: str) -> int | None:
        return None

    def verify(self, unverified: Unverified, head: RequestHead, peer: str, verified: Verified) -> None:
        raise AssertionError("nothing is verified here")

    def knows(self, head: RequestHead, peer: str) -> bool:
        return True


NO_CHECK: Final[HeadCheck] = NoCheck()
