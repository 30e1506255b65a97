"""Where a follower is, kept beyond its process: cursors, and the stores they are kept in.

A store is the place of one follower: a cursor for each topic it reads, loaded at its start and saved as a whole, so
that a follower of several topics never comes back to places that do not belong together. `topics.FileCursors` keeps
them in a file. Any object with the two methods of `CursorStore` will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Cursor(msgspec.Struct, frozen=True):
    """All up to `seq` is done with. The epoch is which life of the topic it belongs to; 0 is unknown."""

    seq: int
    epoch: int = 0


class CursorStore(Protocol):
    """Keeps the cursors of one follower, by topic (`orders`) or by partition (`orders/3`)."""

    async def load(self) -> Mapping[str, Cursor]:
        """What was saved last; empty when nothing was."""

    async def save(self, cursors: Mapping[str, Cursor]) -> None:
        """Keep these, all or none of them; what was saved before may be forgotten when this returns."""


class MemoryCursors:
    """A store that ends with the process, for tests and for a follower that is started again within it."""

    def __init__(self) -> None:
        self.cursors: dict[str, Cursor] = {}
        self.save_count = 0

    async def load(self) -> Mapping[str, Cursor]:
        return dict(self.cursors)

    async def save(self, cursors: Mapping[str, Cursor]) -> None:
        self.cursors = dict(cursors)
        self.save_count += 1


def cursor_name(topic: str, partition: int) -> str:
    """What a store calls the cursor of a partition. No topic's name has a slash."""
    return f"{topic}/{partition}" if partition else topic


def parse_cursor_name(name: str) -> tuple[str, int]:
    """The topic and the partition that a cursor is of. What names no partition behind its slash is no name at all."""
    topic, _, partition = name.partition("/")
    return (topic, int(partition)) if partition.isdecimal() else (name, 0)
