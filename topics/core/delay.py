"""When the jobs of a write may be handed out for the first time: all of them alike, or each at its own time.

A write may name a delay or a time for all of its records, and each record one of its own. The latest that is named
counts, so nobody gets a job earlier than anything that was said of it. A time that is over is no delay.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from topics.core.commands import Append
from topics.core.waits import WAIT_MS_LIMIT, times_of
from topics.errors import InvalidRequest, NotAQueue
from topics.limits import U64_MAX
from topics.model import TopicConfig, TopicType


class Delay(NamedTuple):
    not_before_ms: int = 0
    """Nobody gets any of the records before this time."""
    waits: bytes = b""
    """The time of each (`core/waits.py`), when they are not all the same; then there is none for all."""


NO_DELAY: Final = Delay()


def delay_of(command: Append, now_ms: int) -> Delay:
    """What a write says of its records, or `InvalidRequest` when no time is meant by it."""
    if command.delay_ms < 0 or command.not_before_ms < 0:
        field = "delay_ms" if command.delay_ms < 0 else "not_before"
        raise InvalidRequest(f"{field} must not be negative", field=field, expected="a whole number from 0")
    not_before_ms = max(command.not_before_ms, now_ms + command.delay_ms)
    if not_before_ms > (WAIT_MS_LIMIT if command.waits else U64_MAX):
        raise InvalidRequest("no time is that far away", field="not_before", expected="milliseconds since 1970")
    if command.waits:
        return Delay(0, times_of(command.waits, 0, command.records.count, now_ms, not_before_ms))
    return Delay(not_before_ms) if not_before_ms > now_ms else NO_DELAY


def check_delay(name: str, config: TopicConfig, delayed: bool) -> None:
    """Only what is handed out can be handed out later."""
    if delayed and config.type is TopicType.LOG:
        raise NotAQueue(
            f'topic "{name}" is a {config.type.value}: its records are read, not handed out, and cannot be delayed',
            topic=name,
            type=config.type.value,
        )
