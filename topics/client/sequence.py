"""Numbers for what one producer enqueues, so that each message is enqueued once however often it is sent."""

from __future__ import annotations

from itertools import count
from secrets import token_hex

from topics.clock import SystemClock
from topics.producermodel import ONE_OFF_MARK


class Sequence:
    """A producer id, its epoch, and the next number.

    With an id of its own a program begins a new epoch at each start, which is above all earlier ones as long as its
    clock does not go back: so an earlier run of it that still lives is refused from then on.
    """

    def __init__(self, producer_id: str = "") -> None:
        self.producer_id = producer_id or f"{ONE_OFF_MARK}sdk-{token_hex(8)}"
        self.epoch = SystemClock().now_ms()
        self._numbers = count()

    def next(self) -> int:
        return next(self._numbers)
