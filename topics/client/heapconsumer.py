"""Messages of a heap as they come, without end: at most `prefetch` of them not settled at a time.

A consumer has a stream. A credit is spent on each message that comes and granted anew when a message is settled or
lost, so there are never more than `prefetch` in hand, and the next one is on its way while the program works. What
waits for the program has its lease kept, so that a slow one loses nothing that it has not seen. When the stream breaks,
because a server went away, what it had delivered is lost to this consumer (the server has given it to others, or will),
and a new stream is begun after a while, on whichever server answers. `outage.py` says when that is of no use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from functools import partial

from topics.client.heaptransport import HeapStream
from topics.client.heldmessage import HeldMessage
from topics.client.message import Message
from topics.client.messagehands import MessageHands
from topics.client.outage import Outage
from topics.errors import TopicsError
from topics.heapmodel import PoppedMessage


class HeapConsumer:
    def __init__(
        self,
        make_stream: Callable[[], HeapStream],
        may_pass: Callable[[TopicsError], bool],
        outage: Outage,
        prefetch: int,
    ) -> None:
        self._make_stream = make_stream
        self._may_pass = may_pass
        self._outage = outage
        self._prefetch = prefetch

    async def messages(self) -> AsyncGenerator[Message, None]:
        while True:
            stream = self._make_stream()
            delivered = _Delivered(stream, self._may_pass)
            try:
                await delivered.begin(self._prefetch)
                self._outage.answered()
                while True:
                    message = await delivered.next()
                    self._outage.over()
                    yield message
            except TopicsError as error:
                if not self._may_pass(error):
                    raise
                delivered.lose()
                failed = error
            finally:
                delivered.let_go()
                with suppress(TopicsError):
                    await stream.close()
            await self._outage.wait(failed)


class _Delivered:
    """What came on one stream and is not settled."""

    def __init__(self, stream: HeapStream, may_pass: Callable[[TopicsError], bool]) -> None:
        self._stream = stream
        self._hands = MessageHands(stream, may_pass)
        self._lease_ms = 0
        self._held: set[HeldMessage] = set()
        self._here: deque[HeldMessage] = deque()
        """Arrived, and not asked for yet."""
        self._asked = False

    async def begin(self, credits: int) -> None:
        self._lease_ms = await self._stream.open(self._arrived)
        self._stream.grant(credits)

    async def next(self) -> Message:
        while True:
            # What came before the end of a stream is somebody else's by now.
            while self._here and not self._stream.is_over:
                held = self._here.popleft()
                self._hands.let_go(held)
                if not held.over:
                    return Message(self._hands, held)
            self._asked = True
            try:
                await self._stream.receive()
            finally:
                self._asked = False

    def lose(self) -> None:
        for held in list(self._held):
            held.lose()

    def let_go(self) -> None:
        """Nobody will ask for what waits."""
        for held in self._here:
            self._hands.let_go(held)

    def _arrived(self, messages: Sequence[PoppedMessage]) -> None:
        for message in messages:
            held = HeldMessage(message, self._lease_ms)
            self._held.add(held)
            held.on_over(partial(self._over, held))
            if self._here or not self._asked:
                # Whoever asks gets the first one now; the others wait.
                self._hands.keep(held)
            self._here.append(held)

    def _over(self, held: HeldMessage) -> None:
        self._held.discard(held)
        self._stream.grant(1)
