from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.samples import (
    COLD,
    HOT,
    SALT,
    Row,
    block_of,
    flip,
    key,
    live_rows,
    reopen,
    simple_rows,
    stretches,
    write,
)
from topics.core.match import Match
from topics.core.run import DEAD
from topics.errors import Damaged
from topics.storage.fs import FileSystem
from topics.storage.merge import blank, copy_sections, shred_segment
from topics.storage.segment import write_marks
from topics.storage.segmentfile import SectionKey, data_name
from topics.storage.tier import Tiers
from topics.testing import CRASH_MODES, FakeDisk, FaultFs, SimulatedCrash


def kill(fs: FileSystem, number: int, section_no: int, seqs: list[int]) -> None:
    """Delete records of a segment, durably."""
    segment = reopen(fs, number)
    segment.run(section_no).mark(np.array(seqs, np.uint64))
    pending = segment.pending_marks(section_no)
    if pending is not None:
        write_marks(fs, segment.path(), [pending])


def copied(fs: FileSystem, number: int, *sections: tuple[SectionKey, list[tuple[int, int]]]) -> None:
    copy_sections(fs, Tiers(fs, HOT, COLD).find, HOT, number, SALT, 5, sections)


def erased(fs: FileSystem) -> None:
    """Segment 1 as segment 2, without what is deleted in it."""
    copy_sections(fs, Tiers(fs, HOT, COLD).find, HOT, 2, SALT, 5, [(key(1), [(1, 0)])], blank_dead=True)


def test_sections_of_one_log_become_one_and_dropped_logs_go() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [simple_rows(1, 3, tag=b"t")]), (key(2), [simple_rows(1, 5)])])
    write(disk, 2, [(key(3), [simple_rows(7, 2)]), (key(1), [simple_rows(4, 3, tag=b"u")])])
    kill(disk, 1, 0, [2])
    kill(disk, 2, 1, [6])
    copied(disk, 3, (key(1), [(1, 0), (2, 1)]), (key(3), [(2, 0)]))
    segment = reopen(disk, 3)
    assert [(section.log_id, section.first_seq, section.last_seq) for section in segment.sections] == [
        (1, 1, 6),
        (3, 7, 8),
    ]
    assert segment.sections[0].blocks == 1
    run = segment.run(0)
    assert [row.seq for row in live_rows(run)] == [1, 3, 4, 5]
    assert run.find(Match(b"u", prefix=False), 100).tolist() == [4, 5]
    assert run.live_count == 4


def test_a_damaged_source_is_not_copied() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [simple_rows(1, 30)])])
    flip(disk, f"{HOT}/{data_name(1)}", 500)
    with pytest.raises(Damaged):
        copied(disk, 2, (key(1), [(1, 0)]))
    assert Tiers(disk, HOT).numbers() == [1]


@given(stretches(), st.data())
def test_an_erased_segment_has_the_live_records_and_nothing_of_the_dead(
    blocks: list[list[Row]], data: st.DataObject
) -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), blocks)])
    rows = [row for block in blocks for row in block]
    dead = data.draw(st.sets(st.sampled_from([row.seq for row in rows])))
    kill(disk, 1, 0, sorted(dead))
    before = reopen(disk, 1).run(0)
    erased(disk)
    run = reopen(disk, 2).run(0)
    assert live_rows(run) == [row for row in rows if row.seq not in dead]
    assert (run.live_count, run.live_bytes) == (before.live_count, before.live_bytes)
    assert (run.first_seq, run.last_seq, run.last_ts) == (before.first_seq, before.last_seq, before.last_ts)
    for text in (b"", b"a", b"ab"):
        match = Match(text, prefix=True)
        assert run.find(match, 10**9).tolist() == before.find(match, 10**9).tolist()


def test_the_bytes_of_a_deleted_record_are_in_no_file_any_more() -> None:
    disk = FakeDisk()
    secret = Row(5, 2000, b'"PAYLOAD-SECRET"', b'{"m":"META-SECRET"}', b"TAG-SECRET", b"NODE-SECRET")
    rows = [*simple_rows(1, 4, tag=b"public"), secret, *simple_rows(6, 4, ts=3000)]
    write(disk, 1, [(key(1), [rows])])
    tiers = Tiers(disk, HOT, COLD)
    assert files_with(disk, b"SECRET")
    kill(disk, 1, 0, [5])
    erased(disk)
    old = disk.map(f"{HOT}/{data_name(1)}").view
    shred_segment(disk, tiers, 1)
    assert bytes(old) == bytes(len(old)), "the old bytes are overwritten, not merely unlinked"
    for content in (disk, disk.crash("lost")):
        assert files_with(content, b"SECRET") == []
    assert files_with(disk, b"public")


def files_with(disk: FakeDisk, text: bytes) -> list[str]:
    return [path for path, content in disk.contents().items() if text in content]


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_crash_while_erasing_leaves_the_old_segment_or_both(mode: str) -> None:
    def prepared(seed: int) -> FakeDisk:
        disk = FakeDisk(seed)
        write(disk, 1, [(key(1), [simple_rows(1, 5)])])
        kill(disk, 1, 0, [2])
        return disk

    counting = FaultFs(prepared(0))
    erased(counting)
    for index in range(len(counting.calls)):
        disk = prepared(index)
        faulty = FaultFs(disk)
        faulty.crash_at(index)
        with pytest.raises(SimulatedCrash):
            erased(faulty)
        after = disk.crash(mode)
        for number in Tiers(after, HOT).numbers():
            assert [row.seq for row in live_rows(reopen(after, number).run(0))] == [1, 3, 4, 5]
        Tiers(after, HOT).sweep({1})
        assert Tiers(after, HOT).numbers() == [1]


def test_a_block_without_deletions_is_not_copied() -> None:
    block = block_of(simple_rows(1, 3))
    assert blank(block, None) is block


def test_blanking_keeps_the_length_and_place_of_every_record() -> None:
    rows = [Row(seq, seq, b'"d%d"' % seq, b"{}", b"t%d" % seq, b"n%d" % seq) for seq in range(1, 4)]
    block = block_of(rows)
    blanked = blank(block, bytearray([0, DEAD, 0]))
    assert blanked.ends.tolist() == block.ends.tolist()
    assert blanked.sizes.tolist() == block.sizes.tolist()
    start, end = block.start(1), int(block.ends[1])
    assert bytes(blanked.text) == block.text[:start] + b" " * (end - start) + block.text[end:]
    assert blanked.tag_list() == [b"t1", b"", b"t3"]
    assert [blanked.node(index) for index in range(3)] == [b"n1", None, b"n3"]
    assert blanked.node_names == (b"n1", b"n3")
