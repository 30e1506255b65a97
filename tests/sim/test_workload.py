"""The workload does what it is there for."""

from __future__ import annotations

from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import FaultFs
from topics.testing.workload import Rig, run_workload


def _run() -> FaultFs:
    fs = FaultFs(FakeDisk())
    run_workload(Rig(fs, SimClock()))
    return fs


def test_it_makes_the_same_calls_every_time() -> None:
    assert _run().calls == _run().calls


def test_it_visits_every_kind_of_file_work() -> None:
    calls = _run().calls

    def happened(name: str, path: str) -> int:
        return sum(call.name == name and path in (call.target or call.path) for call in calls)

    assert happened("rename", "/wal/0-") > 4, "WAL files rotate"
    assert happened("unlink", "/wal/1-"), "and are trimmed"
    assert happened("rename", "/snapshots/") > 5
    assert happened("rename", "/cold/"), "segments grow cold"
    assert happened("unlink", "/segments/") > 6, "and are merged, erased and dropped"
    assert happened("truncate", "/wal/"), "files are sealed"
