"""What fuzzing has found, each as the smallest thing that shows it. The inputs themselves are in the corpus."""

from __future__ import annotations

import struct
import tarfile

import msgspec
import pytest

from proof.fuzz.targets import credentials, http, stored
from proof.fuzz.targets.stored import KEY, SALT, disk_with, framed
from tests.engine.rig import Rig
from topics.client import pages
from topics.client.connection import Answer
from topics.client.refusal import refusal
from topics.core import block as blocks
from topics.core.encoded import EncodedRecords
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID
from topics.engine.recovery import recover
from topics.errors import Damaged, Forbidden, Internal, Unauthorized
from topics.storage import archive, segmentfile, snapshot
from topics.storage.archive import Archive
from topics.storage.commitlog import Covered
from topics.storage.frame import Kind
from topics.storage.snapshot import SnapshotStore
from topics.storage.tagtable import TagTable
from topics.storage.wal import WalSettings
from topics.storage.walfile import file_name
from topics.storage.walrecovery import WalRecovery
from topics.testing.clock import SimClock
from topics.wire.queue import decode_plain_ack
from topics.wire.wscommand import request_id_of


@pytest.mark.parametrize("log_id", [META_LOG_ID, 1])
def test_a_fact_that_says_nothing_to_us_is_damage_by_name(log_id: int) -> None:
    rig = Rig()
    rig.configure("t")
    rig.engine.add(Outcome(None, facts=[StoredFact(log_id, False, [b"\xc0"])], must_sync=True))
    rig.work()
    disk = rig.disk.kill()
    with pytest.raises(Damaged, match=f"of log {log_id} is whole, but cannot be read") as caught:
        recover(disk, "/data", rig.clock, lambda: 1, rig.options, None)
    assert caught.value.detail["log_id"] == log_id


def test_a_trimmed_frame_that_cannot_be_decoded() -> None:
    data = stored.WAL_HEADER + framed(Kind.TRIMMED, b"\x05")

    def recovery(salvage: bool) -> WalRecovery:
        disk = disk_with(file_name(0, 1), data)
        return WalRecovery(disk, stored.DIRECTORY, WalSettings(), SimClock(), lambda: SALT, Covered(), 0, salvage)

    with pytest.raises(Damaged, match="cannot be decoded"):
        list(recovery(salvage=False).replay())
    saving = recovery(salvage=True)
    assert list(saving.replay()) == [] and len(saving.losses) == 1


@pytest.mark.parametrize(
    "part",
    [
        framed(Kind.SECTION, b"\xc0", position=0),
        framed(Kind.SECTION, msgspec.msgpack.encode({"log_id": 1}), position=0),
        framed(Kind.BLOCK, b"short", position=5),
        framed(Kind.BLOCK, stored.BLOCK + b"more", position=5, trailing=b"\0\0"),
    ],
)
def test_a_part_of_a_segment_that_is_whole_and_no_part(part: bytes) -> None:
    head = framed(Kind.FILE_HEADER, msgspec.msgpack.encode(segmentfile.DataHeader(1, 1, SALT, 5)), 0, 0)
    good = framed(Kind.SECTION, msgspec.msgpack.encode(KEY), position=0) + framed(
        Kind.BLOCK, stored.BLOCK, position=5, trailing=b"\0\0"
    )
    end = framed(Kind.FILE_END, msgspec.msgpack.encode(segmentfile.DataEnd(1, SALT, 1, 1, 2)), 0, 0)
    view = memoryview(head + part + good + end)
    with pytest.raises(Damaged):
        segmentfile.verify("a", view, 1)
    damages: list[Damaged] = []
    assert len(list(segmentfile.scan("a", view, 1, damages.append))) == 1, "what is behind it is kept"
    assert damages


def test_an_end_of_a_segment_that_is_none() -> None:
    head = framed(Kind.FILE_HEADER, msgspec.msgpack.encode(segmentfile.DataHeader(1, 1, SALT, 5)), 0, 0)
    with pytest.raises(Damaged, match="no end of a segment"):
        segmentfile.verify("a", memoryview(head + framed(Kind.FILE_END, b"\xc0", 0, 0)), 1)


def test_an_entry_of_a_snapshot_that_is_none() -> None:
    begin = stored.SNAPSHOT.index(framed(Kind.PUT, struct.pack("<I", 3) + b"t/a" + b"value", log_id=0, position=0))
    for body in (b"x", struct.pack("<I", 99) + b"k"):
        data = stored.SNAPSHOT[:begin] + framed(Kind.PUT, body, log_id=0) + stored.SNAPSHOT[begin:]
        disk = disk_with(f"{1:012d}{snapshot.BASE_SUFFIX}", data)
        with pytest.raises(Damaged):
            SnapshotStore(disk, stored.DIRECTORY, SimClock(), lambda: SALT).load()
        state, damages = SnapshotStore(disk, stored.DIRECTORY, SimClock(), lambda: SALT).salvage()
        assert state == {b"t/a": b"value", b"m": b"v"} and damages


def test_blocks_and_tables_whose_lengths_do_not_add_up() -> None:
    for body in (stored.BLOCK[:-1], stored.BLOCK + b"x"):
        with pytest.raises(ValueError, match="block of"):
            blocks.parse(body)
        with pytest.raises(ValueError, match="block of"):
            EncodedRecords.parse(body)
    timed = bytearray(stored.BLOCK)
    timed[20] |= blocks.HAS_TS
    with pytest.raises(ValueError, match="one timestamp"):
        EncodedRecords.parse(bytes(timed))
    for table in (struct.pack("<IIQ", 0, 3, 0), struct.pack("<IIQ", 0, 8, 2**63)):
        with pytest.raises(ValueError):
            TagTable(memoryview(table), 1)


def test_a_file_of_an_archive_with_fewer_bytes_than_none() -> None:
    """It was read for ever."""
    info = tarfile.TarInfo(archive.MANIFEST_NAME)
    info.size, info.mode = -5, 0o640
    opened = Archive(disk_with("a", info.tobuf(tarfile.GNU_FORMAT)), stored.PATH)
    with pytest.raises(Damaged, match="not as a backup writes it"):
        opened.manifest()


def test_what_follows_an_answer_does_not_change_it() -> None:
    answer = b"HTTP/1.1 204 x\r\nX-A: 1\r\n\r\n"
    found = http.answer_of([answer + b"HTTP/1.1 200 x\r\nX-B: 2\r\n\r\n"])
    assert isinstance(found, Answer) and found.headers == {"x-a": "1"}


def test_what_a_server_says_and_no_client_understands() -> None:
    for text in (b'{"topic":"\xe7"}', b"{", b'{"records":%b}' % (b"[" * 5_000)):
        with pytest.raises(Internal):
            pages.parse_frame(text)
    deep = b'{"error":{"code":"c","message":"m","detail":%b1%b}}' % (b'{"a":' * 5_000, b"}" * 5_000)
    assert isinstance(refusal(Answer(500, {}, deep)), Internal)


def test_an_ack_whose_node_is_no_text() -> None:
    """It ended all acks of its turn with an error of its own."""
    assert decode_plain_ack(b'{"node":"\xda"') is None


def test_a_cookie_that_is_nested_too_deep() -> None:
    """Whoever sent it was answered that the server has a defect, before anybody was let in."""
    request = credentials.request_of(b"topics_session=%b.YQ.YQ" % credentials.DEEP.encode())
    with pytest.raises(Unauthorized):
        credentials.SESSIONS.owner(request)


def test_an_origin_that_is_no_address() -> None:
    request = credentials.request_of(f"topics_session={credentials.ACCESS}\nhttp://[\n{credentials.CSRF}".encode())
    with pytest.raises(Forbidden, match="pages of this server only"):
        credentials.SESSIONS.owner(request)


def test_a_binary_message_whose_name_is_no_text() -> None:
    """It ended the handler of the connection with an error of its own."""
    assert request_id_of(b'{"request_id":"\xff"}') is None
