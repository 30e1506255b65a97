"""The numbers of several heaps, as those of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from topics.heapmodel import HeapStats

_COUNTS: Final = tuple(name for name in HeapStats.__struct_fields__ if name != "partitions")


def summed(many: Iterable[HeapStats]) -> HeapStats:
    """The partitions of one heap alone are told as well."""
    found = list(many)
    if len(found) == 1:
        return found[0]
    return HeapStats(**{name: sum(getattr(stats, name) for stats in found) for name in _COUNTS})
