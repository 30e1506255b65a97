"""Mapped files within a budget of memory.

Files are mapped when they are used and released, least recently used first, when all of them together hold more
than the budget. What was parsed from a mapping is kept with it and goes with it; since a block is parsed only after
its checksum was verified, dropping a mapping also forgets what was verified through it. Views that were handed out
stay valid: the memory itself goes with the last of them.

Not for use by several threads: a thread that reads segments beside the loop has a cache of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from topics.core.block import Block
from topics.storage.fs import FileSystem, Mapping

PARSED_BLOCK_BYTES = 2048
"""What a parsed block costs beside its mapped bytes: the objects of its columns."""

Finder = Callable[[str], str]
"""Where a file of a given name is at present."""


class Mapped:
    __slots__ = ("blocks", "cost_bytes", "mapping", "view")

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.view = mapping.view
        self.blocks: dict[int, Block] = {}
        self.cost_bytes = len(mapping.view)


class MapCache:
    def __init__(self, fs: FileSystem, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self._fs = fs
        self._mapped: OrderedDict[str, Mapped] = OrderedDict()

    def use(self, name: str, find: Finder) -> Mapped:
        """The mapping of a file, made if there is none, and now the most recently used."""
        mapped = self._mapped.get(name)
        if mapped is None:
            mapped = self._mapped[name] = Mapped(self._map(name, find))
            self.used_bytes += mapped.cost_bytes
            self._shrink()
        else:
            self._mapped.move_to_end(name)
        return mapped

    def _map(self, name: str, find: Finder) -> Mapping:
        try:
            return self._fs.map(find(name))
        except FileNotFoundError:
            # It may have moved to another directory between being found and being mapped.
            return self._fs.map(find(name))

    def keep(self, mapped: Mapped, block_no: int, block: Block) -> None:
        """Keep a verified block with the mapping just used."""
        mapped.blocks[block_no] = block
        mapped.cost_bytes += PARSED_BLOCK_BYTES
        self.used_bytes += PARSED_BLOCK_BYTES
        self._shrink()

    def drop(self, name: str) -> None:
        """Forget a mapping, because its file moved, was replaced or is gone."""
        mapped = self._mapped.pop(name, None)
        if mapped is not None:
            self._release(mapped)

    def clear(self) -> None:
        for name in list(self._mapped):
            self.drop(name)

    def _shrink(self) -> None:
        # The most recently used one stays even when it alone is over the budget: somebody is reading it.
        while self.used_bytes > self.budget_bytes and len(self._mapped) > 1:
            self._release(self._mapped.popitem(last=False)[1])

    def _release(self, mapped: Mapped) -> None:
        self.used_bytes -= mapped.cost_bytes
        mapped.blocks.clear()
        mapped.view = memoryview(b"")
        mapped.mapping.release()
