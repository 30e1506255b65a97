from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from tests.storage.walrig import DIRECTORY, SMALL, Rig, entry, flat
from topics.errors import LogStopped
from topics.storage import frame, walshard
from topics.storage.commitlog import Covered
from topics.storage.frame import Kind
from topics.storage.walscan import ScannedFile, open_file, valid_frames
from topics.storage.walshard import SMALL_SYNC_BYTES, ZEROS
from topics.testing import FakeDisk, FaultFs


def header_of(rig: Rig, number: int) -> ScannedFile:
    return open_file(rig.fs, f"{DIRECTORY}/0-{number:010d}.wal", 0, number, salvage=False)[0]


def test_a_full_file_is_followed_by_another() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    for _ in range(100):
        rig.add(0, b"x" * 300)
        rig.wal.work()
    assert rig.wal.metrics(0).rotations == len(rig.files()) - 1 >= 4
    assert all(header_of(rig, 1 + n).size <= SMALL.file_bytes for n in range(len(rig.files())))
    rig.wal.close()
    rig.recover()
    assert rig.replayed == flat([entry(0, position, b"x" * 300) for position in range(1, 101)])


def test_one_batch_may_fill_several_files() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    for _ in range(100):
        rig.add(0, b"x" * 300)
    rig.wal.work()
    assert rig.wal.metrics(0).batches == 1
    assert len(rig.files()) >= 4
    rig.fs = rig.fs.crash("lost")
    rig.recover()
    assert len(rig.replayed) == 100


def test_a_frame_larger_than_a_file_gets_one_of_its_own_size() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    sizes = [10, 5 * SMALL.file_bytes, 10]
    for size in sizes:
        rig.add(0, b"x" * size)
    rig.wal.work()
    assert [header_of(rig, n).size > SMALL.file_bytes for n in (1, 2, 3)] == [False, True, False]
    rig.wal.close()
    rig.recover()
    assert [len(body) for _, _, body in rig.replayed] == sizes


@pytest.mark.parametrize("body_bytes", range(7900, 8000, 3))
def test_a_frame_fits_exactly_or_goes_to_the_next_file(body_bytes: int) -> None:
    rig = Rig(FakeDisk(), settings=replace(SMALL, file_bytes=8192 + 1024))
    rig.start()
    rig.add(0, b"x" * body_bytes)
    rig.add(0, b"y")
    rig.wal.close()
    rig.recover()
    assert [len(body) for _, _, body in rig.replayed] == [body_bytes, 1]


def test_sealing_needs_no_more_disk_space_than_was_reserved() -> None:
    disk = FakeDisk()
    rig = Rig(disk)
    rig.start()
    disk.set_capacity(SMALL.file_bytes)
    while rig.wal.metrics(0).bytes_written < 6000:
        rig.add(0, b"x" * 100)
        rig.wal.work()
    rig.wal.close()
    assert rig.recover().torn == []


def test_a_disk_too_full_for_the_next_file_stops_the_shard_only_when_it_is_needed() -> None:
    disk = FakeDisk()
    rig = Rig(disk)
    rig.start()
    disk.set_capacity(SMALL.file_bytes + 100)
    while not rig.heard.errors:
        rig.add(0, b"x" * 100)
        rig.wal.work()
    metrics = rig.wal.metrics(0)
    assert metrics.spare_failures >= 1
    assert 6000 < metrics.bytes_written < SMALL.file_bytes
    assert metrics.read_only and "No space" in metrics.last_error
    error = rig.heard.errors[0]
    assert isinstance(error, OSError) and error.errno == errno.ENOSPC
    rest = Rig(disk.crash("lost"))
    rest.recover()
    assert len(rest.replayed) >= rig.heard.upto("synced") > 0


def test_the_next_file_is_reserved_ahead_of_time() -> None:
    fs = FaultFs(FakeDisk())
    rig = Rig(fs)
    rig.start()
    for _ in range(30):
        rig.add(0, b"x" * 200)
        rig.wal.work()
        if fs.exists(f"{DIRECTORY}/0.spare"):
            break
    assert rig.wal.metrics(0).rotations == 0
    assert 0 < rig.wal.metrics(0).bytes_written < SMALL.file_bytes * 3 // 4
    creations = sum(call.name == "open" and call.path.endswith(".spare") for call in fs.calls)
    while rig.wal.metrics(0).rotations == 0:
        rig.add(0, b"x" * 200)
        rig.wal.work()
    assert sum(call.name == "open" and call.path.endswith(".spare") for call in fs.calls) == creations


def test_only_files_whose_logs_are_all_covered_are_trimmed_and_only_from_the_oldest_on() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    rig.add(9)
    for _ in range(90):
        rig.add(0, b"x" * 300)
    rig.wal.work()
    before = rig.files()
    rig.wal.trim(Covered({0: 90}), 1)
    rig.wal.work()
    assert rig.files() == before, "log 9 in the first file is not covered"
    rig.wal.trim(Covered({0: 50, 9: 1}), 2)
    rig.wal.work()
    assert rig.files() == before[2:]
    rig.wal.trim(Covered({0: 90, 9: 1}), 3)
    rig.wal.work()
    assert rig.files() == before[-1:]
    assert rig.wal.metrics(0).files_trimmed == len(before) - 1
    rig.wal.close()
    rig.recover(Covered({0: 80, 9: 1}), 3)
    assert [position for _, position, _ in rig.replayed] == list(range(81, 91))


def test_a_trim_is_durable_before_its_files_are_deleted() -> None:
    """If the note were lost and the deletion were not, the missing files would look like damage."""
    fs = FaultFs(FakeDisk())
    rig = Rig(fs)
    rig.start()
    for _ in range(100):
        rig.add(0, b"x" * 300)
    rig.wal.work()
    already = len(fs.calls)
    rig.wal.trim(Covered({0: 100}), 1)
    rig.wal.work()
    names = [call.name for call in fs.calls[already:]]
    assert names.index("write_at") < names.index("sync") < names.index("unlink") < names.index("sync_dir")


def test_a_trim_with_no_room_left_in_the_file_rotates() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    snapshot_no = 0
    while rig.wal.metrics(0).rotations == 0:
        snapshot_no += 1
        rig.wal.trim(Covered(), snapshot_no)
        rig.wal.work()
    assert snapshot_no > 10
    rig.wal.close()
    assert rig.recover(Covered(), snapshot_no).torn == []


def test_a_failed_deletion_stops_the_shard() -> None:
    fs = FaultFs(FakeDisk())
    rig = Rig(fs)
    rig.start()
    for _ in range(100):
        rig.add(0, b"x" * 300)
    rig.wal.work()
    fs.fail("unlink", errno.EROFS, path="*.wal")
    rig.wal.trim(Covered({0: 100}), 1)
    rig.wal.work()
    assert isinstance(rig.heard.errors[0], OSError)
    with pytest.raises(LogStopped):
        rig.add(0)


def test_reading_goes_on_while_files_come_and_go() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    for _ in range(100):
        rig.add(0, b"x" * 300)
    rig.wal.work()
    reading = rig.wal.read(0, 1)
    assert next(reading).position == 1
    rig.wal.trim(Covered({0: 60}), 1)
    for _ in range(100):
        rig.add(0, b"x" * 300)
    rig.wal.work()
    positions = [e.position for e in reading]
    assert positions == sorted(set(positions)) and positions[-1] == 100


def test_reading_looks_only_into_files_that_have_the_log() -> None:
    fs = FaultFs(FakeDisk())
    rig = Rig(fs)
    rig.start()
    for log_id in (0, 1, 0, 1):
        rig.add(log_id, b"%d" % log_id * (SMALL.file_bytes // 2))
        rig.wal.work()
    files = rig.files()
    assert len(files) == 4
    del fs.calls[:]
    assert [e.position for e in rig.wal.read(0, 2)] == [2]
    assert [call.path for call in fs.calls if call.name == "map"] == [files[2], files[3]]


def test_a_file_that_nobody_has_trimmed_and_that_is_gone_is_an_error() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    for _ in range(3):
        rig.add(0, b"x" * SMALL.file_bytes)
        rig.wal.work()
    first = rig.files()[1]
    rig.fs.unlink(first)
    reading = rig.wal.read(0, 1)
    with pytest.raises(FileNotFoundError, match=first):
        list(reading)


def test_a_large_batch_is_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walshard, "WRITE_BYTES_MAX", 1000)
    fs = FaultFs(FakeDisk())
    rig = Rig(fs)
    rig.start()
    del fs.calls[:]
    for _ in range(5):
        rig.add(0, b"x" * 600, sync=False)
    rig.wal.work()
    assert [call.name for call in fs.calls] == ["write_at"] * 3
    rig.wal.close()
    rig.recover()
    assert rig.replayed == flat([entry(0, position, b"x" * 600) for position in range(1, 6)])


def test_every_frame_says_how_much_was_synced_before_it() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    header = header_of(rig, 1)
    for sync in (False, True, True):
        rig.add(0, sync=sync)
        rig.wal.work()
    first, second, mark, third, last_mark = valid_frames(rig.fs.map(header.path).view, header.first, header.salt)
    assert [found.kind for found in (first, mark, last_mark)] == [Kind.FACT, Kind.SYNC_MARK, Kind.SYNC_MARK]
    assert first.offset == first.mark == second.mark == header.first
    assert mark.mark == mark.offset == third.mark
    assert last_mark.mark == last_mark.offset


def test_a_mark_never_counts_a_sync_that_failed() -> None:
    fs = FaultFs(FakeDisk())
    rig = Rig(fs)
    rig.start()
    header = header_of(rig, 1)
    fs.fail("sync", path="*.wal")
    rig.add(0)
    rig.wal.work()
    assert {found.mark for found in valid_frames(fs.map(header.path).view, header.first, header.salt)} == {header.first}


def test_an_erasing_trim_leaves_no_byte_of_what_is_covered() -> None:
    disk = FakeDisk()
    rig = Rig(disk)
    rig.start()
    rig.add(0, b"secret" * 2000)
    rig.add(1, b"secret")
    rig.wal.work()
    told: list[Exception | None] = []
    rig.wal.trim(Covered({0: 1, 1: 1}), 1, erase=True, done=told.append)
    assert told == []
    rig.wal.work()
    assert told == [None]
    assert not [path for path, data in disk.contents().items() if b"secret" in data]
    rig.add(1, b"kept")
    rig.wal.work()
    rig.recover(Covered({0: 1, 1: 1}), 1)
    assert rig.replayed == flat([entry(1, 2, b"kept")])


def test_a_trim_that_comes_before_an_erasing_one_is_done_does_not_undo_the_wish() -> None:
    disk = FakeDisk()
    rig = Rig(disk)
    rig.start()
    rig.add(0, b"secret")
    rig.wal.work()
    told: list[Exception | None] = []
    rig.wal.trim(Covered({0: 1}), 1, erase=True, done=told.append)
    rig.wal.trim(Covered({0: 1}), 2, done=told.append)
    rig.wal.work()
    assert told == [None, None]
    assert not [path for path, data in disk.contents().items() if b"secret" in data]


def test_a_trim_of_a_stopped_or_closed_shard_says_so() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    rig.wal.close()
    told: list[Exception | None] = []
    rig.wal.trim(Covered(), 1, done=told.append)
    assert [type(error) for error in told] == [LogStopped]
    fs = FaultFs(FakeDisk())
    rig = Rig(fs)
    rig.start()
    fs.fail("sync", path="*.wal")
    rig.wal.trim(Covered(), 1, done=told.append)
    rig.wal.work()
    assert isinstance(told[1], OSError)


def test_room_is_what_entries_take_with_their_frames() -> None:
    rig = Rig(FakeDisk())
    wal = rig.start()
    files = wal._committers[0].files
    free = files.active.capacity - files.active.end
    assert files.has_room(free - 100, 1)
    assert not files.has_room(free - frame.OVERHEAD_BYTES, 1)
    count = 0
    while files.has_room(10, 1):
        rig.add(0, b"0123456789")
        wal.work()
        count += 1
    assert count > 20 and wal.metrics(0).rotations == 0


def test_small_syncs_find_zeros_ahead_and_leave_the_file_as_long_as_it_was() -> None:
    fs = FaultFs(FakeDisk())
    rig = Rig(fs, settings=replace(SMALL, file_bytes=8 * len(ZEROS)))
    wal = rig.start()
    active = wal._committers[0].files.active
    size = active.file.size()
    writes: list[str] = []
    fs.on_call = lambda call: writes.append(call.path) if call.name == "write_at" else None
    for _ in range(100):
        rig.add(0, b"x" * 1000)
        wal.work()
        assert active.end <= active.zeroed <= active.end + len(ZEROS) + SMALL_SYNC_BYTES
    marks = 100
    assert len(writes) == 100 + marks + 1, "a hundred syncs, and zeros once"
    zeroed = active.zeroed
    rig.add(0, b"x" * (active.zeroed - active.end))
    wal.work()
    assert active.zeroed == zeroed, "not for a sync that covers much"
    assert active.file.size() == size
    wal.close()
    assert fs.open(active.path, "read").size() == active.end, "nothing behind the end of a sealed file"
    rig.recover()
    assert len(rig.replayed) == 101


def test_a_sealed_file_ends_with_its_end() -> None:
    rig = Rig(FakeDisk(), settings=replace(SMALL, file_bytes=8 * len(ZEROS)))
    wal = rig.start()
    active = wal._committers[0].files.active
    rig.add(0, b"x" * 2 * SMALL_SYNC_BYTES)
    wal.work()
    assert not active.zeroed
    wal.close()
    assert rig.fs.open(active.path, "read").size() == active.end


def test_zeros_never_reach_beyond_the_file() -> None:
    rig = Rig(FakeDisk())
    wal = rig.start()
    for _ in range(60):
        rig.add(0, b"x" * 300)
        wal.work()
        active = wal._committers[0].files.active
        assert active.zeroed <= active.capacity < active.file.size()
    assert wal.metrics(0).rotations >= 2
    wal.close()
    rig.recover()
    assert len(rig.replayed) == 60
