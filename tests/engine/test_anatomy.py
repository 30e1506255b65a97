from __future__ import annotations

import json

import pytest

from tests.engine.damage import build
from tests.engine.rig import Rig
from topics.core.commands import Stage
from topics.core.dedupe import ProducerKey
from topics.core.records import Records
from topics.core.waits import named_waits
from topics.engine.anatomy import UNREADABLE, ZEROS, Part, dissect
from topics.errors import InvalidRequest
from topics.storage import frame
from topics.storage.frame import Kind
from topics.storage.walfile import FORMAT_VERSION, FileHeader, header_frame
from topics.testing import FakeDisk

CLOSED = build(closed=True).contents()
OPEN = build(closed=False).contents()


def disk(path: str, content: bytes) -> tuple[FakeDisk, str]:
    """A disk that holds one file, under its own name."""
    fs = FakeDisk()
    fs.make_dir(path.rpartition("/")[0])
    file = fs.open(path, "create")
    file.write_at(0, [content])
    file.close()
    return fs, path


def parts(path: str, content: bytes, with_records: bool = False) -> list[Part]:
    return list(dissect(*disk(path, content), with_records))


def files(contents: dict[str, bytes]) -> list[str]:
    return [path for path in contents if not path.endswith(("/lock", ".spare", ".tmp"))]


@pytest.mark.parametrize(("contents", "path"), [(each, path) for each in (CLOSED, OPEN) for path in files(each)])
def test_the_parts_are_the_whole_file_and_all_of_it_is_understood(contents: dict[str, bytes], path: str) -> None:
    found = parts(path, contents[path])
    at = 0
    for part in found:
        assert part.offset == at
        at += part.size_bytes
    assert at == len(contents[path])
    assert {part.kind for part in found} <= {kind.name for kind in Kind} | {ZEROS}
    assert found[0].kind == "FILE_HEADER" and found[0].about is not None and "salt" in found[0].about
    assert [part for part in found if "what" in (part.about or {}) and part.kind != ZEROS] == []


def test_records_are_shown_with_tag_and_mark() -> None:
    records = [
        json.loads(text)
        for contents in (OPEN, CLOSED)
        for path in files(contents)
        for part in parts(path, contents[path], with_records=True)
        for text in part.records or ()
    ]
    assert records and all({"$seq", "$ts", "data"} <= record.keys() for record in records)
    assert any("$tag" in record for record in records)
    assert any(record.get("deleted") for record in records)
    assert not any(part.records for path in files(CLOSED) for part in parts(path, CLOSED[path]))


@pytest.mark.parametrize("path", [path for path in files(CLOSED) if "/wal/" not in path])
def test_a_changed_byte_hides_one_frame_and_no_other(path: str) -> None:
    whole = parts(path, CLOSED[path])
    # Without its header an index tells nothing, and need not: it is derived.
    for victim in whole[1:] if path.endswith(".idx") else whole:
        content = bytearray(CLOSED[path])
        content[victim.offset + 9] ^= 0x10
        found = parts(path, bytes(content))
        (hole,) = [part for part in found if part.kind == UNREADABLE]
        assert (hole.offset, hole.size_bytes) == (victim.offset, victim.size_bytes)
        assert [part for part in found if part is not hole] == [part for part in whole if part is not victim]


@pytest.mark.parametrize("path", files(CLOSED))
@pytest.mark.parametrize("size", [0, 1, 31, 40])
def test_a_file_that_was_cut_short(path: str, size: int) -> None:
    found = parts(path, CLOSED[path][:size])
    assert [part.kind for part in found] == ([UNREADABLE] if size else [])


def test_a_spare_is_reserved_space() -> None:
    assert [part.kind for part in parts("/data/wal/0.spare", bytes(2048))] == [ZEROS]


def test_a_name_that_is_none_of_ours() -> None:
    with pytest.raises(InvalidRequest, match=r"expected a name that ends in \.wal"):
        list(dissect(FakeDisk(), "/etc/passwd"))


@pytest.mark.parametrize("kind", [*Kind, 99])
def test_a_whole_frame_that_says_nothing_to_us_is_shown_as_such(kind: int) -> None:
    """Whatever its body is: a value of another kind, one without an end, or one that is far too deep."""
    header = header_frame(FileHeader(FORMAT_VERSION, 1, 1, 0, 1, 1, 0, False, 7, "boot", 0))
    deep = b"\x91" * 100_000 + b"\xc0"
    for body in (b"\x01", b"\xc0", b"\x93\x01\x02", b"\x81\xa1a" + deep, deep, b"\x01\0\0\0k" + deep, b"\xff" * 40):
        content = b"".join([*header, *frame.build(kind, 1, 2, 0, [body], 7)])
        first, *rest = parts("/data/wal/0-0000000001.wal", content, with_records=True)
        assert first.kind == "FILE_HEADER" and rest[0].about is not None
        if body is deep and kind not in (Kind.SYNC_MARK, Kind.REMOVE, Kind.BLOCK_TABLE, Kind.TAG_TABLE):
            assert str(rest[0].about["what"]).startswith("not understood: ")


def test_what_came_with_records_is_shown() -> None:
    rig = Rig()
    rig.configure("capped", cap_records=2)
    rig.write("capped", 1, 2, 3)
    rig.write("produced", 1, key=ProducerKey("p1", 7, 9))
    rig.configure("jobs", type="queue")
    waiting = named_waits([None, 60_000], [None, None])
    rig.driver.do(Stage("s", "jobs", Records.of([{"data": 0}, {"data": 1}]), waits=waiting))
    contents = rig.disk.kill().contents()
    shown = [
        part.about
        for path in files(contents)
        for part in parts(path, contents[path])
        if part.kind == Kind.APPENDED.name and part.about is not None
    ]
    assert [about["producer"] for about in shown if "producer" in about] == [["p1", 7, 9]]
    assert [(about["low"], about["evict_floor"]) for about in shown if "low" in about] == [(2, 2)]
    assert [bytes.fromhex(str(about["waits"])) for about in shown if "waits" in about] == [waiting]
