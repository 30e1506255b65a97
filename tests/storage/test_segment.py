from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.samples import (
    DATA,
    HOT,
    Row,
    key,
    live_rows,
    read_bytes,
    reopen,
    replace_bytes,
    sample,
    simple_rows,
    stretches,
    write,
)
from topics.core.run import DEAD
from topics.errors import Damaged
from topics.storage.segment import unset_marks, write_marks
from topics.storage.segmentfile import data_name
from topics.testing import FakeDisk, FaultFs


@given(st.lists(stretches(), min_size=1, max_size=4))
def test_what_was_written_is_read_back(sections: list[list[list[Row]]]) -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(log_id, f"t{log_id}"), blocks) for log_id, blocks in enumerate(sections)])
    segment = reopen(disk, 1)
    assert segment.index_rebuilt is None
    assert [section.topic for section in segment.sections] == [f"t{log_id}" for log_id in range(len(sections))]
    for section_no, blocks in enumerate(sections):
        rows = [row for block in blocks for row in block]
        section = segment.sections[section_no]
        assert (section.first_seq, section.last_seq) == (rows[0].seq, rows[-1].seq)
        assert (section.first_ts, section.last_ts) == (rows[0].ts, rows[-1].ts)
        assert (section.count, section.payload_bytes) == (len(rows), sum(row.size for row in rows))
        assert live_rows(segment.run(section_no)) == rows


def test_a_cut_off_file_is_not_opened() -> None:
    disk = FakeDisk()
    sample(disk)
    content = read_bytes(disk, DATA)
    for length in range(0, len(content), 5):
        replace_bytes(disk, DATA, content[:length])
        with pytest.raises(Damaged):
            reopen(disk, 1)


def test_bytes_behind_the_end_are_noticed() -> None:
    disk = FakeDisk()
    sample(disk)
    file = disk.open(DATA, "write")
    file.write_at(file.size(), [bytes(8)])
    with pytest.raises(Damaged, match="end frame"):
        reopen(disk, 1)


def test_another_files_data_under_this_name_is_noticed() -> None:
    disk = FakeDisk()
    sample(disk)
    disk.rename(DATA, f"{HOT}/{data_name(2)}")
    with pytest.raises(Damaged, match="segment 1, not 2"):
        reopen(disk, 2)


def u64(*seqs: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(seqs, np.uint64)


def test_marks_are_in_effect_at_once_and_in_the_file_after_write_marks() -> None:
    disk = FakeDisk()
    rows = simple_rows(1, 10)
    write(disk, 1, [(key(1), [rows[:5]]), (key(2), [rows])])
    segment = reopen(disk, 1)
    runs = [segment.run(0), segment.run(1)]
    before = read_bytes(disk, DATA)
    assert segment.pending_marks(0) is None
    assert runs[0].mark(u64(2)) == (1, rows[1].size)
    assert runs[1].mark(u64(3, 4, 9)) == (3, sum(rows[seq - 1].size for seq in (3, 4, 9)))
    assert read_bytes(disk, DATA) == before, "a mark is written later, by another thread"
    assert [row.seq for row in live_rows(runs[1])] == [1, 2, 5, 6, 7, 8, 10]

    marks = [segment.pending_marks(0), segment.pending_marks(1)]
    pending = [section for section in marks if section is not None]
    assert [len(section.offsets) for section in pending] == [1, 3]
    write_marks(disk, segment.path(), pending)
    after = read_bytes(disk, DATA)
    changed = [offset for offset in range(len(after)) if after[offset] != before[offset]]
    assert changed == [offset for section in pending for offset in section.offsets.tolist()]
    assert all(after[offset] == DEAD for offset in changed)

    for section in pending:
        segment.marks_durable(section)
    assert segment.pending_marks(0) is None and segment.pending_marks(1) is None
    for opened in (segment, reopen(disk.crash("lost"), 1)):
        runs = runs if opened is segment else [opened.run(0), opened.run(1)]
        assert [row.seq for row in live_rows(runs[0])] == [1, 3, 4, 5]
        assert [row.seq for row in live_rows(runs[1])] == [1, 2, 5, 6, 7, 8, 10]
        assert (runs[1].live_count, runs[1].live_bytes) == (7, sum(row.size for row in live_rows(runs[1])))


def test_a_mark_made_while_others_are_written_stays_pending() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [simple_rows(1, 10)])])
    segment = reopen(disk, 1)
    run = segment.run(0)
    run.mark(u64(1))
    pending = segment.pending_marks(0)
    assert pending is not None
    run.mark(u64(2))
    write_marks(disk, segment.path(), [pending])
    segment.marks_durable(pending)
    assert [row.seq for row in live_rows(run)] == list(range(3, 11))
    assert run.pending_seqs().tolist() == [2]
    assert [row.seq for row in live_rows(reopen(disk, 1).run(0))] == list(range(2, 11))


def test_a_failed_write_of_marks_can_be_tried_again() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [simple_rows(1, 10)])])
    segment = reopen(disk, 1)
    run = segment.run(0)
    run.mark(u64(1, 2, 3))
    first = segment.pending_marks(0)
    faulty = FaultFs(disk)
    faulty.fail("sync")
    assert first is not None
    with pytest.raises(OSError, match="Input/output"):
        write_marks(faulty, segment.path(), [first])
    again = segment.pending_marks(0)
    assert again is not None and again.offsets.tolist() == first.offsets.tolist()
    assert [row.seq for row in live_rows(run)] == list(range(4, 11))


def test_flags_that_a_failed_write_has_left_are_not_told_again() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1), [simple_rows(1, 10)])])
    segment = reopen(disk, 1)
    segment.run(0).mark(u64(1, 2, 3, 7))
    pending = segment.pending_marks(0)
    assert pending is not None
    offsets = pending.offsets.tolist()
    assert unset_marks(disk, segment.path(), [pending]).tolist() == offsets
    file = disk.open(segment.path(), "write")
    file.write_at(offsets[1], [bytes([DEAD])])
    file.close()
    assert unset_marks(disk, segment.path(), [pending]).tolist() == [offsets[0], *offsets[2:]]
