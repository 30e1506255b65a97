"""What a WAL knows of the end of its last process: that everything is there, that writes are lost, or nothing."""

from __future__ import annotations

import pytest

from tests.storage.walload import TWO, Workload, crash_points
from tests.storage.walrig import DIRECTORY, Rig, salts
from topics.storage.commitlog import Covered
from topics.storage.walrecovery import LastStop
from topics.testing import CRASH_MODES, FakeDisk, FaultFs, SimulatedCrash


def rig_that_wrote_more_than_it_synced(disk: FakeDisk) -> Rig:
    rig = Rig(disk)
    rig.start()
    rig.add(0, b"synced")
    rig.wal.work()
    for _ in range(3):
        rig.add(0, b"written", sync=False)
    rig.wal.work()
    return rig


def test_disk_that_lost_writes_is_recognised_without_a_reboot() -> None:
    for mode in CRASH_MODES:
        rig = rig_that_wrote_more_than_it_synced(disk := FakeDisk(seed=5))
        rig.fs = disk.detach(mode)
        assert rig.fs.boot_id() == disk.fork().boot_id()
        stop = rig.recover().last_stop
        kept = len(rig.replayed) == 4
        assert stop is (LastStop.PROCESS_DIED if kept else LastStop.WRITES_LOST), mode
        assert kept == (mode == "kept") or mode in ("torn", "zeroed", "reordered")


def test_loss_without_a_reboot_is_remembered_until_a_snapshot_follows_it() -> None:
    rig = rig_that_wrote_more_than_it_synced(disk := FakeDisk())
    rig.salt_source = salts(100)
    rig.fs = disk = disk.detach("lost")
    rig.start()
    assert rig.recovery.last_stop is LastStop.WRITES_LOST
    rig.fs = disk = disk.kill()
    rig.start()
    assert rig.recovery.last_stop.may_have_lost
    rig.wal.trim(Covered(), 1)
    rig.wal.work()
    rig.fs = disk.kill()
    assert rig.recover(snapshot_no=1).last_stop is LastStop.PROCESS_DIED


def test_kill_without_a_witness_proves_nothing() -> None:
    rig = rig_that_wrote_more_than_it_synced(disk := FakeDisk())
    rig.fs = disk.kill(forgetful=True)
    assert rig.recover().last_stop is LastStop.UNKNOWN
    assert len(rig.replayed) == 4


def test_older_state_of_the_disk_is_never_taken_for_the_newest() -> None:
    disk = FakeDisk()
    rig = Rig(disk)
    rig.start()
    older: list[dict[str, bytes]] = []
    for number in range(30):
        rig.add(0, b"x" * 700, sync=number % 7 == 0)
        rig.wal.work()
        older.append(disk.contents())
    assert len(rig.files()) > 2, "some of the states end in files before the last one"
    for number, state in enumerate(older):
        now = disk.fork()
        for path in set(now.contents()) - set(state):
            now.unlink(path)
        for path, content in state.items():
            file = now.open(path, "write") if now.exists(path) else now.open(path, "create")
            file.truncate(len(content))
            file.write_at(0, [content])
        again = Rig(now)
        stop = again.recover().last_stop
        assert stop is (LastStop.PROCESS_DIED if number == 29 else stop) and len(again.replayed) == number + 1
        assert stop.may_have_lost == (number < 29), number


def test_clean_stop_leaves_no_witness_behind() -> None:
    rig = rig_that_wrote_more_than_it_synced(disk := FakeDisk())
    assert disk.recall(DIRECTORY)
    rig.wal.close()
    assert disk.recall(DIRECTORY) == []
    assert rig.recover().last_stop is LastStop.CLEAN


def test_kill_at_any_call_proves_that_nothing_is_lost() -> None:
    for index in crash_points():
        for when in ("before", "after"):
            disk = FakeDisk(seed=index)
            fs = FaultFs(disk)
            fs.crash_at(index, when)
            work = Workload(fs, seed=1)
            with pytest.raises(SimulatedCrash):
                work.run()
            rig = Rig(disk.kill(), settings=TWO)
            stop = rig.recover(Covered(work.covered), work.snapshot_no).last_stop
            assert not stop.may_have_lost, (index, when)


def test_kill_of_a_recovery_at_any_call_proves_that_nothing_is_lost() -> None:
    before = rig_that_wrote_more_than_it_synced(FakeDisk()).fs.kill()
    calm = FaultFs(before.fork())
    rig = Rig(calm)
    rig.salt_source = salts(100)
    rig.start()
    for call in calm.calls:
        for when in ("before", "after"):
            disk = before.fork()
            fs = FaultFs(disk)
            fs.crash_at(call.index, when)
            rig = Rig(fs)
            rig.salt_source = salts(100)
            with pytest.raises(SimulatedCrash):
                rig.start()
            again = Rig(disk.kill())
            assert again.recover().last_stop is LastStop.PROCESS_DIED, (call, when)
            assert len(again.replayed) == 4
