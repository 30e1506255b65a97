"""Freed memory goes back to the system.

The allocator of the C library keeps what Python frees, in case it is needed again. After a burst of large bodies that
is most of the process's memory, so the server asks for it back when a burst is over.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final, cast

from topics.limits import MIB
from topics.server.intake.held import HeldBytes

BURST_BYTES: Final = 32 * MIB
"""What was held at a time before giving memory back is worth the work."""


def trimmer() -> Callable[[], object] | None:
    """What gives freed memory back; None where the C library has nothing for it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if trim is None else lambda: cast(object, trim(0))


def burst_is_over(held: HeldBytes) -> bool:
    """Whether much more was held since the last call than is now."""
    peak_bytes = held.take_peak()
    return peak_bytes >= BURST_BYTES and held.known.bytes + held.unknown.bytes < peak_bytes // 2
