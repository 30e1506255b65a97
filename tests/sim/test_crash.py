"""Every crash point: the workload dies at each of its file calls, in every way, and no promise is broken."""

from __future__ import annotations

from os import environ
from typing import cast

import pytest

from tests.sim.crashing import DEATHS, Death, check, moments
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs, SimulatedCrash
from topics.testing.workload import Rig, run_workload

STRATA = 8
SOAK_SEEDS = 5


@pytest.mark.parametrize("stratum", range(STRATA))
def test_no_crash_breaks_a_promise(stratum: int) -> None:
    """Each call once, the ways to die taking turns; what was recovered dies again, in its recovery and at its work."""

    def choose(call: Call) -> list[tuple[Death, int]]:
        return [(DEATHS[call.index // STRATA % len(DEATHS)], 0)] if call.index % STRATA == stratum else []

    found = moments(run_workload, choose)
    assert found
    for moment in found:
        check(moment, levels=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SOAK_SEEDS))
@pytest.mark.parametrize("death", DEATHS)
def test_no_crash_breaks_a_promise_in_the_full_product(death: Death, seed: int) -> None:
    for moment in moments(run_workload, lambda call: [(death, seed)]):
        check(moment, levels=2)


@pytest.mark.skipif("TOPICS_CRASH" not in environ, reason="replays the crash that TOPICS_CRASH names")
def test_replay() -> None:
    index, death, seed = environ["TOPICS_CRASH"].split(":")
    chosen = [(cast(Death, death), int(seed))]
    for moment in moments(run_workload, lambda call: chosen if call.index == int(index) else []):
        check(moment, levels=2)


def test_a_fork_is_the_disk_that_a_dead_process_leaves() -> None:
    """The suite forks instead of killing the workload each time: the disks are the same, byte by byte."""
    found = moments(run_workload, lambda call: [("kept", 0)] if call.index % 50 == 49 else [])
    for moment in found:
        disk = FakeDisk()
        fs = FaultFs(disk)
        fs.crash_at(int(moment.name.partition(":")[0]))
        with pytest.raises(SimulatedCrash):
            run_workload(Rig(fs, SimClock()))
        assert disk.crash("kept").contents() == moment.disk.contents()
    assert found


@pytest.mark.parametrize("path", ["*.wal", "*.data.tmp", "*.delta.tmp"])
def test_a_disk_that_lies_about_syncs_is_caught(path: str) -> None:
    """The suite sees what it looks for: with syncs that do nothing, promises are broken."""
    found = moments(run_workload, lambda call: [("lost", 0)], lambda fs: fs.skip("sync", path=path, always=True))
    with pytest.raises(AssertionError) as broken:
        for moment in found:
            check(moment, levels=0)
    assert "TOPICS_CRASH=" in "".join(broken.value.__notes__)
