"""Which records of a source have copies in a destination already, by the stamps that `exactly_once` leaves in meta."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from topics.core.block import Block
from topics.core.log import Log
from topics.core.run import DEAD
from topics.core.stamp import STAMP
from topics.core.tail import Tail
from topics.errors import Damaged
from topics.limits import BLOCK_RECORDS

_DATA_KEY_BYTES = len(',"data":')


class Evidence:
    """Looks through a log block by block, and remembers the seqs of the source that it finds stamped."""

    def __init__(self, log: Log, stamp: str) -> None:
        """`stamp` is what stands before the seq."""
        self.found: set[int] = set()
        self._log = log
        self._next_seq = log.low
        self._pattern = re.compile(b'"%b":"%b([0-9]+)"' % (STAMP.encode(), re.escape(stamp.encode())))

    def look(self) -> bool:
        """Look at one more block; whether there are others."""
        log = self._log
        for run in log.parts_from(max(self._next_seq, log.low)):
            first = max(self._next_seq, log.low, run.first_seq)
            try:
                block, marks = run.block_of(first, BLOCK_RECORDS) if isinstance(run, Tail) else run.block_at(first)
            except Damaged:
                # What cannot be read proves nothing.
                self._next_seq = run.last_seq + 1
                return True
            self._next_seq = block.last_seq + 1
            for index, seq in self._stamps(block):
                if block.first_seq + index >= log.low and (marks is None or marks[index] != DEAD):
                    self.found.add(seq)
            return True
        return False

    def _stamps(self, block: Block) -> Iterator[tuple[int, int]]:
        """Position in the block and seq of the source of each stamp that is in the meta of a record."""
        if block.meta_lens is None:
            return
        for found in self._pattern.finditer(block.text):
            index = int(np.searchsorted(block.ends, found.start(), side="right"))
            meta_end = int(block.ends[index]) - 1 - int(block.data_lens[index]) - _DATA_KEY_BYTES
            if meta_end - int(block.meta_lens[index]) <= found.start() and found.end() <= meta_end:
                yield index, int(found.group(1))
