"""The tags of a stretch of a section, sorted, each with the seqs that have it; read in place, never loaded.

    0   tag_count   u32
    4   seq_bytes   u32   4 or 8: the width of a posting
    8   postings    u64   how many
    16  tag_ends    u32[tag_count]  ends of the sorted tags in the text
        post_ends   u32[tag_count]  ends of their postings
        postings    seq minus the section's first seq, ascending within a tag
        text        the tags

One tag is a binary search and a prefix is a range whose postings stand together; both touch a logarithm of the tags.

A long section has several tables, each for the next `TABLE_RECORDS` records or a little more: tables are made beside
the running loop, and sorting, hashing and freeing a million tags at once would hold the interpreter for too long.
"""

from __future__ import annotations

import heapq
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from topics.core.block import Block
from topics.core.match import Match
from topics.core.run import U64
from topics.limits import BATCH_RECORDS_MAX, TAG_BYTES_MAX, U32_MAX
from topics.storage.fs import Buffer

TABLE_RECORDS = 65_536
"""A table is closed when it covers so many records."""
SORT_TAGS = 16_384
"""Tags sorted in one go, some milliseconds; the parts are merged in steps."""

assert (TABLE_RECORDS + BATCH_RECORDS_MAX) * TAG_BYTES_MAX <= U32_MAX, "a table's tags fit 32-bit offsets"

_HEADER = struct.Struct("<IIQ")
I64 = npt.NDArray[np.int64]


class TagTable:
    def __init__(self, body: memoryview, first_seq: int) -> None:
        """Raises `ValueError` or `struct.error` when the body is no table."""
        self._count, seq_bytes, postings = _HEADER.unpack_from(body, 0)
        if seq_bytes not in (4, 8):
            raise ValueError(f"a posting has 4 or 8 bytes, not {seq_bytes}")
        at = _HEADER.size
        text_at = at + 2 * 4 * self._count + seq_bytes * postings
        if text_at > len(body):
            raise ValueError(f"a table of {self._count} tags and {postings} postings does not fit {len(body)} bytes")
        self._tag_ends = np.frombuffer(body, "<u4", self._count, at)
        at += 4 * self._count
        self._post_ends = np.frombuffer(body, "<u4", self._count, at)
        at += 4 * self._count
        self._postings = np.frombuffer(body, f"<u{seq_bytes}", postings, at)
        self._text = body[text_at:]
        self._first_seq = first_seq

    def find(self, match: Match) -> U64:
        """The seqs whose tag matches, ascending."""
        low = self._first(lambda tag: tag >= match.text)
        if match.prefix:
            high = self._first(lambda tag: tag[: len(match.text)] > match.text, low)
        else:
            high = low + (low < self._count and self._tag(low) == match.text)
        if low == high:
            return np.empty(0, np.uint64)
        chosen = self._postings[int(self._post_ends[low - 1]) if low else 0 : int(self._post_ends[high - 1])]
        if high - low > 1:
            chosen = np.sort(chosen)
        return chosen.astype(np.uint64) + np.uint64(self._first_seq)

    def _tag(self, index: int) -> bytes:
        return bytes(self._text[int(self._tag_ends[index - 1]) if index else 0 : int(self._tag_ends[index])])

    def _first(self, reached: Callable[[bytes], bool], low: int = 0) -> int:
        """The first tag from `low` on for which `reached` is true, as it is for all behind it."""
        high = self._count
        while low < high:
            middle = (low + high) // 2
            if reached(self._tag(middle)):
                high = middle
            else:
                low = middle + 1
        return low


def build_tag_table(tagged: Sequence[Block], first_seq: int) -> list[Buffer] | None:
    """The stored form for blocks that have a tag column, in a section from `first_seq`; None without any tag."""
    unique: set[bytes] = set()
    for block in tagged:
        unique.update(block.tag_list())
    unique.discard(b"")
    if not unique:
        return None
    ordered: list[bytes] = []
    tag_ends = array("I")
    ranks = {b"": -1}
    text_bytes = 0
    for tag in _sorted_in_steps(list(unique)):
        ranks[tag] = len(ordered)
        ordered.append(tag)
        text_bytes += len(tag)
        tag_ends.append(text_bytes)
    of_record, seqs = _columns(tagged, ranks, first_seq)
    post_ends = np.cumsum(np.bincount(of_record, minlength=len(ordered)))
    postings = seqs[np.argsort(of_record, kind="stable")].astype(
        "<u4" if tagged[-1].last_seq - first_seq <= U32_MAX else "<u8"
    )
    return [
        _HEADER.pack(len(ordered), postings.itemsize, len(postings)),
        np.asarray(tag_ends).astype("<u4").tobytes(),
        post_ends.astype("<u4").tobytes(),
        postings.tobytes(),
        b"".join(ordered),
    ]


def _sorted_in_steps(tags: list[bytes]) -> Iterable[bytes]:
    if len(tags) <= SORT_TAGS:
        return sorted(tags)
    return heapq.merge(*(sorted(tags[at : at + SORT_TAGS]) for at in range(0, len(tags), SORT_TAGS)))


def _columns(tagged: Sequence[Block], ranks: Mapping[bytes, int], first_seq: int) -> tuple[I64, I64]:
    """The rank of the tag, and the seq relative to the section, of each record that has a tag; in seq order."""
    of_record = []
    seqs = []
    for block in tagged:
        column = np.fromiter(map(ranks.__getitem__, block.tag_list()), np.int64, block.count)
        (places,) = np.nonzero(column >= 0)
        of_record.append(column[places])
        seqs.append(places + (block.first_seq - first_seq))
    return np.concatenate(of_record), np.concatenate(seqs)
