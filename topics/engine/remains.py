"""What is left of the segments of a directory: every block is read and checked, nothing is changed.

A segment that is as it was written is used like any other. Of a damaged one the blocks that can be read are held, and
become runs in memory that the repair stores anew. A deletion flag with a flipped bit is taken for what it is nearest
to: live and dead differ in five bits, so up to two flips leave no doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from topics.core.run import DEAD, LIVE, MemoryRun, Run
from topics.engine.findings import Findings, Kind
from topics.errors import Damaged
from topics.storage.fs import Mapping
from topics.storage.index import IndexBuilder
from topics.storage.segmentfile import SectionKey, StoredBlock, data_name, index_name, read_header, salvaged_salt, scan
from topics.storage.store import Store

OnBytes = Callable[[int], None]

_DEAD_BITS_MIN = DEAD.bit_count() // 2 + 1
_NEAREST = bytes(DEAD if (flag & DEAD).bit_count() >= _DEAD_BITS_MIN else LIVE for flag in range(256))


@dataclass(slots=True)
class Remnant:
    """One segment: whole, or the blocks of it that can be read."""

    number: int
    path: str
    whole: bool = True
    index_good: bool = True
    salt: int | None = None
    """None when neither end of the file tells it: then no block can be read."""
    tells_gone: bool = False
    """Whether its flags tell of all that is gone, also of what was never deleted record by record."""
    mapping: Mapping | None = None
    """Held while `blocks` are in use."""
    blocks: list[StoredBlock] = field(default_factory=list)
    sections: dict[int, tuple[int, SectionKey | None]] = field(default_factory=dict)
    """Log id, and key as far as it is known, by section number."""


class Remains:
    def __init__(self, store: Store, rebuild_indexes: bool, found: Findings, on_bytes: OnBytes) -> None:
        self.segments: dict[int, Remnant] = {}
        self._left_out: list[Remnant] = []
        self._store = store
        self._rebuild_indexes = rebuild_indexes
        self._found = found
        self._on_bytes = on_bytes

    def read(self) -> None:
        for number in self._store.tiers.numbers():
            self.segments[number] = self._read_segment(number)

    def _read_segment(self, number: int) -> Remnant:
        path = self._store.tiers.find(data_name(number))
        remnant = Remnant(number, path, mapping=self._store.fs.map(path))
        assert remnant.mapping is not None
        view = remnant.mapping.view
        remnant.salt = salvaged_salt(path, view, number)
        remnant.tells_gone = _tells_gone(path, view, number)

        def on_damage(damage: Damaged) -> None:
            remnant.whole = False
            self._found.add(Kind.SEGMENT, damage, "readable blocks are kept, the others become a hole")

        for stored in scan(path, view, number, on_damage):
            remnant.blocks.append(stored)
            remnant.sections.setdefault(stored.section_no, (stored.log_id, stored.key))
            self._check_flags(remnant, stored)
        self._on_bytes(len(view))
        if remnant.whole:
            self._check_index(remnant, view)
        if remnant.whole and (remnant.index_good or self._rebuild_indexes):
            remnant.blocks.clear()
            remnant.mapping.release()
            remnant.mapping = None
        return remnant

    def _check_flags(self, remnant: Remnant, stored: StoredBlock) -> None:
        for at, flag in enumerate(bytes(stored.flags)):
            if flag in (LIVE, DEAD):
                continue
            remnant.whole = False
            seq, offset = stored.block.first_seq + at, stored.flags_at + at
            nearest = "deleted" if _NEAREST[flag] == DEAD else "live"
            message = f"{remnant.path} offset {offset}: the deletion flag of seq {seq} is 0x{flag:02X}"
            damage = Damaged(
                message,
                file=remnant.path,
                offset=offset,
                first_seq=seq,
                last_seq=seq,
                topic=stored.key.topic if stored.key is not None else None,
            )
            self._found.add(Kind.MARKS, damage, f"nearest to {nearest}, and taken for that")

    def _check_index(self, remnant: Remnant, view: memoryview) -> None:
        """An index is derived from its data, byte for byte."""
        number = remnant.number
        assert remnant.salt is not None, "a segment that is whole has its salt"
        builder = IndexBuilder(number, remnant.salt)
        for stored in remnant.blocks:
            assert stored.key is not None, "a scan without damage knows every section"
            builder.add(stored.key, stored)
        expected = b"".join(builder.finish(len(view)))
        try:
            index_path = self._store.tiers.find(index_name(number))
        except FileNotFoundError:
            index_path, found = remnant.path.removesuffix(data_name(number)) + index_name(number), b""
        else:
            mapping = self._store.fs.map(index_path)
            found = bytes(mapping.view)
            mapping.release()
        self._on_bytes(len(found))
        if found != expected:
            remnant.index_good = False
            offset = next((at for at, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), 0)
            what = "differs from its segment" if found else "is missing"
            damage = Damaged(f"{index_path} offset {offset}: the index {what}", file=index_path, offset=offset)
            self._found.add(Kind.INDEX, damage, "rebuilt from the segment")

    def keys(self) -> list[SectionKey]:
        """Whose records there are, as far as sections tell."""
        sections = [section for remnant in self.segments.values() for section in remnant.sections.values()]
        return [key for _, key in sections if key is not None]

    def leave_out(self, remnant: Remnant) -> None:
        """As if its file were not there."""
        self._left_out.append(self.segments.pop(remnant.number))

    def take_back(self) -> None:
        """Have all segments again that were left out."""
        self.segments |= {remnant.number: remnant for remnant in self._left_out}
        self._left_out.clear()

    def usable(self, number: int) -> bool:
        """Whether the segment can be opened as it is."""
        remnant = self.segments.get(number)
        return remnant is not None and remnant.whole and (remnant.index_good or self._rebuild_indexes)

    def pieces(self, number: int, section_no: int, log_id: int) -> list[Run]:
        """What can be read of one section of a segment that is not usable as it is."""
        return [
            memory_run(stored)
            for stored in self.segments[number].blocks
            if (stored.section_no, stored.log_id) == (section_no, log_id)
        ]

    def whole_runs(
        self, remnant: Remnant, wanted: Callable[[int], bool]
    ) -> Iterable[tuple[int, SectionKey | None, list[Run]]]:
        """The sections of a segment that are of logs that are wanted, as runs: log id, key, runs."""
        for section_no, (log_id, key) in remnant.sections.items():
            if not wanted(log_id):
                continue
            if self.usable(remnant.number):
                yield log_id, key, [self._store.run(remnant.number, section_no)]
            else:
                yield log_id, key, self.pieces(remnant.number, section_no, log_id)


def _tells_gone(path: str, view: memoryview, number: int) -> bool:
    try:
        return read_header(path, view, number)[0].tells_gone
    except Damaged:
        return False


def memory_run(stored: StoredBlock) -> MemoryRun:
    marks = bytearray(bytes(stored.flags).translate(_NEAREST))
    return MemoryRun(stored.block, marks if DEAD in marks else None)


def missing_ranges(first_seq: int, last_seq: int, present: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of a range is in none of the ascending ranges given."""
    missing = []
    at = first_seq
    for start, end in present:
        if start > at:
            missing.append((at, min(start - 1, last_seq)))
        at = max(at, end + 1)
        if at > last_seq:
            break
    if at <= last_seq:
        missing.append((at, last_seq))
    return [(start, end) for start, end in missing if start <= end]
