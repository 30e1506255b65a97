from __future__ import annotations

import gzip
import shutil
import subprocess
import tarfile
from pathlib import Path

import msgspec
import pytest

from topics.errors import Damaged, InvalidRequest, NotUnderstood
from topics.storage.archive import (
    CHUNK_BYTES,
    END,
    FORMAT_VERSION,
    MANIFEST_BYTES_MAX,
    MANIFEST_NAME,
    Archive,
    ArchiveWriter,
    Manifest,
    check_level,
    gathered,
    gzipped,
)
from topics.storage.fs import RealFs
from topics.testing import FakeDisk

FILES = {
    "wal/0-0000000001.wal": b"log",
    "snapshots/000000000001.base": b"",
    "segments/000000000001.idx": bytes(512),
    "segments/000000000001.data": b"records" * 100,
}
MANIFEST = Manifest(
    format=FORMAT_VERSION, program="topics 1", created_ms=5, snapshot_no=1, files=4, bytes=1000, positions={"0": 3}
)


def written(files: dict[str, bytes] | None = None, manifest: bytes | None = None) -> bytes:
    writer = ArchiveWriter(1_700_000_000)
    head = msgspec.json.encode(MANIFEST) if manifest is None else manifest
    pieces = [*writer.member(MANIFEST_NAME, len(head), [head])]
    for name, content in (FILES if files is None else files).items():
        pieces += writer.member(name, len(content), [content[:5], content[5:]])
    return b"".join([*pieces, *writer.end()])


def read(archive: bytes) -> tuple[Manifest, dict[str, bytes]]:
    disk = FakeDisk()
    file = disk.open("/a.tar", "create")
    file.write_at(0, [archive])
    found = Archive(disk, "/a.tar")
    try:
        return found.manifest(), {name: b"".join(chunks) for name, _, chunks in found.members()}
    finally:
        found.close()


def damage(archive: bytes) -> Damaged:
    with pytest.raises(Damaged) as raised:
        read(archive)
    assert raised.value.detail["file"] == "/a.tar" and raised.value.message.startswith("/a.tar offset ")
    return raised.value


@pytest.mark.parametrize("level", [0, 1, 9])
def test_what_is_written_is_read(level: int) -> None:
    archive = b"".join(gzipped([written()], level))
    assert read(archive) == (MANIFEST, FILES)
    assert (archive[:2] == b"\x1f\x8b") == bool(level)


def test_files_larger_than_a_chunk() -> None:
    files = {"segments/1.data": bytes(range(256)) * (CHUNK_BYTES // 100)}
    assert read(written(files))[1] == files
    assert read(gzip.compress(written(files)))[1] == files


def test_members_that_nobody_reads_are_checked_all_the_same() -> None:
    disk = FakeDisk()
    archive = bytearray(written())
    archive[archive.index(b"recordsrecords")] ^= 1
    disk.open("/a.tar", "create").write_at(0, [archive])
    found = Archive(disk, "/a.tar")
    found.manifest()
    with pytest.raises(Damaged, match=r"segments/000000000001\.data has the SHA-256"):
        list(found.members())


def test_no_byte_can_change_unnoticed() -> None:
    archive = written()
    for at in range(len(archive)):
        changed = bytearray(archive)
        changed[at] ^= 0x21
        damage(bytes(changed))


def test_no_byte_of_a_compressed_one_can_change_its_contents() -> None:
    """Some bytes of the gzip header mean nothing; all others are noticed."""
    archive = gzip.compress(written(), mtime=0)
    for at in range(len(archive)):
        changed = bytearray(archive)
        changed[at] ^= 0x21
        if at in range(4, 10):
            assert read(bytes(changed)) == (MANIFEST, FILES)
        else:
            damage(bytes(changed))


@pytest.mark.parametrize("compressed", [False, True])
def test_it_is_whole_or_refused(compressed: bool) -> None:
    archive = gzip.compress(written()) if compressed else written()
    for length in range(len(archive)):
        damage(archive[:length])
    damage(archive + b"\0")


def test_a_refusal_says_what_is_missing_and_where() -> None:
    archive = written()
    cut = archive.index(b"recordsrecords") + 10
    found = damage(archive[:cut])
    assert "ends in the middle of segments/000000000001.data" in found.message and found.detail["offset"] == cut
    found = damage(gzip.compress(archive)[:-4])
    assert "after decompression" in found.message


@pytest.mark.parametrize(
    "name", ["../escape", "/etc/passwd", "wal/../../x", "segments/a/b", "other/1", "segments/", "lock", "wal/.hidden"]
)
def test_other_names_are_refused(name: str) -> None:
    assert "which no backup does" in damage(written({name: b"x"})).message


def test_a_name_that_comes_twice_is_refused() -> None:
    writer = ArchiveWriter(0)
    head = msgspec.json.encode(MANIFEST)
    pieces = [*writer.member(MANIFEST_NAME, len(head), [head])]
    for _ in range(2):
        pieces += writer.member("wal/1", 1, [b"x"])
    assert "wal/1 twice" in damage(b"".join([*pieces, *writer.end()])).message


def test_a_missing_file_is_noticed() -> None:
    archive = written()
    start = archive.index(b"segments/000000000001.idx")
    without = archive[:start] + archive[start + 1024 :]
    assert "SHA256SUMS has segments/000000000001.idx where the archive has" in damage(without).message


def test_one_without_checksums_is_refused() -> None:
    archive = written()
    at = archive.rindex(b"SHA256SUMS")
    assert "ends without SHA256SUMS" in damage(archive[:at] + END).message


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"hello" * 500, b"\x1f\x8b" + b"x" * 600])
def test_what_is_no_backup_is_refused(content: bytes) -> None:
    damage(content)


def test_a_tar_of_other_things_is_refused() -> None:
    writer = ArchiveWriter(0)
    pieces = [*writer.member("wal/1", 1, [b"x"]), *writer.end()]
    assert "this is no backup" in damage(b"".join(pieces)).message


def test_a_later_format_is_refused_by_its_number() -> None:
    with pytest.raises(NotUnderstood, match=r"^/a\.tar is in backup format 2; this program reads format 1; .*it"):
        read(written(manifest=b'{"format":2,"other":true}'))


@pytest.mark.parametrize("manifest", [b"{", b"[]", b'{"format":1}', b"{}"])
def test_a_manifest_that_cannot_be_read_is_refused(manifest: bytes) -> None:
    assert "cannot be read" in damage(written(manifest=manifest)).message


def test_a_manifest_that_would_fill_the_memory_is_refused_by_its_length() -> None:
    writer = ArchiveWriter(0)
    pieces = writer.member(MANIFEST_NAME, MANIFEST_BYTES_MAX + 1, [b"{}"])
    assert f"its {MANIFEST_NAME} would have {MANIFEST_BYTES_MAX + 1} bytes" in damage(next(iter(pieces))).message


def test_a_file_that_changes_its_length_is_noticed_by_the_writer() -> None:
    with pytest.raises(Damaged, match="has 3 bytes where it had 4"):
        list(ArchiveWriter(0).member("wal/1", 4, [b"abc"]))


@pytest.mark.parametrize("level", [-1, 10])
def test_a_level_is_from_0_to_9(level: int) -> None:
    assert [check_level(each) for each in (0, 9)] == [0, 9]
    with pytest.raises(InvalidRequest):
        check_level(level)


def test_compression_hands_on_no_empty_pieces() -> None:
    pieces = list(gzipped([b"a", b"b", b"c"], 6))
    assert all(pieces) and gzip.decompress(b"".join(pieces)) == b"abc"


def test_small_pieces_are_joined() -> None:
    assert list(gathered([b"a", b"b", b"cd", b"e"], 3)) == [b"abcd", b"e"]
    assert list(gathered([], 3)) == []


def test_the_tools_of_the_system_understand_it(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(written())
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert tar.getnames() == [MANIFEST_NAME, *FILES, "SHA256SUMS"]
        for member in tar:
            content = tar.extractfile(member)
            assert content is not None
            (tmp_path / member.name).parent.mkdir(exist_ok=True)
            (tmp_path / member.name).write_bytes(content.read())
    checker = shutil.which("sha256sum")
    if checker is None:
        pytest.skip("sha256sum is not installed here")
    done = subprocess.run([checker, "-c", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count(": OK") == len(FILES) + 1


def test_progress_tells_every_byte_of_the_file(tmp_path: Path) -> None:
    for archive in (written(), gzip.compress(written())):
        (tmp_path / "a.tar").write_bytes(archive)
        told: list[int] = []
        found = Archive(RealFs(), str(tmp_path / "a.tar"), told.append)
        found.manifest()
        list(found.members())
        found.close()
        assert sum(told) == len(archive)
