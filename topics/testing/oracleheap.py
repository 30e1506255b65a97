"""A naive model of what a heap promises, to hold an implementation against.

Written from the specification alone: a list of messages, loops over everything. A live message is held by a consumer
until a deadline, rests until a time, waits, or has failed too often; time decides which, whenever it is asked. How long
a message rests by chance is not for the model to say: it is told, and sees to it that the bound is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

BACKOFF_MS_FIRST = 1000
BACKOFF_MS_MOST = 300_000


class End(Enum):
    """Why a message is gone."""

    ACKED = auto()
    DELETED = auto()
    DEAD_LETTER = auto()


@dataclass(slots=True)
class Message:
    partition: int
    seq: int
    ts: int
    priority: int
    max_retries: int
    attempts: int = 0
    """Deliveries that failed."""
    consumer: str = ""
    """Who has it."""
    token: int = 0
    deadline_ms: int = 0
    """Held up to and including this time."""
    rests_until_ms: int = 0
    end: End | None = None

    @property
    def place(self) -> tuple[int, int]:
        return self.partition, self.seq


@dataclass(slots=True)
class OracleHeap:
    backoff_ms: Callable[[int, int], int]
    """How long a message rests by chance, from its attempts and the token of the lease that failed."""
    takes_highest: bool = False
    partitions: int = 1
    lease_ms: int = 300_000
    max_retries: int = 3
    has_letters: bool = True
    """Whether a message that failed too often dies."""
    messages: list[Message] = field(default_factory=list)

    # ---- what can be seen

    def live(self, now_ms: int) -> list[Message]:
        """All that is not gone, after what time did to it."""
        found = [message for message in self.messages if message.end is None]
        for message in found:
            if message.consumer and now_ms > message.deadline_ms:
                self._fail(message, message.deadline_ms + 1)
        return found

    def is_dying(self, message: Message) -> bool:
        return self.has_letters and not message.consumer and message.attempts > message.max_retries

    def ready(self, now_ms: int) -> list[Message]:
        """What can be popped, best first; among those of the same time and priority the order is anybody's."""
        found = [
            message
            for message in self.live(now_ms)
            if not message.consumer and not self.is_dying(message) and message.rests_until_ms <= now_ms
        ]
        return sorted(found, key=self.key)

    def key(self, message: Message) -> tuple[int, int]:
        return (-message.priority if self.takes_highest else message.priority), message.ts

    def rank(self, chosen: Message, now_ms: int) -> int:
        """How many of what can be popped are better than one of them, and one."""
        return 1 + sum(self.key(message) < self.key(chosen) for message in self.ready(now_ms))

    def counts(self, now_ms: int) -> tuple[int, int, int, int]:
        """Ready, in flight, dead, delayed."""
        live = self.live(now_ms)
        ready = len(self.ready(now_ms))
        out = sum(bool(message.consumer) or self.is_dying(message) for message in live)
        dead = sum(message.end is End.DEAD_LETTER for message in self.messages)
        return ready, out, dead, len(live) - ready - out

    def get(self, place: tuple[int, int]) -> Message:
        return next(message for message in self.messages if message.place == place)

    # ---- what changes it

    def enqueue(
        self, place: tuple[int, int], priority: int, now_ms: int, delay_ms: int = 0, max_retries: int | None = None
    ) -> None:
        """The place is the heap's to say; within a partition seqs go up by one."""
        partition, seq = place
        known = [message.seq for message in self.messages if message.partition == partition]
        assert 0 <= partition < self.partitions and seq == max(known, default=0) + 1, f"{place} is not the next place"
        retries = self.max_retries if max_retries is None else max_retries
        rests_until_ms = now_ms + delay_ms if delay_ms else 0
        self.messages.append(Message(partition, seq, now_ms, priority, retries, rests_until_ms=rests_until_ms))

    def popped(self, place: tuple[int, int], consumer: str, token: int, now_ms: int, lease_ms: int) -> Message:
        message = self.get(place)
        assert message in self.ready(now_ms), f"{message} was popped at {now_ms}"
        message.consumer, message.token = consumer, token
        message.deadline_ms = now_ms + lease_ms
        message.rests_until_ms = 0
        return message

    def bury(self, now_ms: int) -> list[Message]:
        """Those that have failed too often die."""
        dying = [message for message in self.live(now_ms) if self.is_dying(message)]
        for message in dying:
            message.end = End.DEAD_LETTER
        return dying

    def is_held(self, place: tuple[int, int], token: int, now_ms: int) -> bool:
        return any(
            message.place == place and message.consumer and message.token == token for message in self.live(now_ms)
        )

    def ack(self, place: tuple[int, int]) -> None:
        self.get(place).end = End.ACKED

    def nack(self, place: tuple[int, int], now_ms: int, backoff_ms: int | None) -> None:
        self._fail(self.get(place), now_ms, backoff_ms)

    def give_back(self, place: tuple[int, int]) -> None:
        """Nobody saw it: it is as if it had not been popped."""
        self.get(place).consumer = ""

    def extend(self, place: tuple[int, int], now_ms: int, lease_ms: int) -> None:
        self.get(place).deadline_ms = now_ms + lease_ms

    def reprioritize(self, place: tuple[int, int], priority: int) -> None:
        self.get(place).priority = priority

    def delete(self, place: tuple[int, int]) -> None:
        self.get(place).end = End.DELETED

    def die(self, place: tuple[int, int]) -> None:
        self.get(place).end = End.DEAD_LETTER

    def purge(self, now_ms: int) -> int:
        live = self.live(now_ms)
        for message in live:
            message.end = End.DELETED
        return len(live)

    def _fail(self, message: Message, at_ms: int, backoff_ms: int | None = None) -> None:
        message.consumer = ""
        message.attempts += 1
        if backoff_ms is None:
            backoff_ms = self.backoff_ms(message.attempts, message.token)
            bound_ms = min(BACKOFF_MS_MOST, BACKOFF_MS_FIRST * 2 ** (message.attempts - 1))
            assert 0 <= backoff_ms <= bound_ms, f"{message} rests for {backoff_ms} ms, not up to {bound_ms}"
        message.rests_until_ms = at_ms + backoff_ms
