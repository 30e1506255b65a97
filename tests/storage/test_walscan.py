from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.storage.walrig import DIRECTORY, Rig
from topics.errors import Damaged
from topics.storage import frame
from topics.storage.commitlog import Covered
from topics.storage.frame import Kind
from topics.storage.fs import FileSystem
from topics.storage.walfile import file_name, read_header
from topics.storage.walrecovery import LastStop
from topics.storage.walscan import SEARCH_STEP_BYTES, nonzero_end, read_entries, valid_frames
from topics.testing import FakeDisk

FIRST = f"{DIRECTORY}/{file_name(0, 1)}"
SECOND = f"{DIRECTORY}/{file_name(0, 2)}"


def contents(fs: FileSystem, path: str) -> bytes:
    return bytes(fs.map(path).view)


def with_bytes(change: dict[str, bytes]) -> Rig:
    """A rig on a disk that holds exactly these files."""
    disk = FakeDisk()
    disk.make_dir(DIRECTORY)
    for path, data in change.items():
        disk.open(path, "create").write_at(0, [data])
    return Rig(disk)


def spans(data: bytes) -> list[tuple[int, int, int]]:
    """(kind, offset, offset behind the checksum) of every frame, the header first."""
    view = memoryview(data)
    header, first = read_header(view, "", 0, data_number(view))
    found = [(int(Kind.FILE_HEADER), 0, next(valid_frames(view, 0, 0)).end)]
    return found + [(f.kind, f.offset, f.end) for f in valid_frames(view, first, header.salt)]


def data_number(view: memoryview) -> int:
    for number in (1, 2, 3):
        try:
            read_header(view, "", 0, number)
        except Damaged:
            continue
        return number
    raise AssertionError("no header")


@pytest.fixture
def closed() -> Rig:
    """A WAL of one file that was stopped cleanly: two logs, and a body that needs padding."""
    rig = Rig(FakeDisk())
    rig.start()
    for log_id, body in ((0, b"first"), (1, b"x" * 30), (0, b""), (0, b"last")):
        rig.add(log_id, body)
        rig.wal.work()
    rig.wal.close()
    return rig


@pytest.fixture
def open_ended() -> Rig:
    """A WAL of one file without an end: three synced entries, their mark, and two that were only written."""
    rig = Rig(FakeDisk())
    rig.start()
    for body in (b"one", b"two", b"three"):
        rig.add(0, body)
    rig.wal.work()
    for body in (b"four", b"five"):
        rig.add(0, body, sync=False)
    rig.wal.work()
    return rig


def flips(data: bytes) -> list[tuple[int, bytes]]:
    return [(at, data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]) for at in range(len(data))]


def test_every_flipped_byte_of_a_closed_file_is_detected_or_harmless(closed: Rig) -> None:
    data = contents(closed.fs, FIRST)
    closed.recover()
    whole = closed.replayed
    frames = spans(data)
    end_kind, end_at, end_upto = frames[-1]
    assert end_kind == Kind.FILE_END and len(whole) == 4
    for at, flipped in flips(data):
        rig = with_bytes({FIRST: flipped})
        if not any(start <= at < end for _, start, end in frames):
            rig.recover()
            assert rig.replayed == whole, f"padding at {at}"
        elif end_at <= at < end_upto:
            # The end mark itself holds no entry: it is missed and reported, and nothing is lost.
            recovery = rig.recover()
            assert rig.replayed == whole
            assert [(torn.file, torn.offset) for torn in recovery.torn] == [(FIRST, end_at)]
        else:
            with pytest.raises(Damaged) as damage:
                rig.recover()
            spoiled = next(start for _, start, end in frames if start <= at < end)
            assert (damage.value.detail["file"], damage.value.detail["offset"]) == (FIRST, spoiled)


def test_damage_names_the_positions_at_risk(closed: Rig) -> None:
    data = bytearray(contents(closed.fs, FIRST))
    entries = [start for kind, start, _ in spans(bytes(data)) if kind == Kind.FACT]
    data[entries[0] + 40] ^= 1
    with pytest.raises(Damaged, match="log 0 positions 1-1") as damage:
        with_bytes({FIRST: bytes(data)}).recover()
    assert damage.value.detail["at_risk"] == ((0, 1, 1),)


def test_below_the_mark_is_damage_and_above_it_a_torn_tail_if_the_power_went(open_ended: Rig) -> None:
    data = contents(open_ended.fs, FIRST)
    frames = spans(data)
    assert [kind for kind, _, _ in frames[1:]] == [Kind.FACT] * 3 + [Kind.SYNC_MARK] + [Kind.FACT] * 2
    synced_upto = frames[4][1]
    written = nonzero_end(memoryview(data), 0)
    for at, flipped in flips(data[:written]):
        spoiled = next((start for _, start, end in frames if start <= at < end), None)
        rig = with_bytes({FIRST: flipped + bytes(100)})
        if spoiled is None:
            rig.recover()
            assert len(rig.replayed) == 5, f"padding at {at}"
        elif spoiled < synced_upto:
            with pytest.raises(Damaged):
                rig.recover()
            rig.fs = rig.fs.crash("kept")
            with pytest.raises(Damaged):
                rig.recover()
        else:
            for end in ("killed", "power lost"):
                rig.fs = rig.fs.kill() if end == "killed" else rig.fs.crash("kept")
                (torn,) = rig.recover().torn
                assert (torn.file, torn.offset) == (FIRST, spoiled)
                assert torn.dropped_bytes == max(written, at + 1) - spoiled
                assert torn.dropped_frames == sum(start > spoiled for _, start, _ in frames)
                assert len(rig.replayed) == sum(kind == Kind.FACT and start < spoiled for kind, start, _ in frames)


def test_bad_bytes_below_what_the_witness_saw_synced_are_damage(open_ended: Rig) -> None:
    open_ended.wal.sync(0)
    open_ended.wal.work()
    frames = spans(contents(open_ended.fs, FIRST))
    spoiled = frames[5][1]
    assert isinstance(open_ended.fs, FakeDisk)
    disk = open_ended.fs.kill()
    file = disk.open(FIRST, "write")
    file.write_at(spoiled + 40, [b"\xff"])
    # The mark that says so is not on the disk yet: the witness alone knows.
    file.write_at(frames[7][1], [bytes(frames[7][2] - frames[7][1])])
    rig = Rig(disk)
    with pytest.raises(Damaged, match=f"offset {spoiled}: .*had synced the first"):
        rig.recover()
    rig.fs = disk.kill(forgetful=True)
    recovery = rig.recover()
    assert recovery.torn[0].offset == spoiled and recovery.last_stop is LastStop.UNKNOWN


def test_a_torn_tail_is_gone_after_a_start_and_not_reported_again(open_ended: Rig) -> None:
    data = contents(open_ended.fs, FIRST)
    last = spans(data)[-1][1]
    rig = with_bytes({FIRST: data[: last + 20] + b"\xff" * 100})
    rig.start()
    assert len(rig.recovery.torn) == 1
    # Zeroed, so that no salvage will ever find the frames that were dropped.
    assert spans(contents(rig.fs, FIRST))[-1][0] == Kind.FILE_END
    assert nonzero_end(rig.fs.map(FIRST).view, 0) <= frame.padded(last + frame.OVERHEAD_BYTES)
    rig.add(0, b"five again")
    rig.wal.work()
    rig.recover()
    assert rig.recover().torn == []
    assert [body for _, _, body in rig.replayed] == [b"one", b"two", b"three", b"four", b"five again"]


@pytest.mark.parametrize("spoil", [lambda data, at: data[:at], lambda data, at: data[:at] + bytes(len(data) - at)])
def test_a_file_with_a_successor_must_be_whole(closed: Rig, spoil: Callable[[bytes, int], bytes]) -> None:
    """Cut off or zeroed from any frame on: without the later file this would pass for the end of the log."""
    closed.start()
    closed.add(1, b"in the second file")
    closed.wal.close()
    first, second = contents(closed.fs, FIRST), contents(closed.fs, SECOND)
    for _, start, _ in spans(first)[1:]:
        with pytest.raises(Damaged, match="file 2 of the shard was begun after it was complete") as damage:
            with_bytes({FIRST: spoil(first, start), SECOND: second}).recover()
        assert damage.value.detail["offset"] == start


def test_a_frame_of_another_file_is_no_frame_of_this_one(closed: Rig) -> None:
    closed.start()
    closed.add(0, b"next")
    closed.wal.work()
    data, other = contents(closed.fs, SECOND), contents(closed.fs, FIRST)
    stale = other[spans(other)[1][1] :]
    at = nonzero_end(memoryview(data), 0)
    at = frame.padded(at)
    rig = with_bytes({FIRST: other, SECOND: data[:at] + stale})
    (torn,) = rig.recover().torn
    assert (torn.offset, torn.dropped_frames) == (at, 0)
    assert len(rig.replayed) == 5


def test_a_renamed_file_is_refused(closed: Rig) -> None:
    with pytest.raises(Damaged, match="says it is file 1 of shard 0"):
        with_bytes({SECOND: contents(closed.fs, FIRST)}).recover()


def test_salvage_goes_on_behind_damage_and_says_what_is_lost(closed: Rig) -> None:
    data = bytearray(contents(closed.fs, FIRST))
    facts = [start for kind, start, _ in spans(bytes(data)) if kind == Kind.FACT]
    data[facts[0] + 33] ^= 1
    data[facts[2] + 33] ^= 1
    rig = with_bytes({FIRST: bytes(data)})
    recovery = rig.recover(salvage=True)
    assert [(log_id, position) for log_id, position, _ in rig.replayed] == [(1, 1), (0, 3)]
    assert [(loss.offset, loss.at_risk) for loss in recovery.losses] == [
        (facts[0], ((0, 1, 2),)),
        (facts[2], ((0, 1, 2),)),
    ]
    with pytest.raises(Damaged, match="a snapshot must cover everything"):
        recovery.start(rig.heard, Covered(), 0, None)
    recovery.start(rig.heard, Covered({0: 3, 1: 1}), 1, None).close()
    rig.recover(Covered({0: 3, 1: 1}), 1)
    assert rig.replayed == []


def test_salvage_reads_a_file_whose_header_is_damaged(closed: Rig) -> None:
    data = contents(closed.fs, FIRST)
    for at, flipped in flips(data[: spans(data)[0][2]]):
        rig = with_bytes({FIRST: flipped + data[spans(data)[0][2] :]})
        recovery = rig.recover(salvage=True)
        assert len(recovery.losses) == 1, at
        assert len(rig.replayed) == 4, at


def test_a_file_without_a_readable_frame_is_lost_whole(closed: Rig) -> None:
    for data in (b"", bytes(1000), b"no WAL" * 100):
        rig = with_bytes({FIRST: data})
        with pytest.raises(Damaged, match="does not begin with a readable WAL file header"):
            rig.recover()
        (loss,) = rig.recover(salvage=True).losses
        assert (loss.file, loss.offset, loss.whole_file) == (FIRST, 0, True)
        assert f"none of its {len(data)} bytes can be read" in loss.message
        assert rig.replayed == []


def test_without_a_readable_header_only_a_gap_shows_that_a_file_is_missing() -> None:
    third, fourth, sixth = (f"{DIRECTORY}/{file_name(0, number)}" for number in (3, 4, 6))
    rig = with_bytes(dict.fromkeys((third, fourth, sixth), bytes(100)))
    losses = [loss for loss in rig.recover(salvage=True).losses if loss.whole_file]
    assert [loss.file for loss in losses] == [third, fourth, sixth, f"{DIRECTORY}/{file_name(0, 5)}"]
    assert "file 5 of shard 0 is missing before 0-0000000006.wal" in losses[-1].message


def written_behind(rig: Rig, kind: Kind, position: int, body: bytes) -> Rig:
    """The WAL of a rig with one more frame at its end, which no writer of ours would write."""
    data = contents(rig.fs, FIRST)
    end_at = spans(data)[-1][1]
    header, _ = read_header(memoryview(data), "", 0, 1)
    return with_bytes({FIRST: data[:end_at] + b"".join(frame.build(kind, 0, position, 0, [body], header.salt))})


def test_a_log_that_goes_back_is_damage(closed: Rig) -> None:
    rig = written_behind(closed, Kind.FACT, 2, b"again")
    with pytest.raises(Damaged, match="log 0 goes back from position 3 to 2; at risk: unknown"):
        rig.recover()
    (loss,) = rig.recover(salvage=True).losses
    assert loss.at_risk == ()
    assert [body for _, _, body in rig.replayed] == [b"first", b"x" * 30, b"", b"last", b"again"]


def test_a_trim_that_says_nothing_to_us_is_damage(closed: Rig) -> None:
    rig = written_behind(closed, Kind.TRIMMED, 0, b"\xc1")
    with pytest.raises(Damaged, match="which files are needed cannot be decoded"):
        rig.recover()
    assert len(rig.recover(salvage=True).losses) == 1
    assert len(rig.replayed) == 4


def test_entries_are_read_as_far_as_they_are_readable(closed: Rig) -> None:
    data = bytearray(contents(closed.fs, FIRST))
    facts = [start for kind, start, _ in spans(bytes(data)) if kind == Kind.FACT]
    header, _ = read_header(memoryview(bytes(data)), "", 0, 1)
    data[facts[2] + 8] ^= 1
    reading = read_entries(with_bytes({FIRST: bytes(data)}).fs, FIRST, header.salt, len(data), 0, 1)
    assert next(reading).position == 1
    with pytest.raises(Damaged, match=f"at offset {facts[2]}: unreadable bytes") as damage:
        next(reading)
    assert damage.value.detail["offset"] == facts[2]


def test_a_frame_in_the_body_of_another_is_no_frame() -> None:
    inner = b"".join(frame.build(Kind.FACT, 1, 1, 0, [b"body"], 5))
    outer = b"".join(frame.build(Kind.FACT, 1, 2, 0, [inner], 5))
    assert [(found.offset, found.position) for found in valid_frames(memoryview(outer + inner), 0, 5)] == [
        (0, 2),
        (len(outer), 1),
    ]


def test_valid_frames_are_found_across_search_steps() -> None:
    one = b"".join(frame.build(Kind.FACT, 1, 1, 0, [b"body"], 5))
    gap = SEARCH_STEP_BYTES - 16
    data = memoryview(bytes(gap) + one + b"\xff" * 8 + one)
    assert [found.offset for found in valid_frames(data, 0, 5)] == [gap, gap + len(one) + 8]
    assert list(valid_frames(data, 0, 6)) == []


def test_nonzero_end() -> None:
    assert nonzero_end(memoryview(bytes(10)), 3) == 3
    assert nonzero_end(memoryview(bytes(10) + b"\x01" + bytes(SEARCH_STEP_BYTES * 2)), 3) == 11
