from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.samples import Row, block_of
from topics.core.match import Match
from topics.storage import tagtable
from topics.storage.tagtable import TagTable, build_tag_table

tags = st.lists(st.lists(st.binary(max_size=3), min_size=1, max_size=8), min_size=1, max_size=5)


def table_of(rows: list[list[Row]]) -> TagTable | None:
    blocks = [block_of(block) for block in rows]
    body = build_tag_table([block for block in blocks if block.tag_ends is not None], rows[0][0].seq)
    return None if body is None else TagTable(memoryview(b"".join(body)), rows[0][0].seq)


def rows_with(tags: list[list[bytes]], hole: int) -> list[list[Row]]:
    seq = 100
    rows = []
    for block in tags:
        rows.append([Row(seq + index, 1, b"1", tag=tag) for index, tag in enumerate(block)])
        seq += len(block) + hole
    return rows


@given(tags, st.sampled_from([0, 7, 2**33]), st.binary(max_size=3), st.booleans())
def test_a_search_finds_what_a_scan_finds(tags: list[list[bytes]], hole: int, text: bytes, prefix: bool) -> None:
    rows = rows_with(tags, hole)
    table = table_of(rows)
    expected = [row.seq for block in rows for row in block if Match(text, prefix).matches(row.tag)]
    assert expected == ([] if table is None else table.find(Match(text, prefix)).tolist())


def test_many_tags_are_sorted_in_steps() -> None:
    count = tagtable.SORT_TAGS + 100
    rows = [[Row(seq, 1, b"1", tag=b"%d" % (seq * 7919 % count)) for seq in range(1, count + 1)]]
    table = table_of(rows)
    assert table is not None
    for row in rows[0][:: count // 50]:
        assert table.find(Match(row.tag, prefix=False)).tolist() == [row.seq]
    expected = [row.seq for row in rows[0] if row.tag.startswith(b"12")]
    assert table.find(Match(b"12", prefix=True)).tolist() == expected


def test_a_search_touches_few_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[Row(seq, 1, b"1", tag=b"%06d" % seq) for seq in range(1, 4097)]]
    table = table_of(rows)
    assert table is not None
    touched: list[int] = []
    read_tag = table._tag

    def counted(index: int) -> bytes:
        touched.append(index)
        return read_tag(index)

    monkeypatch.setattr(table, "_tag", counted)
    assert table.find(Match(b"004000", prefix=False)).tolist() == [4000]
    assert len(touched) <= 14


@pytest.mark.parametrize(
    ("count", "seq_bytes", "postings", "message"),
    [
        (1, 2, 1, "a posting has 4 or 8 bytes, not 2"),
        (3, 4, 1, "a table of 3 tags and 1 postings does not fit 40 bytes"),
        (1, 8, 3, "a table of 1 tags and 3 postings does not fit 40 bytes"),
    ],
)
def test_a_body_that_is_no_table_is_refused(count: int, seq_bytes: int, postings: int, message: str) -> None:
    body = struct.pack("<IIQ", count, seq_bytes, postings).ljust(40, b"\0")
    with pytest.raises(ValueError, match=message):
        TagTable(memoryview(body), 1)
