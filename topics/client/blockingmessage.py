"""A message of a heap for plain code, as `topics.sync` hands it out."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from topics.client.blocking import Face, Portal, blocking
from topics.client.message import Message, MessageFacts


class BlockingMessage(MessageFacts, Face[Message]):
    """A message that a consumer has. Use it as `with message`, which keeps its lease, and acks it at the end.

    When the block raises, the message is given back and tried again after a while, longer with each attempt. Outside of
    the block a message has its lease and no more.
    """

    def __init__(self, behind: Message, portal: Portal) -> None:
        super().__init__(behind, portal)
        self._held = behind._held

    def __enter__(self) -> Self:
        self._portal.run(self._behind.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._portal.run(self._behind.__aexit__(kind, error, trace))

    ack = blocking(Message.ack)
    nack = blocking(Message.nack)
    release = blocking(Message.release)
    extend = blocking(Message.extend)
