"""Work on a text that takes longer the longer the text is: done at once when it is short, on a thread when it is long.

So who sends a long text waits for it alone. Such work is pure: it sees nothing that the loop may change meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from topics.limits import KIB

T = TypeVar("T")

LONG_CHARS: Final = 4 * KIB
"""Reading as much takes some milliseconds."""


def is_long(text: str) -> bool:
    return len(text) > LONG_CHARS


async def aside(text: str, work: Callable[[], T]) -> T:
    """Do what has to be done with a text."""
    return await asyncio.to_thread(work) if is_long(text) else work()
