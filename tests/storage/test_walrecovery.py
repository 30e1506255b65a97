from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.storage.walload import TWO, Workload, crash_points
from tests.storage.walrig import DIRECTORY, SMALL, Heard, Rig, entry, flat
from topics.errors import Damaged
from topics.storage.commitlog import Covered
from topics.storage.fs import FileSystem
from topics.storage.walfile import FORMAT_VERSION, FileHeader, file_name, header_frame, parse_name
from topics.storage.walrecovery import LastStop, not_understood
from topics.storage.walscan import nonzero_end
from topics.testing import CRASH_MODES, CrashMode, FakeDisk, FaultFs, MonitorFs, SimulatedCrash


def recovered_tails(fs: FileSystem, work: Workload) -> dict[int, int]:
    """Recover, check what every recovery promises, and return each log's last position."""
    rig = Rig(fs, settings=TWO)
    covered = Covered(work.covered)
    rig.recover(covered, work.snapshot_no)
    tails = dict(work.covered)
    for log_id, position, body in rig.replayed:
        assert position == tails.get(log_id, 0) + 1
        assert body.startswith(b"%d/%d " % (log_id, position))
        tails[log_id] = position
    return tails


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_power_loss_at_any_call_keeps_what_was_synced(mode: CrashMode) -> None:
    for index in crash_points():
        for when in ("before", "after"):
            disk = FakeDisk(seed=index)
            fs = FaultFs(disk)
            fs.crash_at(index, when)
            work = Workload(fs, seed=1)
            with pytest.raises(SimulatedCrash):
                work.run()
            after = disk.crash(mode)
            tails = recovered_tails(after, work)
            synced = work.acked("synced")
            assert all(tails.get(log_id, 0) >= position for log_id, position in synced.items()), (index, when)
            # Going on, and losing power again at once, keeps it as well: recovery leaves nothing ambiguous.
            rig = Rig(after, settings=TWO)
            rig.start(Covered(work.covered), work.snapshot_no)
            rig.add(0, b"0/%d " % (tails.get(0, 0) + 1))
            rig.wal.work()
            again = recovered_tails(after.crash(mode), work)
            assert again == {**tails, 0: tails.get(0, 0) + 1}, (index, when)


def test_the_death_of_the_process_at_any_call_keeps_what_was_written() -> None:
    for index in crash_points():
        disk = FakeDisk(seed=index)
        fs = FaultFs(disk)
        fs.crash_at(index)
        work = Workload(fs, seed=1)
        with pytest.raises(SimulatedCrash):
            work.run()
        tails = recovered_tails(disk.kill(), work)
        written = work.acked("written")
        assert all(tails.get(log_id, 0) >= position for log_id, position in written.items()), index


@pytest.mark.parametrize("seed", [1, 2])
def test_a_power_loss_during_recovery_changes_nothing(seed: int) -> None:
    disk = FakeDisk()
    rig = Rig(disk, settings=TWO)
    rig.start()
    for number in range(30):
        rig.add(number % 2, b"x" * 100, sync=False)
        rig.wal.work()
    fs = FaultFs(disk.crash("reordered", random.Random(seed)))
    found = Rig(fs, settings=TWO)
    found.start()
    assert found.recovery.torn and found.replayed
    for call in fs.calls:
        for mode in CRASH_MODES:
            broken = disk.crash("reordered", random.Random(seed))
            again = FaultFs(broken)
            again.crash_at(call.index)
            with pytest.raises(SimulatedCrash):
                Rig(again, settings=TWO).start()
            rest = Rig(broken.crash(mode), settings=TWO)
            rest.recover()
            assert rest.replayed == found.replayed, (call, mode)


class DurabilityWitness(Heard):
    """Checks each `synced` against what a power loss at that moment would leave."""

    def __init__(self, monitor: MonitorFs) -> None:
        super().__init__()
        self.monitor = monitor

    def synced(self, shard: int, group: int) -> None:
        super().synced(shard, group)
        for name in self.monitor.list(DIRECTORY):
            if name.startswith(f"{shard}-"):
                path = f"{DIRECTORY}/{name}"
                self.monitor.assert_synced(path, nonzero_end(self.monitor.map(path).view, 0))


def test_a_power_loss_during_the_recovery_after_a_kill_is_a_torn_tail_at_worst() -> None:
    """The dead process left bytes that are readable and not durable; recovery must not vouch for them too early."""
    disk = FakeDisk()
    rig = Rig(disk, settings=TWO)
    rig.start()
    for number in range(30):
        rig.add(number % 2, b"x" * 100, sync=False)
        rig.wal.work()
    fs = FaultFs(disk.kill())
    Rig(fs, settings=TWO).start()
    for call in fs.calls:
        for seed in range(5):
            broken = disk.kill()
            again = FaultFs(broken)
            again.crash_at(call.index)
            with pytest.raises(SimulatedCrash):
                Rig(again, settings=TWO).start()
            rest = Rig(broken.crash("reordered", random.Random(seed)), settings=TWO)
            rest.recover()
            assert len(rest.replayed) <= 30


def test_nothing_is_reported_as_synced_or_renamed_or_deleted_too_early() -> None:
    monitor = MonitorFs(FakeDisk())
    work = Workload(monitor, seed=1)
    work.rig.make_listener = lambda: DurabilityWitness(monitor)

    def has_durable_successor(path: str) -> bool:
        shard, number = parse_name(path.rpartition("/")[2]) or (0, 0)
        return monitor.name_is_durable(f"{DIRECTORY}/{file_name(shard, number + 1)}")

    monitor.allow_unlink(has_durable_successor)
    work.run()
    monitor.assert_clean()
    assert work.rig.heard.upto("synced") > 5


def test_a_disk_that_lies_about_syncs_is_found_out() -> None:
    disk = FakeDisk()
    fs = FaultFs(disk)
    rig = Rig(fs)
    rig.start()
    fs.skip("sync", always=True, path="*.wal")
    rig.add(0)
    rig.wal.work()
    assert rig.heard.upto("synced") == 1
    rest = Rig(disk.crash("lost"))
    rest.recover()
    assert rest.replayed == []


def test_how_the_last_process_stopped() -> None:
    disk = FakeDisk()
    rig = Rig(disk)
    rig.start()
    assert rig.recovery.last_stop is LastStop.NEVER_RAN
    rig.add(0)
    rig.wal.close()
    rig.start()
    assert rig.recovery.last_stop is LastStop.CLEAN
    rig.fs = disk = disk.kill()
    rig.start()
    assert rig.recovery.last_stop is LastStop.PROCESS_DIED
    rig.fs = disk = disk.crash("kept")
    rig.start()
    assert rig.recovery.last_stop is LastStop.POWER_LOST


def test_a_power_loss_is_remembered_until_a_snapshot_follows_it() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    rig.add(0)
    rig.wal.work()
    rig.fs = disk = rig.fs.crash("lost")
    rig.start()
    assert rig.recovery.last_stop is LastStop.POWER_LOST
    rig.fs = disk = disk.kill()
    rig.start()
    assert rig.recovery.last_stop is LastStop.POWER_LOST
    rig.wal.trim(Covered(), 1)
    rig.wal.work()
    rig.fs = disk.kill()
    rig.recover(snapshot_no=1)
    assert rig.recover(snapshot_no=1).last_stop is LastStop.PROCESS_DIED


def test_files_begun_after_that_snapshot_forget_the_power_loss_too() -> None:
    disk = FakeDisk()
    Rig(disk).start()
    rig = Rig(disk.crash("lost"))
    rig.start()
    rig.wal.trim(Covered(), 1)
    rig.add(0, b"x" * SMALL.file_bytes)
    rig.wal.work()
    assert len(rig.files()) == 2
    assert rig.recover(snapshot_no=1).last_stop is LastStop.PROCESS_DIED


def test_bytes_that_a_failed_sync_left_in_doubt_are_written_again() -> None:
    disk = FakeDisk()
    fs = FaultFs(disk)
    rig = Rig(fs)
    rig.start()
    rig.add(0)
    fs.fail("sync")
    rig.wal.work()
    assert rig.heard.upto("synced") == 0
    (path,) = rig.files()
    disk.forget_pending(path)
    rest = Rig(disk.kill())
    rest.start()
    assert rest.replayed == flat([entry(0, 1)])
    last = Rig(rest.fs.crash("lost"))
    last.recover()
    assert last.replayed == flat([entry(0, 1)])


def test_the_number_of_shards_changes_only_when_everything_is_covered() -> None:
    rig = Rig(FakeDisk(), settings=replace(SMALL, shards=3))
    rig.start()
    for log_id in range(6):
        rig.add(log_id)
    rig.wal.close()
    rig.settings = replace(SMALL, shards=2)
    wal = rig.start()
    assert (wal.shards, rig.recovery.shards_on_disk) == (3, 3)
    assert sorted(rig.replayed) == flat([entry(log_id, 1) for log_id in range(6)])
    wal.close()
    covered = Covered(dict.fromkeys(range(6), 1))
    wal = rig.start(covered, 1)
    assert wal.shards == 2
    assert rig.replayed == []
    assert [wal.tail(log_id) for log_id in range(6)] == [1] * 6
    rig.add(5)
    wal.close()
    assert len(rig.files()) == 2
    rig.recover(covered, 1)
    assert rig.replayed == flat([entry(5, 2)])


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_half_made_or_half_removed_layout_is_no_damage(mode: CrashMode) -> None:
    covered = Covered(dict.fromkeys(range(6), 1))

    def disk_with_three_shards() -> FakeDisk:
        disk = FakeDisk()
        rig = Rig(disk, settings=replace(SMALL, shards=3))
        rig.start()
        for log_id in range(6):
            rig.add(log_id)
        rig.wal.close()
        return disk

    calm = FaultFs(disk_with_three_shards())
    Rig(calm, settings=TWO).start(covered, 1)
    for call in calm.calls:
        disk = disk_with_three_shards()
        fs = FaultFs(disk)
        fs.crash_at(call.index)
        with pytest.raises(SimulatedCrash):
            Rig(fs, settings=TWO).start(covered, 1)
        rig = Rig(disk.crash(mode), settings=TWO)
        assert rig.start(covered, 1).shards == 2
        assert rig.replayed == []
        assert len(rig.files()) == 2


def test_a_missing_snapshot_is_an_error() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    rig.add(0)
    rig.wal.work()
    rig.wal.trim(Covered({0: 1}), 7)
    rig.wal.close()
    rig.recover(Covered({0: 1}), 7)
    with pytest.raises(Damaged, match="snapshot 7 is needed, the newest one found is 6"):
        rig.recover(Covered({0: 1}), 6)


def test_a_log_that_begins_behind_what_is_covered_is_an_error() -> None:
    rig = Rig(FakeDisk())
    rig.start(Covered({0: 5}), 1)
    rig.add(0)
    rig.wal.close()
    rig.recover(Covered({0: 5}), 1)
    assert rig.replayed == flat([entry(0, 6)])
    with pytest.raises(Damaged, match="log 0 jumps from position 4 to 6") as damage:
        rig.recover(Covered({0: 4}), 1)
    assert damage.value.detail["at_risk"] == ((0, 5, 5),)


def test_a_removed_log_is_covered_whole() -> None:
    rig = Rig(FakeDisk())
    rig.start(Covered({3: 5}), 1)
    rig.add(3)
    rig.add(4)
    rig.wal.close()
    rig.recover(Covered({4: 0}, next_log_id=5), 2)
    assert rig.replayed == flat([entry(4, 1)])


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_file_is_an_error(which: int) -> None:
    rig = Rig(FakeDisk())
    rig.start()
    for position in range(1, 100):
        rig.add(position, b"x" * 200)
    rig.wal.close()
    assert len(rig.files()) > 3
    rig.fs.unlink(rig.files()[which])
    with pytest.raises(Damaged, match=f"file {which + 1} of shard 0 is missing"):
        rig.recover()


def test_a_shard_without_any_file_is_an_error() -> None:
    rig = Rig(FakeDisk(), settings=TWO)
    rig.start()
    rig.add(0)
    rig.add(1)
    rig.wal.close()
    for path in rig.files():
        if "/1-" in path:
            rig.fs.unlink(path)
    with pytest.raises(Damaged, match="a later file of shard 1 is missing: it has none"):
        rig.recover()
    (loss,) = rig.recover(salvage=True).losses
    assert loss.whole_file


def test_files_that_disagree_about_the_number_of_shards_are_an_error() -> None:
    disk = FakeDisk()
    disk.make_dir(DIRECTORY)
    for shard, shards in ((0, 2), (1, 3)):
        header = FileHeader(FORMAT_VERSION, 1, shards, shard, 1, 1, 0, False, 7, disk.boot_id(), 0)
        disk.open(f"{DIRECTORY}/{file_name(shard, 1)}", "create").write_at(0, header_frame(header))
    with pytest.raises(Damaged, match=r"disagree about the number of shards: \[2, 3\]"):
        Rig(disk, settings=TWO).recover()


def test_files_that_were_begun_are_let_go_when_one_of_them_cannot_be() -> None:
    disk = FakeDisk()
    fs = FaultFs(disk)
    fs.fail("sync_dir", nth=2)
    with pytest.raises(OSError, match="Input/output error"):
        Rig(fs, settings=TWO).start()
    begun = [call.path for call in fs.calls if call.name == "close" and call.path.endswith(".wal")]
    assert begun == [f"{DIRECTORY}/{file_name(0, 1)}"]
    rig = Rig(disk, settings=TWO)
    rig.start()
    assert rig.replayed == []


def test_what_the_files_hold_is_told_after_the_replay() -> None:
    rig = Rig(FakeDisk(), settings=TWO)
    rig.start(Covered({0: 3}), 4)
    rig.add(0)
    rig.add(1)
    rig.wal.work()
    rig.add(2, b"x" * TWO.file_bytes)
    rig.wal.close()
    recovery = rig.recover(Covered({0: 3}), 4)
    assert recovery.tails == {0: 4, 1: 1, 2: 1}
    assert recovery.needed_snapshot_no == 4
    assert [recovery.logs_behind(0, number) for number in (0, 1, 2)] == [{0, 2}, {2}, set()]
    assert recovery.logs_behind(1, 0) == {1}


def test_a_fact_that_says_nothing_to_us_is_at_risk_and_no_more_than_that() -> None:
    damage = not_understood("/data/wal", 3, 9, ValueError("no such kind"))
    assert "position 9 of log 3 is whole, but cannot be read: no such kind" in damage.message
    assert damage.detail["at_risk"] == ((3, 9, 9),)


def test_leftover_spares_go() -> None:
    disk = FakeDisk()
    disk.make_dir(DIRECTORY)
    disk.open(f"{DIRECTORY}/0.spare", "create")
    disk.open(f"{DIRECTORY}/7.spare", "create")
    Rig(disk).start()
    assert disk.list(DIRECTORY) == ["0-0000000001.wal"]


def test_progress_ends_at_the_whole() -> None:
    rig = Rig(FakeDisk())
    rig.start()
    rig.add(0, b"x" * 50_000)
    rig.wal.close()
    recovery = rig.recover()
    done, total = recovery.progress
    assert done == total > 50_000


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_power_loss_while_erasing_is_no_damage(mode: CrashMode) -> None:
    def erase(fs: FileSystem) -> Rig:
        rig = Rig(fs)
        rig.start()
        rig.add(0, b"secret" * 2000)
        rig.add(1, b"secret")
        rig.wal.work()
        rig.wal.trim(Covered({0: 1, 1: 1}), 1, erase=True)
        rig.wal.work()
        return rig

    calm = FaultFs(FakeDisk())
    erase(calm)
    for call in calm.calls:
        disk = FakeDisk(seed=call.index)
        fs = FaultFs(disk)
        fs.crash_at(call.index)
        with pytest.raises(SimulatedCrash):
            erase(fs)
        after = disk.crash(mode)
        rig = Rig(after)
        rig.start(Covered({0: 1, 1: 1}), 1)
        assert rig.replayed == []
        assert not [name for name in after.list(DIRECTORY) if name.endswith(".erased")]
