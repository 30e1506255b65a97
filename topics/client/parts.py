"""Saying something about many jobs or messages: at once, or in halves when that is more than the server takes.

How many it takes is its own to know (`TOPICS_MAX_CLAIM`). What it refuses it has not begun.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from topics.errors import InvalidRequest

T = TypeVar("T")


async def in_parts(many: Sequence[T], say: Callable[[Sequence[T]], Awaitable[None]]) -> None:
    try:
        await say(many)
    except InvalidRequest:
        if len(many) == 1:
            raise
        half = len(many) // 2
        await in_parts(many[:half], say)
        await in_parts(many[half:], say)
