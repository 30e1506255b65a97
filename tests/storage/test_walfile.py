from __future__ import annotations

import msgspec
import pytest

from topics.errors import Damaged
from topics.storage import frame
from topics.storage.frame import Kind
from topics.storage.walfile import (
    FORMAT_VERSION,
    FileHeader,
    erased_path,
    file_name,
    header_frame,
    is_erased,
    is_spare,
    parse_name,
    read_header,
    salt_candidates,
    spare_name,
)

HEADER = FileHeader(
    version=FORMAT_VERSION,
    layout=1,
    shards=2,
    shard=1,
    number=7,
    oldest=3,
    snapshot_no=4,
    after_power_loss=False,
    salt=2**64 - 1,
    boot_id="boot",
    created_ms=1_700_000_000_000,
)


def view_of(header: FileHeader) -> memoryview:
    return memoryview(b"".join(header_frame(header)))


def test_names_sort_like_numbers_and_parse_back() -> None:
    assert file_name(1, 7) == "1-0000000007.wal"
    assert file_name(1, 9) < file_name(1, 10)
    assert parse_name(file_name(12, 345)) == (12, 345)
    for other in ("1-7.wal", "0.spare", "x-0000000007.wal", "1-0000000007.wal.tmp", "1-0000000007"):
        assert parse_name(other) is None
    assert is_spare(spare_name(3)) and not is_spare(file_name(3, 1))
    assert is_erased(erased_path(file_name(3, 1))) and not is_erased(file_name(3, 1)) and not is_erased("x.erased")


def test_a_header_is_read_back() -> None:
    view = view_of(HEADER)
    assert read_header(view, "f", 1, 7) == (HEADER, len(view))
    assert salt_candidates(view) == [HEADER.salt, HEADER.salt]
    assert salt_candidates(view[: frame.HEADER_BYTES - 1]) == []


def test_what_is_no_header_of_this_file_is_refused() -> None:
    newer = msgspec.structs.replace(HEADER, version=FORMAT_VERSION + 1)
    with pytest.raises(
        Damaged, match=f"is in WAL format {FORMAT_VERSION + 1}; this program reads format {FORMAT_VERSION}"
    ):
        read_header(view_of(newer), "f", 1, 7)
    for shard, number in ((0, 7), (1, 8)):
        with pytest.raises(Damaged, match="says it is file 7 of shard 1"):
            read_header(view_of(HEADER), "f", shard, number)
    for data in (b"", bytes(100), b"".join(frame.build(Kind.FACT, 0, 0, 0, [b""], 0))):
        with pytest.raises(Damaged, match="does not begin with a readable WAL file header"):
            read_header(memoryview(data), "f", 1, 7)
    for body in (b"\xc1", b"\x81\xa1a" + b"\x91" * 100_000 + b"\xc0"):
        with pytest.raises(Damaged, match="cannot be decoded"):
            read_header(memoryview(b"".join(frame.build(Kind.FILE_HEADER, 0, 0, 0, [body], 0))), "f", 1, 7)
