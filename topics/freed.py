"""Freed memory goes back to the system: the allocator of the C library keeps it for later unless it is asked."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Give back what is free; nothing happens where the C library has no call for it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
