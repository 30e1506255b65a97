from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.storage.threadrig import LateLock, Loop, WatchedClock, asleep, sleeping, threads_that_write
from tests.storage.walrig import SMALL, Heard, Rig, entry
from topics.clock import SystemClock
from topics.errors import Internal, LogStopped
from topics.storage.commitlog import Cut
from topics.storage.committer import AT_ONCE_BYTES_MAX, SLOW_NS, SLOW_PAUSE_FACTOR
from topics.storage.fs import RealFs
from topics.testing import Call, FakeDisk, FaultFs, SimClock, SimulatedCrash

GROUPS = 2_000


@pytest.fixture
def rig() -> Rig:
    made = Rig(FaultFs(FakeDisk()))
    made.start()
    return made


def test_a_lone_request_is_synced_in_the_round_that_writes_it(rig: Rig) -> None:
    rig.add(0)
    assert rig.wal.work()
    assert rig.heard.events == [("written", 0, 1), ("synced", 0, 1)]
    assert not rig.wal.work()


def test_one_sync_covers_everything_that_was_waiting(rig: Rig) -> None:
    rig.add(0, sync=False)
    rig.add(0)
    rig.add(0, sync=False)
    rig.wal.work()
    assert rig.heard.events == [("written", 0, 3), ("synced", 0, 3)]
    metrics = rig.wal.metrics(0)
    assert (metrics.frames, metrics.batches, metrics.fsyncs) == (3, 1, 1)
    assert sum(metrics.sync_us.counts) == 1


def test_without_a_request_the_sync_comes_when_the_interval_ends(rig: Rig) -> None:
    clock = rig.clock
    assert isinstance(clock, SimClock)
    rig.add(0, sync=False)
    clock.advance(150)
    rig.wal.work()
    assert rig.heard.events == [("written", 0, 1)]
    clock.advance(49)
    rig.add(0, sync=False)
    rig.wal.work()
    assert rig.heard.upto("synced") == 0
    assert rig.wal.due_ns() == clock.ticks_ns() + 1_000_000
    clock.advance(1)
    assert rig.wal.work()
    assert rig.heard.events[-1] == ("synced", 0, 2)
    assert rig.wal.due_ns() is None
    assert not rig.wal.work()


def test_the_interval_counts_from_the_append_not_from_the_write(rig: Rig) -> None:
    assert isinstance(rig.clock, SimClock)
    rig.add(0, sync=False)
    rig.clock.advance(200)
    rig.wal.work()
    assert rig.heard.upto("synced") == 1


def test_a_new_interval_begins_with_the_first_group_after_a_sync(rig: Rig) -> None:
    assert isinstance(rig.clock, SimClock)
    rig.add(0)
    rig.wal.work()
    rig.clock.advance(1000)
    rig.add(0, sync=False)
    rig.wal.work()
    assert rig.heard.upto("synced") == 1


def test_peaks_and_refusals_are_counted(rig: Rig) -> None:
    for _ in range(3):
        rig.add(0, b"12345")
    metrics = rig.wal.metrics(0)
    assert (metrics.queue_depth, metrics.queue_bytes) == (3, 15)
    rig.wal.work()
    assert (metrics.queue_depth, metrics.queue_bytes) == (0, 0)
    assert (metrics.queue_depth_peak, metrics.queue_bytes_peak) == (3, 15)


@pytest.mark.parametrize("call", ["write_at", "sync"])
def test_a_failure_is_final_and_never_tried_again(rig: Rig, call: str) -> None:
    fs = rig.fs
    assert isinstance(fs, FaultFs)
    rule = fs.fail(call, errno.EIO, path="*.wal")
    rig.add(0)
    rig.wal.work()
    assert rule.fired == 1
    after = len(fs.calls)
    assert not rig.wal.work()
    with pytest.raises(LogStopped, match="Input/output error"):
        rig.add(0)
    with pytest.raises(LogStopped):
        rig.wal.close()
    assert [c.name for c in fs.calls[after:] if c.changes] == []
    expected = [("failed", 0, 0)] if call == "write_at" else [("written", 0, 1), ("failed", 0, 0)]
    assert rig.heard.events == expected
    assert rig.wal.metrics(0).read_only


def test_a_failure_while_closing_is_not_a_clean_stop(rig: Rig) -> None:
    assert isinstance(rig.fs, FaultFs)
    rig.add(0, sync=False)
    rig.fs.fail("sync", path="*.wal", nth=2)
    with pytest.raises(LogStopped):
        rig.wal.close()
    assert rig.heard.events == [("written", 0, 1), ("synced", 0, 1), ("failed", 0, 0)]


def test_a_cut_that_waits_is_told_that_the_shard_has_stopped(rig: Rig) -> None:
    assert isinstance(rig.fs, FaultFs)
    told: list[object] = []
    rig.wal.cut(told.append)
    rig.fs.fail("write_at", errno.EIO, path="*.wal")
    rig.add(0)
    rig.wal.cut(told.append)
    assert told == []
    rig.wal.work()
    cut, error = told
    assert isinstance(cut, Cut) and cut.positions == {}
    assert error is rig.heard.errors[0]


def test_a_defect_stops_the_shard_with_its_cause(rig: Rig) -> None:
    rig.wal.append(0, [entry(2**40, 1)], sync=True)
    rig.wal.work()
    (error,) = rig.heard.errors
    assert isinstance(error, Internal) and error.__cause__ is not None


def test_a_listener_that_raises_is_not_mistaken_for_a_failed_disk(rig: Rig) -> None:
    class Refusing(Heard):
        def written(self, shard: int, group: int) -> None:
            raise ValueError("the engine's own defect")

    rig.make_listener = Refusing
    rig.start()
    rig.add(0)
    with pytest.raises(ValueError, match="own defect"):
        rig.wal.work()
    assert not rig.wal.metrics(0).read_only


def test_a_crash_passes_through(rig: Rig) -> None:
    assert isinstance(rig.fs, FaultFs)
    rig.fs.crash("sync")
    rig.add(0)
    with pytest.raises(SimulatedCrash):
        rig.wal.work()
    assert rig.heard.upto("synced") == 0


def test_a_thread_writes_syncs_and_ends(tmp_path: Path) -> None:
    loop = Loop(RealFs(), tmp_path)
    rig = loop.rig
    rig.start()
    for group in range(1, GROUPS + 1):
        assert rig.add(0, sync=group % 3 == 0) == group
    loop.until("synced", GROUPS - GROUPS % 3)
    rig.wal.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("wal-")]
    metrics = rig.wal.metrics(0)
    assert metrics.frames == GROUPS and metrics.fsyncs < GROUPS
    rig.recover()
    assert [position for _, position, _ in rig.replayed] == list(range(1, GROUPS + 1))


def test_a_thread_syncs_by_itself_when_the_interval_ends(tmp_path: Path) -> None:
    loop = Loop(RealFs(), tmp_path)
    loop.rig.start()
    loop.rig.add(0, sync=False)
    loop.until("synced", 1)
    loop.rig.wal.close()


def test_reports_that_pile_up_become_one(tmp_path: Path) -> None:
    loop = Loop(RealFs(), tmp_path)
    loop.rig.start()
    for _ in range(100):
        loop.rig.add(0)
    loop.rig.wal.close()
    assert loop.posts == 1
    loop.until("synced", 100)
    # The first one may have been written by the append itself, while the thread slept.
    assert loop.rig.heard.events[-2:] == [("written", 0, 100), ("synced", 0, 100)]
    assert loop.rig.heard.events[:-2] in ([], [("written", 0, 1)])


def test_requests_during_a_sync_share_the_next_one(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    loop = Loop(fs, tmp_path)
    loop.rig.start()
    entered, leave = threading.Event(), threading.Event()

    def hold(_call: object) -> None:
        entered.set()
        assert leave.wait(30)

    fs.skip("sync", path="*.wal").on_fire = hold
    loop.rig.add(0)
    assert entered.wait(30)
    for _ in range(50):
        loop.rig.add(0)
    leave.set()
    loop.until("synced", 51)
    metrics = loop.rig.wal.metrics(0)
    assert (metrics.fsyncs, metrics.batches) == (2, 2)
    assert metrics.queue_depth_peak == 50
    loop.rig.wal.close()


def test_a_thread_that_cannot_report_takes_no_more(tmp_path: Path) -> None:
    rig = Rig(RealFs(), str(tmp_path / "wal"), SMALL, SystemClock(), None)

    def closed_loop(report: Callable[[], None]) -> None:
        raise RuntimeError("the loop is closed")

    rig.post = closed_loop
    rig.start()
    rig.add(0)
    with pytest.raises(LogStopped, match="the loop is closed"):
        rig.wal.close()
    with pytest.raises(LogStopped, match="the loop is closed"):
        rig.add(0)


def test_a_thread_reports_a_failure_once(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    loop = Loop(fs, tmp_path)
    loop.rig.start()
    fs.fail("sync", path="*.wal")
    loop.rig.add(0)
    loop.until("failed", 0)
    with pytest.raises(LogStopped):
        loop.rig.add(0)
    with pytest.raises(LogStopped):
        loop.rig.wal.close()
    assert loop.rig.heard.upto("synced") == 0
    assert [e for e in loop.rig.heard.events if e[0] == "failed"] == [("failed", 0, 0)]


# ---- written by whoever appends


def test_while_the_thread_sleeps_a_group_is_written_and_reported_by_the_append(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    loop = Loop(fs, tmp_path)
    committer = asleep(loop)
    names = threads_that_write(fs)
    loop.rig.add(0, sync=False)
    assert loop.rig.heard.events == [("written", 0, 1)]
    assert names == ["MainThread"] and not loop.posts
    assert committer.metrics.frames == committer.metrics.batches == 1
    loop.until("synced", 1)
    loop.rig.wal.close()
    loop.rig.recover()
    assert [position for _, position, _ in loop.rig.replayed] == [1]


def test_a_sync_that_is_wanted_wakes_the_thread(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    loop = Loop(fs, tmp_path)
    asleep(loop)
    syncers: list[str] = []
    fs.on_call = lambda call: syncers.append(threading.current_thread().name) if call.name == "sync" else None
    loop.rig.add(0, sync=True)
    assert loop.rig.heard.events == [("written", 0, 1)]
    loop.until("synced", 1)
    assert syncers == ["wal-0"]
    loop.rig.wal.close()


def test_a_sync_that_is_wanted_does_not_wait_for_the_interval_of_earlier_groups(tmp_path: Path) -> None:
    loop = Loop(RealFs(), tmp_path)
    loop.rig.settings = replace(SMALL, disk_sync_ms=3_600_000)
    committer = asleep(loop)
    loop.rig.add(0, sync=False)
    sleeping(committer)
    loop.rig.add(0, sync=True)
    loop.until("synced", 2)
    loop.rig.wal.close()


@pytest.mark.parametrize("body_bytes", [AT_ONCE_BYTES_MAX + 1, SMALL.file_bytes])
def test_what_may_take_long_is_the_threads(tmp_path: Path, body_bytes: int) -> None:
    fs = FaultFs(RealFs())
    loop = Loop(fs, tmp_path)
    asleep(loop)
    names = threads_that_write(fs)
    loop.rig.add(0, b"x" * body_bytes, sync=True)
    loop.until("synced", 1)
    assert set(names) == {"wal-0"}
    loop.rig.wal.close()


def test_after_a_slow_write_the_thread_writes_for_a_while(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    clock = SimClock()
    loop = Loop(fs, tmp_path)
    loop.rig.clock = clock
    committer = asleep(loop)
    slow_ms = SLOW_NS // 1_000_000 + 1
    names: list[str] = []

    def delay(call: Call) -> None:
        if call.name == "write_at":
            names.append(threading.current_thread().name)
            clock.advance(slow_ms)

    fs.on_call = delay
    loop.rig.add(0, sync=True)
    loop.until("synced", 1)
    sleeping(committer)
    fs.on_call = lambda call: names.append(threading.current_thread().name) if call.name == "write_at" else None
    names.clear()
    loop.rig.add(0, sync=True)
    loop.until("synced", 2)
    assert set(names) == {"wal-0"}
    sleeping(committer)
    names.clear()
    clock.advance(slow_ms * SLOW_PAUSE_FACTOR)
    loop.rig.add(0, sync=True)
    assert names == ["MainThread"]
    loop.rig.wal.close()


def test_a_write_that_fails_at_once_stops_the_shard(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    loop = Loop(fs, tmp_path)
    asleep(loop)
    fs.fail("write_at", errno.EIO, path="*.wal")
    assert loop.rig.add(0, sync=False) == 1
    assert loop.rig.heard.events == []
    with pytest.raises(LogStopped, match="Input/output error"):
        loop.rig.add(0)
    loop.until("failed", 0)
    assert loop.rig.heard.events == [("failed", 0, 0)]
    with pytest.raises(LogStopped):
        loop.rig.wal.close()


def test_the_thread_keeps_out_of_the_files_while_an_append_writes(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    clock = WatchedClock()
    loop = Loop(fs, tmp_path)
    loop.rig.clock = clock
    committer = asleep(loop)
    loop.rig.add(0, sync=False)
    sleeping(committer)
    seen: list[str] = []

    def meanwhile(call: Call) -> None:
        seen.append(f"{threading.current_thread().name} {call.name}")
        if seen == ["MainThread write_at"]:
            while clock.looks.acquire(blocking=False):
                pass
            clock.advance(SMALL.disk_sync_ms)
            with committer._lock:
                committer._work.notify()
            # One that did not keep out would have synced by now.
            for _ in range(5):
                assert clock.looks.acquire(timeout=30)
            assert seen == ["MainThread write_at"]

    fs.on_call = meanwhile
    loop.rig.add(0, sync=False)
    assert seen[0] == "MainThread write_at"
    loop.until("synced", 2)
    loop.rig.wal.close()


@pytest.mark.parametrize("sync", [True, False])
def test_a_sync_is_not_taken_for_that_of_a_group_that_the_thread_does_not_know_yet(tmp_path: Path, sync: bool) -> None:
    """The group is in its file and not counted yet, and it is time to sync what was written before."""
    fs = FaultFs(RealFs())
    clock = WatchedClock()
    loop = Loop(fs, tmp_path)
    loop.rig.clock = clock
    committer = asleep(loop)
    loop.rig.add(0, sync=False)
    sleeping(committer)
    synced = threading.Event()

    def time_is_over() -> None:
        while clock.looks.acquire(blocking=False):
            pass
        clock.advance(SMALL.disk_sync_ms)
        with committer._work:
            committer._work.notify()
        # As far as it gets: it waits for us, or it has synced by now.
        for _ in range(5):
            while not clock.looks.acquire(timeout=0.01):
                if synced.is_set():
                    sleeping(committer)
                    return

    def note(call: Call) -> None:
        if call.name == "write_at" and threading.current_thread().name == "MainThread":
            lock.late = True
        elif call.name == "sync":
            synced.set()

    lock = LateLock(committer, time_is_over)
    fs.on_call = note
    loop.rig.add(0, sync=sync)
    clock.advance(SMALL.disk_sync_ms)
    with committer._work:
        committer._work.notify()
    loop.until("synced", 2)
    loop.rig.wal.close()


def test_groups_keep_their_order_whoever_writes_them(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())
    loop = Loop(fs, tmp_path)
    asleep(loop)
    names = threads_that_write(fs)
    chance = random.Random(1)
    for group in range(1, GROUPS + 1):
        body = b"%d " % group * (1 if chance.random() < 0.9 else 600)
        assert loop.rig.add(0, body, sync=chance.random() < 0.2) == group
        if chance.random() < 0.3:
            while not loop.posted.empty():
                loop.posted.get()()
    loop.rig.wal.close()
    assert {"MainThread", "wal-0"} <= set(names)
    loop.rig.recover()
    assert [position for _, position, _ in loop.rig.replayed] == list(range(1, GROUPS + 1))
    assert all(body.startswith(b"%d " % position) for _, position, body in loop.rig.replayed)
