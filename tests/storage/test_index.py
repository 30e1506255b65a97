from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.samples import (
    INDEX,
    SALT,
    Row,
    flip,
    key,
    live_rows,
    read_bytes,
    reopen,
    replace_bytes,
    reword,
    sample,
    simple_rows,
    stretches,
    write,
)
from topics.core.match import Match
from topics.errors import Damaged
from topics.storage import frame, index
from topics.storage.frame import Kind
from topics.storage.segmentfile import SectionKey
from topics.testing import FakeDisk


@given(st.lists(stretches(), min_size=1, max_size=3))
def test_a_rebuilt_index_is_the_same_byte_for_byte(sections: list[list[list[Row]]]) -> None:
    disk = FakeDisk()
    write(disk, 1, enumerate_keys(sections))
    original = read_bytes(disk, INDEX)
    disk.unlink(INDEX)
    segment = reopen(disk, 1)
    assert segment.index_rebuilt is not None and "missing" in segment.index_rebuilt
    assert read_bytes(disk, INDEX) == original


def enumerate_keys(sections: list[list[list[Row]]]) -> list[tuple[SectionKey, list[list[Row]]]]:
    return [(key(log_id), blocks) for log_id, blocks in enumerate(sections)]


def test_a_flipped_byte_of_the_index_never_changes_an_answer() -> None:
    disk = FakeDisk()
    sections = sample(disk)
    original = read_bytes(disk, INDEX)
    rebuilt = 0
    for offset in range(len(original)):
        flip(disk, INDEX, offset)
        segment = reopen(disk, 1)
        runs = [segment.run(0), segment.run(1)]
        assert [live_rows(run) for run in runs] == list(sections.values())
        assert runs[0].find(Match(b"tag-1", prefix=False), 100).tolist() == [1, 4]
        if segment.index_rebuilt:
            rebuilt += 1
            assert read_bytes(disk, INDEX) == original
        else:
            flip(disk, INDEX, offset)
    assert rebuilt > len(original) * 0.9


def test_a_long_section_has_several_tag_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "TABLE_RECORDS", 4)
    disk = FakeDisk()
    rows = [Row(seq, 1, b"1", tag=b"t%d" % (seq % 3)) for seq in range(1, 21)]
    untagged = [Row(seq, 1, b"1") for seq in range(30, 33)]
    blocks = [rows[:5], untagged, [Row(seq + 40, 1, b"1", tag=b"t1") for seq in range(4)]]
    (first, second) = write(disk, 1, [(key(1), blocks), (key(2), [rows])])
    assert (len(first.tags_at), len(second.tags_at)) == (2, 1)
    segment = reopen(disk, 1)
    assert segment.run(0).find(Match(b"t1", prefix=False), 100).tolist() == [1, 4, 40, 41, 42, 43]
    assert segment.run(0).find(Match(b"t", prefix=True), 42).tolist() == [1, 2, 3, 4, 5, 40, 41]
    assert segment.run(1).find(Match(b"t0", prefix=False), 10).tolist() == [3, 6, 9]


def test_the_index_of_another_file_is_rebuilt_or_its_blocks_are_refused() -> None:
    """Even when number and salt are the same, as they never are."""
    disk, longer, shifted = FakeDisk(), FakeDisk(), FakeDisk()
    write(disk, 1, [(key(1), [simple_rows(1, 3)])])
    write(longer, 1, [(key(1), [simple_rows(1, 4)])])
    write(shifted, 1, [(key(1), [simple_rows(5, 3)])])
    replace_bytes(disk, INDEX, read_bytes(longer, INDEX))
    segment = reopen(disk, 1)
    assert segment.index_rebuilt is not None and "another file" in segment.index_rebuilt
    assert live_rows(segment.run(0)) == simple_rows(1, 3)
    assert segment.data_bytes == reopen(shifted, 1).data_bytes
    replace_bytes(disk, INDEX, read_bytes(shifted, INDEX))
    with pytest.raises(Damaged, match=r"seqs 5\.\.7"):
        reopen(disk, 1).run(0).block_at(5)


def sections_elsewhere(content: bytes) -> bytes:
    """The section table of an index, its last section behind all blocks."""
    view = memoryview(content)
    header = frame.parse(view, 0, 0)
    assert header is not None
    table = frame.parse(view, frame.padded(header.end), SALT + 1)
    assert table is not None
    *sections, last = msgspec.msgpack.decode(table.body, type=tuple[index.Section, ...])
    return msgspec.msgpack.encode([*sections, msgspec.structs.replace(last, first_block=last.first_block + 1)])


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        (Kind.FILE_HEADER, b"\xc1", "it is no index"),
        (Kind.SECTION, b"\xc1", "its section table is of another kind"),
        (Kind.SECTION, sections_elsewhere, "its section table names blocks that are not there"),
        (Kind.TAG_TABLE, b"", "its tag table of topic t7 is of another kind"),
    ],
)
def test_an_index_whose_checksums_are_right_is_rebuilt_when_it_says_nothing_to_us(
    kind: Kind, body: Any, reason: str
) -> None:
    disk = FakeDisk()
    sections = sample(disk)
    original = read_bytes(disk, INDEX)
    reword(disk, INDEX, kind, body if isinstance(body, bytes) else body(original))
    segment = reopen(disk, 1)
    assert segment.run(0).find(Match(b"tag-1", prefix=False), 100).tolist() == [1, 4]
    assert segment.index_rebuilt is not None and segment.index_rebuilt.endswith(reason)
    assert read_bytes(disk, INDEX) == original
    assert [live_rows(segment.run(number)) for number in (0, 1)] == list(sections.values())
