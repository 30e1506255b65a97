"""A message of a heap as a program has it: what it is, how it is held, and the few things that can be said about it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import msgspec

from topics.client import spans
from topics.client.heldmessage import HeldMessage
from topics.client.messagehands import MessageHands


class MessageFacts:
    """What a message is and how it is held, the same for asyncio and for plain code."""

    _held: HeldMessage

    def __repr__(self) -> str:
        return f"<Message {self.topic}/{self.id} priority {self.priority}>"

    @property
    def id(self) -> str:
        """A ULID: the same on each delivery, so what was done can be known by it."""
        return self._held.message.message_id

    @property
    def topic(self) -> str:
        """The heap it came from."""
        return self._held.message.topic

    @property
    def partition(self) -> int:
        """The partition of the heap that it is in."""
        return self._held.message.partition

    @property
    def payload(self) -> bytes:
        """What was enqueued, as bytes; JSON text when it was enqueued as JSON."""
        return self._held.message.payload

    @property
    def data(self) -> Any:
        """What was enqueued: the JSON value, or bytes when bytes were."""
        message = self._held.message
        return msgspec.json.decode(message.payload) if message.is_json else message.payload

    @property
    def is_json(self) -> bool:
        """Whether it was enqueued as JSON."""
        return self._held.message.is_json

    @property
    def priority(self) -> int:
        """How it was ordered when it was handed out."""
        return self._held.message.priority

    @property
    def enqueued_ms(self) -> int:
        """When it was enqueued, in milliseconds since 1970."""
        return self._held.message.enqueued_ms

    @property
    def attempts(self) -> int:
        """Deliveries that failed before this one."""
        return self._held.message.attempts

    @property
    def max_retries(self) -> int:
        """After so many failed deliveries and one more it is a dead letter."""
        return self._held.message.max_retries

    @property
    def meta(self) -> Mapping[str, str]:
        """What else it was enqueued with."""
        return self._held.message.meta or {}

    @property
    def producer(self) -> tuple[str, int, int] | None:
        """Who enqueued it, in which epoch, as which one; None when nobody said so."""
        message = self._held.message
        if message.producer_id is None or message.sequence is None:
            return None
        return message.producer_id, message.epoch or 0, message.sequence

    @property
    def lease_token(self) -> str:
        """The name of this delivery; no other has the same."""
        return self._held.message.lease_token

    @property
    def deadline_ms(self) -> int:
        """When others may get it unless it is settled or extended, in milliseconds since 1970 by the server's clock."""
        return self._held.deadline_ms

    @property
    def settled(self) -> bool:
        """Whether it was acked or given back by this consumer."""
        return self._held.settled

    @property
    def lost(self) -> bool:
        """Whether its lease has turned out to be gone: better stop working on it, others will get it."""
        return self._held.lost


class Message(MessageFacts):
    """A message that a consumer has. Use it as `async with message`, which keeps its lease, and acks it at the end.

    When the block raises, the message is given back and tried again after a while, longer with each attempt. Outside of
    the block a message has its lease and no more.
    """

    def __init__(self, hands: MessageHands, held: HeldMessage) -> None:
        self._hands = hands
        self._held = held
        self._span = ExitStack()

    async def ack(self) -> bool:
        """It is done, and deleted. False when its lease was gone: somebody else does it again.

        When a connection breaks this is said again, and then false may mean that it was done the first time.
        """
        return await self._hands.ack(self._held)

    async def nack(self, backoff_ms: int | None = None, *, reason: str = "") -> bool:
        """It was not done: it comes again after `backoff_ms`, or after longer with each attempt, or is a dead letter.

        False when its lease was gone.
        """
        return await self._hands.nack(self._held, backoff_ms, reason)

    async def release(self) -> bool:
        """Give it back as if nobody had looked at it: others can have it at once, and no attempt counts."""
        return await self._hands.nack(self._held, None, "", True)

    async def extend(self, ms: int | None = None) -> bool:
        """Keep it for `ms` from now, or for as long as it was popped for. False when its lease was gone.

        Inside `async with message` this happens by itself.
        """
        return await self._hands.extend(self._held, self._held.lease_ms if ms is None else ms)

    async def __aenter__(self) -> Self:
        self._hands.keep(self._held)
        self._span.enter_context(spans.consuming(self._held.message))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._held.over:
                return
            if error is None:
                await self.ack()
            elif isinstance(error, Exception):
                await self.nack(reason=f"{type(error).__name__}: {error}")
            else:
                # What is no Exception ends a task or a program, and says nothing about the message.
                await self.release()
        finally:
            self._hands.let_go(self._held)
            self._span.__exit__(kind, error, trace)
