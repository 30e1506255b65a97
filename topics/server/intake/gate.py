"""The gate of one HTTP connection: whose request comes in, how much of it is held, and whose turn it is.

While the gate is closed the connection begins no request and parses nothing. It closes when the connection has spent
its turn (`turns.py`), and while a key that was never seen before is compared on a thread.
"""

from __future__ import annotations

from collections.abc import Callable

from topics.errors import TopicsError
from topics.server.intake.headcheck import HeadCheck, Verified
from topics.server.intake.held import HeldBytes
from topics.server.intake.turns import PIECE_BYTES, REQUEST_BYTES, Budget, Turns
from topics.server.managedkeys import Unverified
from topics.server.requesthead import RequestHead


class Gate:
    __slots__ = (
        "_admitted",
        "_asked",
        "_budget",
        "_check",
        "_is_known",
        "_opened",
        "_share",
        "_verifying",
        "body_bytes_max",
        "peer",
    )

    def __init__(self, check: HeadCheck, held: HeldBytes, turns: Turns, opened: Callable[[], None]) -> None:
        """`opened` is called when the gate may have opened."""
        self._check = check
        self._share = held.share()
        self._budget = Budget(turns, opened)
        self._opened = opened
        self._admitted: RequestHead | None = None
        """Whose body may come."""
        self._asked: RequestHead | None = None
        """The last head that brought no good key."""
        self._is_known = False
        self._verifying = False
        self.body_bytes_max: int | None = None
        """Of the body that was admitted last; None is as many as any."""
        self.peer = ""

    @property
    def is_closed(self) -> bool:
        return self._budget.is_spent or self._verifying

    @property
    def holds(self) -> bool:
        """Whether anything is held for the connection."""
        return self._share.bytes > 0

    # ---- turns

    def take_request(self) -> bool:
        """A request is begun; whether that was the last of this turn."""
        return self._budget.spend(REQUEST_BYTES)

    def take_bytes(self, count: int, pieces: int) -> bool:
        """Bytes are parsed; whether these were the last of this turn."""
        return self._budget.spend(count + pieces * PIECE_BYTES)

    # ---- whose request it is

    def admit(self, head: RequestHead, verified: Verified) -> bool:
        """Whether the body of a request may come in; raises the refusal. When its key has to be compared first, the
        gate closes until then, and `verified` is called before it opens."""
        if head is self._admitted:
            return True
        try:
            most = self._check.admit(head, self.peer)
        except Unverified as unverified:
            self._verifying = True
            self._check.verify(unverified, head, self.peer, lambda error: self._verified(error, verified))
            return False
        self._admitted = head
        self.body_bytes_max = most
        self._is_known = self._is_known or self._check.knows(head, self.peer)
        self._share.set(self._share.bytes, self._is_known)
        self._share.expect(head.body_bytes)
        return True

    def _verified(self, error: TopicsError | None, verified: Verified) -> None:
        self._verifying = False
        verified(error)
        self._opened()

    # ---- what is held

    def hold(self, count: int, head: RequestHead | None) -> None:
        """So many bytes are held for the connection now, whose last head is this one."""
        if count == self._share.bytes:
            return
        if count and not self._is_known and head is not None and head is not self._asked:
            self._asked = head
            self._is_known = self._check.knows(head, self.peer)
        self._share.set(count, self._is_known)

    def release(self) -> None:
        self._share.release()
        self._admitted = self._asked = None
