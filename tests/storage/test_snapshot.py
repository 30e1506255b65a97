from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.samples import SALT, flip, read_bytes, reword
from topics.errors import Damaged, NotUnderstood
from topics.storage import frame, snapshot
from topics.storage.frame import Kind
from topics.storage.fs import FileSystem
from topics.storage.snapshot import FORMAT_VERSION, SnapshotHeader, SnapshotStore
from topics.testing import CRASH_MODES, FakeDisk, FaultFs, MonitorFs, SimClock, SimulatedCrash

DIRECTORY = "/data/snapshots"


def store_on(fs: FileSystem) -> SnapshotStore:
    salts = iter(range(SALT, SALT + 10_000))
    return SnapshotStore(fs, DIRECTORY, SimClock(), lambda: next(salts))


def loaded(fs: FileSystem) -> dict[bytes, bytes]:
    return store_on(fs).load()


def name(number: int, suffix: str = "delta") -> str:
    return f"{number:012d}.{suffix}"


changes = st.lists(
    st.dictionaries(st.binary(max_size=2), st.none() | st.binary(max_size=40), max_size=5), min_size=1, max_size=12
)


@given(changes, st.sampled_from([1, 60, 1 << 20]))
def test_a_snapshot_is_the_sum_of_its_changes(steps: list[dict[bytes, bytes | None]], base_bytes_min: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "BASE_BYTES_MIN", base_bytes_min)
        disk = FakeDisk()
        store = store_on(disk)
        expected: dict[bytes, bytes] = {}
        assert store.load() == {}
        for step in steps:
            puts = {key: value for key, value in step.items() if value is not None}
            removes = [key for key, value in step.items() if value is None]
            before = store.number
            assert store.write(puts, removes) == before + bool(step)
            expected |= puts
            expected = {key: value for key, value in expected.items() if key not in removes}
            again = store_on(disk)
            assert again.load() == expected
            assert again.number == store.number


def test_a_write_costs_what_changed_not_what_is_stored() -> None:
    disk = FakeDisk()
    store = store_on(disk)
    store.load()
    store.write({b"%d" % number: bytes(100) for number in range(20_000)})
    assert disk.list(DIRECTORY) == [name(1, "base")]
    faulty = FaultFs(disk)
    store = store_on(faulty)
    store.load()
    faulty.calls.clear()
    store.write({b"7": b"new"})
    assert disk.list(DIRECTORY) == [name(1, "base"), name(2)]
    assert len(read_bytes(disk, f"{DIRECTORY}/{name(2)}")) < 500
    assert not [call for call in faulty.calls if call.name in ("map", "read_at")]


def test_the_same_removes_are_the_same_bytes_in_any_order() -> None:
    keys = [b"%d" % number for number in range(20)]
    written = []
    for removes in (keys, keys[::-1]):
        disk = FakeDisk()
        store = store_on(disk)
        store.load()
        store.write(dict.fromkeys(keys, b""))
        store.write({}, removes)
        written.append(read_bytes(disk, f"{DIRECTORY}/{name(2)}"))
    assert written[0] == written[1]


def test_deltas_that_outweigh_the_base_are_merged_and_unlinked() -> None:
    disk = FakeDisk()
    store = store_on(disk)
    store.load()
    value = bytes(snapshot.BASE_BYTES_MIN // 4)
    for number in range(1, 10):
        store.write({b"%d" % (number % 3): value})
    files = disk.list(DIRECTORY)
    assert [file for file in files if file.endswith("base")] == files[:1]
    assert len(files) < 6
    assert sorted(loaded(disk)) == [b"0", b"1", b"2"]


def test_its_size_is_that_of_its_files() -> None:
    disk = FakeDisk()
    chain(disk)
    store = store_on(disk)
    assert store.size_bytes == 0
    store.load()
    assert store.size_bytes == sum(len(read_bytes(disk, f"{DIRECTORY}/{file}")) for file in disk.list(DIRECTORY))


def test_many_small_deltas_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "DELTAS_MAX", 5)
    disk = FakeDisk()
    store = store_on(disk)
    store.load()
    for number in range(1, 20):
        store.write({b"k": b"%d" % number})
        assert len(disk.list(DIRECTORY)) <= 6
    assert loaded(disk) == {b"k": b"19"}


def test_a_snapshot_is_durable_before_write_returns_and_old_files_go_after() -> None:
    monitor = MonitorFs(FakeDisk())
    store = store_on(monitor)
    store.load()
    store.write({b"a": b"1"})
    path = f"{DIRECTORY}/{name(1)}"
    assert monitor.name_is_durable(path)
    monitor.assert_synced(path, len(read_bytes(monitor, path)))
    monitor.allow_unlink(lambda unlinked: monitor.name_is_durable(f"{DIRECTORY}/{name(2, 'base')}"))
    store.write({b"b": bytes(snapshot.BASE_BYTES_MIN)})
    assert monitor.list(DIRECTORY) == [name(2, "base")]


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_crash_at_any_call_leaves_the_snapshot_before_or_after(mode: str) -> None:
    big = bytes(snapshot.BASE_BYTES_MIN)

    def prepared(seed: int) -> tuple[FakeDisk, FaultFs, SnapshotStore]:
        disk = FakeDisk(seed)
        store_on(disk).load()
        first = store_on(disk)
        first.write({b"a": b"1", b"b": b"1"})
        faulty = FaultFs(disk)
        store = store_on(faulty)
        store.load()
        faulty.calls.clear()
        return disk, faulty, store

    before, after = {b"a": b"1", b"b": b"1"}, {b"a": big, b"c": b"2"}
    _, counting, store = prepared(0)
    store.write(after, [b"b"])
    assert len(counting.calls) > 15
    seen = set()
    for index in range(len(counting.calls)):
        disk, faulty, store = prepared(index)
        faulty.crash_at(index)
        with pytest.raises(SimulatedCrash):
            store.write(after, [b"b"])
        crashed = disk.crash(mode)
        survivor = store_on(crashed)
        state = survivor.load()
        assert state in (before, after)
        seen.add(survivor.number)
        survivor.sweep()
        assert survivor.write({b"d": b"4"}) == survivor.number
        assert loaded(crashed) == state | {b"d": b"4"}
        assert not [file for file in crashed.list(DIRECTORY) if file.endswith(".tmp")]
    assert seen == {1, 2}


def test_what_a_dead_process_left_unsynced_is_durable_once_it_is_settled() -> None:
    disk = FakeDisk()
    faulty = FaultFs(disk)
    store = store_on(faulty)
    store.load()
    faulty.crash("sync_dir", path=DIRECTORY)
    with pytest.raises(SimulatedCrash):
        store.write({b"a": b"1"})
    disk = disk.kill()
    store = store_on(disk)
    assert store.load() == {b"a": b"1"}
    assert loaded(disk.fork().crash("lost")) == {}, "its name is not durable yet"
    store.settle()
    assert loaded(disk.crash("lost")) == {b"a": b"1"}


def test_a_failed_write_can_be_tried_again() -> None:
    for call in ("write_at", "sync", "rename", "sync_dir"):
        disk = FakeDisk()
        faulty = FaultFs(disk)
        store = store_on(faulty)
        store.load()
        faulty.fail(call)
        with pytest.raises(OSError, match="Input/output error"):
            store.write({b"a": b"1"})
        assert store.number == 0
        assert store.write({b"a": b"2"}) == 1
        assert loaded(disk) == {b"a": b"2"}


# Damage


def chain(disk: FakeDisk) -> None:
    store = store_on(disk)
    store.load()
    store.reset({b"base": b"0"})
    store.write({b"a": b"1"})
    store.write({b"b": b"2"}, [b"base"])
    store.write({b"c": b"3"})


def test_every_flipped_byte_is_damage_or_padding() -> None:
    disk = FakeDisk()
    chain(disk)
    expected = loaded(disk)
    noticed = 0
    for file in disk.list(DIRECTORY):
        path = f"{DIRECTORY}/{file}"
        for offset in range(len(read_bytes(disk, path))):
            flip(disk, path, offset)
            try:
                assert loaded(disk) == expected
            except Damaged as damage:
                assert damage.detail["file"] == path
                assert damage.detail["offset"] <= offset
                noticed += 1
            flip(disk, path, offset)
    total = sum(len(read_bytes(disk, f"{DIRECTORY}/{file}")) for file in disk.list(DIRECTORY))
    assert noticed > total * 0.9


def test_every_cut_is_damage() -> None:
    disk = FakeDisk()
    chain(disk)
    path = f"{DIRECTORY}/{name(4)}"
    content = read_bytes(disk, path)
    for length in range(len(content)):
        disk.unlink(path)
        file = disk.open(path, "create")
        file.write_at(0, [content[:length]])
        with pytest.raises(Damaged):
            loaded(disk)


def test_a_missing_link_is_named() -> None:
    disk = FakeDisk()
    chain(disk)
    disk.unlink(f"{DIRECTORY}/{name(3)}")
    with pytest.raises(Damaged, match="snapshot 3 is missing"):
        loaded(disk)


def test_a_missing_base_is_named() -> None:
    disk = FakeDisk()
    chain(disk)
    disk.unlink(f"{DIRECTORY}/{name(1, 'base')}")
    with pytest.raises(Damaged, match="snapshot 1 is missing"):
        loaded(disk)


def test_a_file_under_another_files_name_is_noticed() -> None:
    disk = FakeDisk()
    chain(disk)
    disk.rename(f"{DIRECTORY}/{name(4)}", f"{DIRECTORY}/{name(3)}")
    with pytest.raises(Damaged, match="holds snapshot 4"):
        loaded(disk)


def test_salvage_reads_what_it_can_and_reset_makes_it_whole() -> None:
    disk = FakeDisk()
    store = store_on(disk)
    store.load()
    store.write({b"a": b"1", b"b": b"2", b"c": b"3"})
    store.write({b"d": b"4"})
    content = read_bytes(disk, f"{DIRECTORY}/{name(1)}")
    flip(disk, f"{DIRECTORY}/{name(1)}", content.index(b"b2"))
    salvager = store_on(disk)
    state, damages = salvager.salvage()
    assert state == {b"a": b"1", b"c": b"3", b"d": b"4"}
    assert [damage.detail["file"] for damage in damages] == [f"{DIRECTORY}/{name(1)}"]
    assert damages[0].detail["lost_keys"] is not None
    assert salvager.reset(state) == 3
    assert disk.list(DIRECTORY) == [name(3, "base")]
    assert loaded(disk) == state


def test_salvage_goes_past_a_missing_number() -> None:
    disk = FakeDisk()
    chain(disk)
    disk.unlink(f"{DIRECTORY}/{name(3)}")
    state, damages = store_on(disk).salvage()
    assert state == {b"base": b"0", b"a": b"1", b"c": b"3"}
    assert any("missing" in damage.message for damage in damages)


def test_a_key_cannot_be_put_and_removed_at_once() -> None:
    store = store_on(FakeDisk())
    store.load()
    with pytest.raises(AssertionError, match="not both"):
        store.write({b"a": b"1"}, [b"a"])


def one_delta() -> tuple[FakeDisk, str]:
    disk = FakeDisk()
    store = store_on(disk)
    store.load()
    store.write({b"a": b"1", b"b": b"2"})
    return disk, f"{DIRECTORY}/{name(1)}"


@pytest.mark.parametrize(
    ("kind", "body", "message", "left"),
    [
        (Kind.FILE_HEADER, b"\xc1", "the header of snapshot 1 is damaged", {b"a": b"1", b"b": b"2"}),
        (Kind.PUT, b"\x01\0", "an entry of snapshot 1 is none", {b"b": b"2"}),
        (Kind.PUT, b"\x02\0\0\0a", "an entry of snapshot 1 is none", {b"b": b"2"}),
        (Kind.FILE_END, b"\xc1", "snapshot 1 does not end as it was written", {b"a": b"1", b"b": b"2"}),
    ],
)
def test_frames_whose_checksums_are_right_and_that_say_nothing_to_us_are_damage(
    kind: Kind, body: bytes, message: str, left: dict[bytes, bytes]
) -> None:
    disk, path = one_delta()
    reword(disk, path, kind, body, SALT)
    with pytest.raises(Damaged, match=message) as raised:
        loaded(disk)
    assert raised.value.detail["file"] == path
    state, damages = store_on(disk).salvage()
    assert state == left
    assert [message in damage.message for damage in damages] == [True]


def test_a_format_of_another_version_is_not_salvaged_either() -> None:
    disk, path = one_delta()
    header = SnapshotHeader(FORMAT_VERSION + 1, 1, 0, SALT, 0)
    reword(disk, path, Kind.FILE_HEADER, msgspec.msgpack.encode(header), SALT)
    before = read_bytes(disk, path)
    why = f"{path} is in snapshot format {FORMAT_VERSION + 1}; this program reads format {FORMAT_VERSION}"
    for read in (store_on(disk).load, store_on(disk).salvage):
        with pytest.raises(NotUnderstood, match=why):
            read()
    assert read_bytes(disk, path) == before


@pytest.mark.parametrize("keeps_salt", [True, False])
def test_what_stands_behind_a_damaged_header_is_read_as_long_as_it_tells_the_salt(keeps_salt: bool) -> None:
    disk, path = one_delta()
    for offset in range(40 if keeps_salt else 16, 48):
        flip(disk, path, offset)
    state, damages = store_on(disk).salvage()
    assert state == ({b"a": b"1", b"b": b"2"} if keeps_salt else {})
    (damage,) = damages
    assert "the header of snapshot 1 is damaged" in damage.message
    assert damage.detail["lost_keys"] == (() if keeps_salt else None)


def test_the_key_of_a_damaged_entry_is_told_only_when_it_is_all_there() -> None:
    disk, path = one_delta()
    entry_at = frame.next_at(memoryview(read_bytes(disk, path)), frame.ALIGN, 1 << 20, SALT)
    body_at = entry_at + frame.HEADER_BYTES
    flip(disk, path, body_at + 5)
    (damage,) = store_on(disk).salvage()[1]
    assert damage.detail["lost_keys"] == (b"a",)
    flip(disk, path, body_at, 1 ^ 3)
    (damage,) = store_on(disk).salvage()[1]
    assert damage.detail["lost_keys"] is None
