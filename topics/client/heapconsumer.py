"""Messages of a heap as they come, without end: at most `prefetch` of them not settled at a time.

A consumer has a stream. A credit is spent on each message that comes and granted anew when a message is settled or
lost, so there are never more than `prefetch` in hand, and the next one is on its way while the program works. When the
stream breaks, because a server went away, what it had delivered is lost to this consumer (the server has given it to
others, or will), and a new stream is begun after a while, on whichever server answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress

from topics.client.backoff import Backoff
from topics.client.heaptransport import HeapStream
from topics.client.heldmessage import HeldMessage
from topics.client.message import Message
from topics.client.messagehands import MessageHands
from topics.errors import TopicsError
from topics.limits import SECOND_MS


class HeapConsumer:
    def __init__(
        self, make_stream: Callable[[], HeapStream], may_pass: Callable[[TopicsError], bool], prefetch: int
    ) -> None:
        self._make_stream = make_stream
        self._may_pass = may_pass
        self._prefetch = prefetch
        self._backoff = Backoff()

    async def messages(self) -> AsyncGenerator[Message, None]:
        while True:
            stream = self._make_stream()
            held: set[HeldMessage] = set()
            try:
                async for message in self._stream_messages(stream, held):
                    yield message
            except TopicsError as error:
                if not self._may_pass(error):
                    raise
                for each in list(held):
                    each.lose()
                retry_ms = min(int(error.detail.get("retry_after_ms", 0)), SECOND_MS)
            finally:
                with suppress(TopicsError):
                    await stream.close()
            await asyncio.sleep(self._backoff.next_s(retry_ms))

    async def _stream_messages(self, stream: HeapStream, held: set[HeldMessage]) -> AsyncIterator[Message]:
        lease_ms = await stream.open()
        hands = MessageHands(stream, self._may_pass)
        stream.grant(self._prefetch)
        while True:
            batch = await stream.receive()
            self._backoff.reset()
            arrived = [HeldMessage(message, lease_ms) for message in batch]
            for each in arrived:
                held.add(each)
                each.on_over(_over(stream, held, each))
            for each in arrived:
                if not each.over and not stream.is_over:
                    yield Message(hands, each)


def _over(stream: HeapStream, held: set[HeldMessage], message: HeldMessage) -> Callable[[], None]:
    def over() -> None:
        held.discard(message)
        stream.grant(1)

    return over
