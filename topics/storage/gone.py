"""Flags of records that are gone although nobody deleted them one by one.

A record leaves a snapshot in three ways: its flag is set, its log's floor passes it, or its log goes as a whole. In the
last two the snapshot alone says so, and segments outlive what they hold: a pack is shared by many logs. So that each
file can tell what counts in it when a snapshot cannot be read, such records are flagged as well:

    snapshot N is durable    it does not name them any more. Not before: what was decided may not be durable until then
    flags are set, synced    from here on no file needs the snapshot to say what is gone
    the WAL is trimmed       until then it holds every fact since snapshot N - 1, so N is not needed at all

A process that dies between the first and the third step leaves a WAL that needs an older snapshot than the newest one,
and the next start sets the flags before it begins new files. `DataHeader.tells_gone` says that a file was written by a
program that does all this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from topics.storage.fs import File, FileSystem
from topics.storage.pins import Pins
from topics.storage.segment import Segment
from topics.storage.segmentfile import DEAD_FLAG, data_name
from topics.storage.tier import Tiers

SEQS_END: Final = 1 << 62
"""Above every seq."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Where the flags of records stand that are gone: offset and length of each stretch. A value for any thread."""

    number: int
    stretches: tuple[tuple[int, int], ...]


def flag_gone(fs: FileSystem, tiers: Tiers, pins: Pins | None, gone: Iterable[Gone]) -> None:
    """Set flags, durably. A segment that is not there any more needs none."""
    by_segment: dict[int, list[tuple[int, int]]] = {}
    for one in gone:
        if one.stretches:
            by_segment.setdefault(one.number, []).extend(one.stretches)
    for number, stretches in by_segment.items():
        try:
            path = tiers.find(data_name(number))
        except FileNotFoundError:
            continue
        file = fs.open(path, "write")
        try:
            if pins is not None and pins.holds(number):
                pins.note_flags(number, np.concatenate([_unset(file, *stretch) for stretch in stretches]))
            for offset, length in stretches:
                file.write_at(offset, [DEAD_FLAG * length])
            file.sync()
        finally:
            file.close()


def gone_section(segment: Segment, section_no: int, from_seq: int = 0, below: int = SEQS_END) -> Gone:
    """The records of a section from one seq on and below another."""
    return Gone(segment.number, segment.flag_stretches(section_no, from_seq, below))


def unnamed(segments: Iterable[Segment], named: Mapping[tuple[int, int], int]) -> Iterator[Gone]:
    """What a snapshot does not name in segments that it names.

    `named` has the floor of each section that it does name, by segment and section number.
    """
    for segment in segments:
        for section_no in range(len(segment.sections)):
            yield gone_section(segment, section_no, below=named.get((segment.number, section_no), SEQS_END))


def _unset(file: File, offset: int, length: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    flags = np.frombuffer(file.read_at(offset, length), np.uint8)
    unset = np.flatnonzero(flags != DEAD_FLAG[0])
    return unset.astype(np.uint64) + np.uint64(offset)
