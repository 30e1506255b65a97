"""A disk that fails: whatever call it is, nothing acked is lost, and what cannot go on says so."""

from __future__ import annotations

import errno

import pytest

from tests.sim.crashing import check_recovered
from topics.core.commands import Append, Delete
from topics.errors import Internal, LogStopped, TopicsError
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.workload import Rig, run_workload

CODES = (errno.EIO, errno.ENOSPC, errno.EROFS)
FAULTS = [(code, always) for code in CODES for always in (False, True)]
STRATA = 5
EVERY = 4
"""One call in so many is failed by `make test`; `make soak` fails them all, in every way."""


class FailingRig(Rig):
    """Checkpoints that fail are mended and taken again; any other failure ends the workload."""

    def checkpoint(self) -> None:
        try:
            super().checkpoint()
        except OSError as error:
            self._mend(error)

    def erase(self, command: Delete) -> None:
        try:
            super().erase(command)
        except (OSError, Internal) as error:
            self._mend(error)

    def _mend(self, error: Exception) -> None:
        engine = self.driver.engine
        assert engine.checkpoint_error is error or engine.problems, f"{error!r} is not reported"
        assert isinstance(self.fs, FaultFs)
        self.fs.clear()
        super().checkpoint()
        assert engine.checkpoint_error is None


def run_failing(index: int, code: int, always: bool) -> None:
    disk = FakeDisk()
    fs = FaultFs(disk)

    def forget(call: Call) -> None:
        if call.name == "sync":
            disk.forget_pending(call.path)

    fs.fail("*", code, nth=index + 1, always=always, on_fire=forget)
    clock = SimClock()
    rig: FailingRig | None = None
    try:
        rig = FailingRig(fs, clock)
        run_workload(rig)
    except (OSError, TopicsError):
        if rig is not None and not rig.driver.engine.closing:
            _check_alive(rig, fs)
    if rig is None:
        return
    failed = fs.calls[index]
    if failed.name == "sync" and failed.path.endswith(".wal"):
        later = [
            call for call in fs.calls[index + 1 :] if call.path == failed.path and call.name in ("sync", "write_at")
        ]
        assert not later, f"{failed} failed and was used again: {later[0]}"
    for power_lost in (False, True):
        fork = disk.fork()
        left = fork.crash("lost") if power_lost else fork.kill()
        check_recovered(left, clock, rig.history.copy(), power_lost=power_lost)


def _check_alive(rig: Rig, fs: FaultFs) -> None:
    """Every topic can be read; each takes writes, or says why it does not."""
    fs.clear()
    engine = rig.driver.engine
    for topic in list(engine.machine.topics):
        name = topic.name
        stopped = engine.state(name, touch=False).stopped
        page = engine.read(name, limit=1000)
        assert page.caught_up or page.next_from_seq, f"a reader is stuck: {page}"
        if stopped is None:
            assert engine.turn.stopped(topic.first_log_id) is None
            continue
        with pytest.raises(LogStopped):
            rig.driver.do(Append(name, rig.records(1)))


def _calls() -> list[Call]:
    fs = FaultFs(FakeDisk())
    run_workload(Rig(fs, SimClock()))
    return [call for call in fs.calls if call.changes]


def fail_and_check(index: int, code: int, always: bool) -> None:
    try:
        run_failing(index, code, always)
    except AssertionError as error:
        error.add_note(f"run_failing({index}, errno.{errno.errorcode[code]}, always={always})")
        raise


@pytest.mark.parametrize("stratum", range(STRATA))
def test_no_failure_of_the_disk_loses_what_was_acked(stratum: int) -> None:
    for turn, call in enumerate(_calls()[stratum * EVERY :: STRATA * EVERY]):
        fail_and_check(call.index, *FAULTS[turn % len(FAULTS)])


@pytest.mark.soak
@pytest.mark.parametrize(("code", "always"), FAULTS)
def test_no_failure_of_the_disk_loses_what_was_acked_in_the_full_product(code: int, always: bool) -> None:
    for call in _calls():
        fail_and_check(call.index, code, always)
