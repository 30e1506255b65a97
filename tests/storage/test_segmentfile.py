from __future__ import annotations

import msgspec
import pytest

from tests.storage.samples import (
    DATA,
    HOT,
    SALT,
    Row,
    block_of,
    flip,
    key,
    live_rows,
    read_bytes,
    reopen,
    replace_bytes,
    reword,
    rows_of,
    sample,
    simple_rows,
    write,
)
from topics.errors import Damaged
from topics.storage import frame
from topics.storage.frame import Kind
from topics.storage.segmentfile import FORMAT_VERSION, DataHeader, read_end, scan
from topics.storage.segmentwriter import write_segment
from topics.testing import FakeDisk


def test_every_flipped_byte_of_the_data_is_noticed_or_harmless() -> None:
    disk = FakeDisk()
    sections = sample(disk)
    harmless = set()
    for stored in scan(DATA, disk.map(DATA).view, 1):
        harmless |= set(range(stored.flags_at, stored.offset + stored.frame_bytes))
    harmless |= padding_of_the_rest(read_bytes(disk, DATA))
    noticed = 0
    for offset in range(len(read_bytes(disk, DATA))):
        flip(disk, DATA, offset)
        try:
            list(scan(DATA, disk.map(DATA).view, 1))
            assert offset in harmless, f"a flip at {offset} went unnoticed"
        except Damaged as damage:
            assert offset not in harmless
            assert damage.detail["file"] == DATA
            noticed += 1
        read_all_or_damaged(disk, sections)
        flip(disk, DATA, offset)
    assert noticed > 400


def padding_of_the_rest(content: bytes) -> set[int]:
    """Padding behind frames without flags: where a zero stands between the checksum and the next frame."""
    places: set[int] = set()
    at = 0
    while at < len(content):
        body_len, kind = frame.HEADER.unpack_from(content, at)[1], content[at + 12]
        end = at + frame.OVERHEAD_BYTES + body_len
        count = int.from_bytes(content[at + 48 : at + 52], "little") if kind == frame.Kind.BLOCK else 0
        places |= set(range(end + count, frame.padded(end + count)))
        at = frame.padded(end + count)
    return places


def read_all_or_damaged(disk: FakeDisk, sections: dict[int, list[Row]]) -> None:
    """Reading gives exactly what was written or says that it is damaged."""
    try:
        segment = reopen(disk, 1)
    except Damaged:
        return
    for section_no, rows in enumerate(sections.values()):
        try:
            assert live_rows(segment.run(section_no)) == rows
        except Damaged as damage:
            assert rows[0].seq <= damage.detail["first_seq"] <= damage.detail["last_seq"] <= rows[-1].seq


def test_a_salvaging_scan_goes_on_behind_the_damage_and_says_what_is_lost() -> None:
    disk = FakeDisk()
    stretch = [simple_rows(1, 3), simple_rows(10, 3), simple_rows(20, 3)]
    write(disk, 1, [(key(1, "a"), stretch), (key(2, "b"), [simple_rows(5, 2)])])
    stored = list(scan(DATA, disk.map(DATA).view, 1))
    flip(disk, DATA, stored[1].offset + 40)
    damages: list[Damaged] = []
    found = list(scan(DATA, disk.map(DATA).view, 1, damages.append))
    assert [rows_of(block.block)[0].seq for block in found] == [1, 20, 5]
    assert [block.key for block in found] == [key(1, "a"), key(1, "a"), key(2, "b")]
    (damage,) = damages
    assert damage.detail == {"file": DATA, "offset": stored[1].offset, "first_seq": 4, "last_seq": 19, "topic": "a"}


def test_a_salvaging_scan_never_gives_a_block_to_the_wrong_section() -> None:
    disk = FakeDisk()
    write(disk, 1, [(key(1, "a"), [simple_rows(1, 3)]), (key(2, "b"), [simple_rows(5, 2)])])
    first, second = scan(DATA, disk.map(DATA).view, 1)
    flip(disk, DATA, first.offset + first.frame_bytes + 33)
    damages: list[Damaged] = []
    found = list(scan(DATA, disk.map(DATA).view, 1, damages.append))
    assert [(block.key, block.log_id) for block in found] == [(key(1, "a"), 1), (None, 2)]
    assert second.key == key(2, "b") and len(damages) == 1


@pytest.mark.parametrize("where", ["header", "end"])
def test_a_damaged_header_or_end_does_not_hide_the_blocks(where: str) -> None:
    disk = FakeDisk()
    sections = sample(disk)
    flip(disk, DATA, 40 if where == "header" else len(read_bytes(disk, DATA)) - 24)
    damages: list[Damaged] = []
    found = list(scan(DATA, disk.map(DATA).view, 1, damages.append))
    assert [rows_of(block.block) for block in found] == list(sections.values())
    assert damages


def test_a_block_that_is_missing_without_a_trace_is_noticed_by_the_totals() -> None:
    disk = FakeDisk()
    sample(disk)
    _, second = scan(DATA, disk.map(DATA).view, 1)
    content = read_bytes(disk, DATA)
    replace_bytes(disk, DATA, content[: second.offset] + content[second.offset + second.frame_bytes :])
    with pytest.raises(Damaged, match="ends with 2 blocks of 7 records in 2 sections, but holds 1 of 4 in 2"):
        list(scan(DATA, disk.map(DATA).view, 1))


def test_the_end_of_another_file_is_noticed() -> None:
    disk, other = FakeDisk(), FakeDisk()
    for fs, salt in ((disk, SALT), (other, SALT + 1)):
        fs.make_dir(HOT)
        write_segment(fs, HOT, 1, salt, 0, [(key(1), [(block_of(simple_rows(1, 3)), None)])])
    _, end_at = read_end(DATA, memoryview(read_bytes(disk, DATA)), len(read_bytes(disk, DATA)))
    replace_bytes(disk, DATA, read_bytes(disk, DATA)[:end_at] + read_bytes(other, DATA)[end_at:])
    with pytest.raises(Damaged, match="of another file"):
        list(scan(DATA, disk.map(DATA).view, 1))
    with pytest.raises(Damaged, match="of another file"):
        reopen(disk, 1)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (Kind.FILE_HEADER, b"\xc1", "is no segment"),
        (
            Kind.FILE_HEADER,
            msgspec.msgpack.encode(DataHeader(FORMAT_VERSION + 1, 1, SALT + 1, 0)),
            f"is in segment format {FORMAT_VERSION + 1}; this program reads format {FORMAT_VERSION}",
        ),
        (Kind.FILE_END, b"\xc1", r"offset \d+: no end of a segment"),
    ],
)
def test_ends_whose_checksums_are_right_and_that_say_nothing_to_us_are_refused(
    kind: Kind, body: bytes, message: str
) -> None:
    disk = FakeDisk()
    sample(disk)
    reword(disk, DATA, kind, body)
    with pytest.raises(Damaged, match=message) as raised:
        reopen(disk, 1)
    assert raised.value.detail["file"] == DATA


def salvaged(content: bytes) -> tuple[list[list[Row]], list[Damaged]]:
    damages: list[Damaged] = []
    return [rows_of(stored.block) for stored in scan(DATA, memoryview(content), 1, damages.append)], damages


def test_without_header_and_end_nothing_can_be_verified() -> None:
    disk = FakeDisk()
    sample(disk)
    content = read_bytes(disk, DATA)
    found, damages = salvaged(bytes(256) + content[256:-256] + bytes(256))
    assert found == []
    assert ["the file header of segment 1 is damaged" in damage.message for damage in damages] == [True]


def test_a_block_whose_flags_are_cut_off_is_lost() -> None:
    disk = FakeDisk()
    rows, _ = sample(disk).values()
    content = read_bytes(disk, DATA)
    first, second = scan(DATA, memoryview(content), 1)
    found, damages = salvaged(content[: second.flags_at + 1])
    assert found == [rows]
    assert [damage.detail["offset"] for damage in damages] == [second.flags_at + 1, second.offset]
    found, damages = salvaged(content[: first.offset + frame.HEADER_BYTES])
    assert found == []
    assert [damage.detail.get("first_seq") for damage in damages] == [None, None]
    assert "at risk: seqs ?..? of topic ?" in damages[1].message
