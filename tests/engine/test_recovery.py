"""Opening a directory after every kind of end, and refusing one that is not whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from tests.core.rig import frozen
from tests.engine.queuerig import QueueRig
from tests.engine.rig import SMALL, Rig, records, with_wal
from tests.engine.routerrig import lost_its_end, put
from topics.core.commands import Append
from topics.core.dedupe import IdempotencyKey
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.engine.recovery import PROGRESS_EVERY_FACTS, recover
from topics.errors import Damaged, DirectoryLocked, LogStopped
from topics.limits import CLOCK_LOOK_MS, CLOCK_SLEW_PARTS
from topics.model import Reason
from topics.storage.committer import Post
from topics.storage.fs import FileSystem
from topics.storage.wal import Wal
from topics.testing import CRASH_MODES, CrashMode, FakeDisk, FaultFs, SimClock, SimulatedCrash
from topics.testing.driver import Driver


def busy() -> Rig:
    """A bit of everything, partly in segments, partly in the WAL."""
    rig = Rig()
    rig.configure("odd", durability="fsync", cap_records=50)
    rig.configure("parts", partitions=3, durability="fsync")
    for number in range(30):
        rig.write("odd", {"data": number, "tag": f"t{number % 4}"}, number)
        rig.write("parts", number, partition=number % 3)
        if number in (5, 15):
            rig.checkpoint()
    rig.delete("odd", match="t1")
    rig.write("odd", "keyed", key=IdempotencyKey("k"))
    rig.stage("s", "odd", "staged")
    rig.write("gone", 1)
    rig.drop("gone")
    return rig


def everything(rig: Rig) -> object:
    states = rig.engine.topics()
    texts = [(rig.text("odd"), [rig.data("parts", at) for at in range(3)])]
    return frozen([states, texts, sorted(rig.engine.machine.batches.stages)])


@pytest.mark.parametrize("end", ["stop", "kill", *CRASH_MODES])
def test_everything_comes_back_however_it_ended(end: str) -> None:
    rig = busy()
    before = everything(rig)
    crashes: dict[str, CrashMode] = {mode: mode for mode in CRASH_MODES}
    if end in crashes:
        rig.crash(crashes[end])
    else:
        getattr(rig, end)()
    assert everything(rig) == before
    last_stop = {"stop": "clean", "kill": "process died"}.get(end, "power lost")
    assert rig.engine.report.last_stop == last_stop
    assert rig.write("odd", "again", key=IdempotencyKey("k")).deduped
    assert rig.driver.wait(rig.publish("s")) and rig.data("odd")[-1] == "staged"


def test_a_second_recovery_finds_the_same() -> None:
    rig = busy()
    rig.crash("torn")
    first = everything(rig), frozen(rig.engine.machine.totals)
    for end in (rig.crash, rig.kill, rig.kill, rig.stop, rig.stop):
        end()
        assert (everything(rig), frozen(rig.engine.machine.totals)) == first


@pytest.mark.parametrize("again", ["lost", "torn", "kept"])
def test_a_recovery_that_dies_is_made_again_with_the_same_outcome(again: CrashMode) -> None:
    rig = busy()
    expected = everything(rig)
    disk = rig.disk.crash("torn")
    probe = FaultFs(disk.fork())
    Driver(probe, SimClock(), SMALL)
    changing = [call.index for call in probe.calls if call.changes]
    assert len(changing) > 10
    for index in changing:
        dying = disk.fork()
        fs = FaultFs(dying)
        fs.crash_at(index)
        with pytest.raises(SimulatedCrash):
            Driver(fs, SimClock(), SMALL)
        assert everything(Rig(disk=dying.crash(again))) == expected


def test_an_empty_directory_never_ran() -> None:
    rig = Rig()
    assert rig.engine.report.last_stop == "never ran"
    assert (rig.engine.report.facts, rig.engine.report.notes) == (0, [])


def test_facts_of_a_log_that_never_came_to_exist_are_left_out_and_their_ids_not_used_again() -> None:
    rig = Rig()
    rig.fs.fail("sync", path="*/wal/0-*")
    ticket = rig.engine.submit(Append("odd", records(1, 2), config={"durability": "fsync"}))
    rig.work()
    assert ticket.error is not None
    rig.crash()
    assert rig.engine.report.orphans == 1 and rig.engine.topics() == []
    rig.write("odd", "new")
    assert rig.log("odd").log_id == 2 and rig.data("odd") == ["new"]
    rig.kill()
    assert rig.data("odd") == ["new"]


def test_progress_grows_to_one() -> None:
    rig = Rig(with_wal(file_bytes=4 << 20))
    rig.configure("odd", durability="memory")
    rig.configure("even", durability="memory")
    for number in range(PROGRESS_EVERY_FACTS * 2):
        rig.submit("odd" if number % 2 else "even", 1)
    rig.work()
    told: list[float] = []
    engine = recover(rig.disk.kill(), "/data", rig.clock, lambda: 1, rig.options, None, told.append)
    assert engine.report.facts > 2 * PROGRESS_EVERY_FACTS
    assert len(told) >= 3 and told == sorted(told) and told[-1] == 1.0 and 0 < told[0] < 1


def test_the_number_of_shards_changes_when_everything_is_in_a_snapshot() -> None:
    rig = busy()
    before = everything(rig)
    rig.options = with_wal(SMALL, shards=5)
    rig.kill()
    assert rig.engine.wal.shards == 2, "not while the WAL holds something"
    rig.stop()
    assert rig.engine.wal.shards == 5 and everything(rig) == before
    rig.write("odd", 1)
    rig.options = with_wal(SMALL, shards=1)
    rig.stop()
    rig.write("odd", 2)
    assert rig.engine.wal.shards == 1 and rig.data("odd")[-2:] == [1, 2]


def test_a_directory_is_open_once() -> None:
    rig = Rig()
    with pytest.raises(DirectoryLocked, match="/data/lock"):
        Driver(rig.disk, SimClock())
    rig.write("odd", 1)
    rig.stop()
    assert rig.data("odd") == [1]


def test_a_recovery_that_fails_lets_go_of_the_directory() -> None:
    rig = busy()
    rig.stop()
    rig.driver.close()
    (path,) = [path for path in rig.files("segments") if path.endswith(".data")][:1]
    rig.disk.unlink(path)
    for _ in range(2):
        with pytest.raises(Damaged, match="missing"):
            Driver(rig.disk, SimClock())


@pytest.mark.parametrize("left", ["segments", "snapshots"])
def test_what_is_left_without_its_wal_is_refused(left: str) -> None:
    rig = busy()
    rig.driver.close()
    for path in rig.files():
        if f"/{left}/" not in path:
            rig.disk.unlink(path)
    with pytest.raises(Damaged, match="WAL"):
        Driver(rig.disk, SimClock())


def test_what_a_crash_left_lying_is_swept() -> None:
    rig = busy()
    for name in ("000000009999.data", "000000009999.idx", "000000009998.data.tmp"):
        file = rig.disk.open(f"/data/segments/{name}", "create")
        file.write_at(0, [b"left by a checkpoint"])
        file.close()
    before = everything(rig)
    rig.kill()
    assert everything(rig) == before
    assert rig.holding(b"left by a checkpoint") == []
    assert sum("removed" in note for note in rig.engine.report.notes) == 3


def test_a_torn_tail_is_noted() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.write("odd", 1)
    (path,) = (path for path in rig.files("/wal/1-"))
    rig.submit("odd", "x" * 500)
    rig.fs.tear(100, path=path)
    rig.work()
    rig.kill()
    assert rig.data("odd") == [1] and any(path in note for note in rig.engine.report.notes)


def test_time_does_not_go_back_over_a_restart() -> None:
    rig = Rig()
    rig.write("odd", 1)
    now_ms = rig.engine.now_ms()
    rig.clock.jump(-3_600_000)
    rig.kill()
    assert rig.engine.now_ms() == now_ms


def test_a_topic_that_lost_its_tail_tells_each_reader_once() -> None:
    rig = Rig()
    rig.configure("odd", durability="disk")
    rig.write("odd", 1)
    rig.write("odd", 2)
    rig.crash("lost")
    first = rig.write("odd", 3).first_seq
    rig.checkpoint()
    rig.crash("lost")
    for from_seq, told in ((0, 1), (1, 1), (first - 1, 0)):
        gaps = [gap for gap in rig.gaps("odd", from_seq) if gap.gap_to < first]
        assert [gap.reason for gap in gaps] == [Reason.RESTART] * told


def test_disks_do_not_share_state() -> None:
    """A fork of a disk is recovered by itself."""
    rig = busy()
    fork: FakeDisk = rig.disk.fork()
    other = Rig(disk=fork.kill())
    other.write("odd", "other")
    assert "other" not in rig.data("odd")


def flip(rig: Rig, path: str, needle: bytes) -> int:
    """Change the byte behind `needle` in a file; where that is."""
    offset = bytes(rig.disk.contents()[path]).index(needle) + len(needle)
    file = rig.disk.open(path, "write")
    file.write_at(offset, [bytes([file.read_at(offset, 1)[0] ^ 1])])
    file.close()
    return offset


def test_a_damaged_block_fails_the_reads_that_need_it_and_nothing_else() -> None:
    rig = Rig()
    rig.configure("odd")
    for first in (0, 5000):
        # Blocks hold at most 4096 records: the first and the second write end up in different ones.
        rig.write("odd", *[{"data": {"n": n}, "tag": f"t{n % 2}"} for n in range(first, first + 4000)])
    rig.delete("odd", match="t1", before_seq=20)
    rig.checkpoint()
    state = rig.engine.state("odd")
    rig.disk = rig.disk.kill()
    (path,) = [path for path in rig.disk.contents() if path.endswith(".data")]
    flip(rig, path, b'{"n":100')
    rig.start()
    assert rig.engine.state("odd") == state
    with pytest.raises(Damaged, match=r"seqs 1\.\.4000 of topic odd is damaged"):
        rig.engine.read("odd", 0)
    assert [record.seq for record in rig.engine.read("odd", 4000, limit=2).records] == [4001, 4002]
    assert rig.write("odd", "more").first_seq == 8001


def test_damage_in_the_wal_names_topics_and_seqs_at_risk_and_the_next_step() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    for number in range(5):
        rig.write("odd", {"data": {"n": number}})
    rig.disk = rig.disk.kill()
    offset = flip(rig, "/data/wal/1-0000000001.wal", b'{"n":')
    with pytest.raises(Damaged) as caught:
        rig.start()
    detail = caught.value.detail
    assert detail["file"] == "/data/wal/1-0000000001.wal" and detail["offset"] <= offset
    assert detail["seqs_at_risk"] == [{"topic": "odd", "partition": 0, "from_seq": 1, "facts": 1}]
    assert "odd/0 from seq 1" in caught.value.message and "topics fsck /data" in caught.value.message


def test_flags_that_a_dead_process_wrote_and_did_not_sync_are_written_again() -> None:
    rig = Rig()
    rig.write("odd", *[{"data": n, "tag": f"t{n % 2}"} for n in range(10)])
    rig.checkpoint()
    rig.delete("odd", match="t1")
    rig.fs.crash("sync", path="*.data")
    with pytest.raises(SimulatedCrash):
        rig.checkpoint()
    rig.kill()
    assert rig.data("odd") == [0, 2, 4, 6, 8]
    rig.checkpoint()
    # The flags of the dead process were in the file already; the snapshot counts on them, so they must be durable.
    rig.crash("lost")
    assert rig.data("odd") == [0, 2, 4, 6, 8] and rig.engine.state("odd").count == 5


@pytest.mark.parametrize("dest", ["ephemeral", "memory", "disk"])
def test_routers_are_back_where_their_source_ends_before_it_takes_anything(dest: str) -> None:
    """Or a second crash would find them ahead of records that they have never seen, and pass over those."""
    rig = lost_its_end(dest)
    engine = recover(rig.disk, "/data", rig.clock, lambda: 1, rig.options, None)
    engine.submit(Append("a", records("new")))
    engine.flush()
    engine.wal.sync(1)
    cast(Wal, engine.wal)._committers[1].work()
    rig.crash("lost")
    rig.work()
    assert rig.data("a") == [1, 2, 3, "new"]
    assert rig.data("b")[-1] == "new" and "lost" not in rig.data("b")
    assert dest == "ephemeral" or rig.seqs("b")[-1] > 6, "not under a seq that was a copy of something else"
    before = rig.text("b")
    rig.kill()
    assert dest == "ephemeral" or rig.text("b") == before


@pytest.mark.parametrize("dest", ["ephemeral", "fsync"])
def test_what_a_crash_interrupted_goes_on_behind_where_routers_are_back(dest: str) -> None:
    rig = Rig()
    rig.configure("a", durability="memory")
    rig.configure("b", durability=dest)
    rig.write("a", 1)
    rig.stage("s", "a", "staged")
    rig.clock.advance(1000)
    rig.work()
    rig.write("a", "lost", "lost")
    put(rig, "a", "b")
    rig.publish("s")
    rig.engine.flush()
    cast(Wal, rig.engine.wal)._committers[0].work()
    rig.crash("lost")
    assert rig.data("a") == [1, "staged"]
    assert rig.data("b") == ["staged"]


def test_a_recovery_that_cannot_store_what_it_concluded_takes_nothing() -> None:
    rig = lost_its_end("ephemeral")
    fs = FaultFs(rig.disk)
    rule = fs.fail("sync", path="*/wal/0-0000000002.wal")
    with pytest.raises(LogStopped):
        Driver(fs, rig.clock, rig.options)
    assert rule.fired
    rig.start()
    assert rig.data("a") == [1, 2, 3]


def test_a_host_is_not_open_before_what_its_recovery_concluded_is_stored() -> None:
    rig = lost_its_end("ephemeral")

    def open_engine(fs: FileSystem) -> Callable[[Post], Engine]:
        return lambda post: recover(fs, "/data", rig.clock, lambda: 1, rig.options, post)

    async def test() -> None:
        fs = FaultFs(rig.disk.fork())
        rule = fs.fail("sync", path="*/wal/0-0000000002.wal")
        with pytest.raises(LogStopped):
            await Host.open(open_engine(fs))
        assert rule.fired
        host = await Host.open(open_engine(rig.disk))
        await host.submit(Append("a", records("new")))
        await host.wait_visible(host.engine.machine.log(host.engine.machine.topic("b")), 0, 60)
        assert [record.data for record in host.engine.read("b").records] == ["new"]
        await host.close()

    asyncio.run(test())


def acked_ahead_of_the_sync() -> Rig:
    """A synced record, and five that were answered and not synced."""
    rig = Rig()
    rig.configure("odd")
    for data in ("synced", 1, 2, 3, 4, 5):
        rig.write("odd", data)
    return rig


@pytest.mark.parametrize("forgetful", [False, True])
def test_disk_that_lost_writes_without_a_reboot_skips_what_was_acked(forgetful: bool) -> None:
    rig, acked = acked_ahead_of_the_sync(), 6
    rig.detach("lost", forgetful)
    assert rig.engine.report.last_stop == f"process died, disk {'unknown' if forgetful else 'lost writes'}"
    assert rig.data("odd") == ["synced"]
    (gap,) = rig.gaps("odd")
    assert gap.reason is Reason.RESTART and gap.gap_from == 2 and gap.gap_to >= acked
    assert rig.write("odd", "after").first_seq == gap.gap_to + 1
    rig.stop()
    assert rig.data("odd") == ["synced", "after"]
    assert [(told.gap_from, told.gap_to) for told in rig.gaps("odd")] == [(gap.gap_from, gap.gap_to)]


def test_kill_that_nothing_proves_harmless_skips_seqs_and_loses_nothing() -> None:
    rig, acked = acked_ahead_of_the_sync(), 6
    rig.disk = rig.disk.kill(forgetful=True)
    rig.start()
    assert rig.seqs("odd") == list(range(1, acked + 1))
    (gap,) = rig.gaps("odd")
    assert gap.reason is Reason.RESTART and gap.gap_from == acked + 1


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_lease_ends_in_its_time_when_the_clock_went_back_before_a_restart(end: str) -> None:
    rig = QueueRig()
    rig.queue(durability="fsync")
    rig.write("q", "job")
    # Nothing is stored for most of an hour, so no stamp says how late it is.
    rig.clock.advance(3_000_000)
    assert rig.claim("w", lease_ms=1000).jobs
    rig.clock.jump(-3_600_000)
    getattr(rig, end)()
    rig.clock.advance(1001 * CLOCK_SLEW_PARTS // (CLOCK_SLEW_PARTS - 1) + CLOCK_LOOK_MS)
    assert rig.claim("other").jobs


def test_time_that_was_noted_is_gone_with_the_machine() -> None:
    rig = Rig()
    rig.write("odd", 1)
    stored_ms = rig.engine.now_ms()
    rig.clock.advance(3_000_000)
    rig.engine.now_ms()
    rig.clock.jump(-3_600_000)
    rig.crash("kept")
    assert rig.engine.now_ms() == stored_ms
