"""The real server on a disk that loses power and a clock that jumps, used by clients that share no code with it.

`make soak ONLY=jepsen` repeats runs for `JEPSEN_MINUTES`; `JEPSEN_SEED` is the seed of the first one. A seed fixes the
order of the faults; the machine decides which requests meet them. A run that breaks a promise leaves its history in
`build/proof/jepsen`.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proof.results import RESULTS, save
from proof.soak.progress import tell
from proof.tree import tree_hash
from tests.contract import disheapwire
from tests.e2e.jepsen.life import Result, live
from tests.e2e.jepsen.machine import PowerDisk, missing

RUN_S = 30.0
LYING_S = 30.0
LYING_RUNS = 3
MINUTES = 20
KEPT = RESULTS / "jepsen"

needs_disk = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return disheapwire.generated(tmp_path_factory.mktemp("generated"))


@needs_disk
def test_the_mounted_disk_keeps_what_is_synced_only(tmp_path: Path) -> None:
    disk = PowerDisk(tmp_path / "disk")
    try:
        path = disk.mountpoint / "file"
        with path.open("wb", buffering=0) as file:
            file.write(b"kept")
        _sync(path)
        _sync(disk.mountpoint)
        path.write_bytes(b"lost!")
        assert path.read_bytes() == b"lost!"
        disk.lose_power("dropped", seed=1)
        assert path.read_bytes() == b"kept"
        disk.command("fill", room_bytes=0)
        with pytest.raises(OSError, match="No space left"):
            path.write_bytes(b"more than before")
        disk.command("detach")
        with pytest.raises(OSError, match="Input/output error"):
            path.read_bytes()
    finally:
        disk.close()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@needs_disk
@pytest.mark.soak
def test_a_disk_that_lies_about_syncs_is_found(tmp_path: Path, generated: tuple[Any, Any]) -> None:
    """The run can fail: on a disk whose syncs do nothing, promises break."""
    for seed in range(1, LYING_RUNS + 1):
        place = tmp_path / str(seed)
        place.mkdir()
        if live(seed, LYING_S, place, generated, lies=True).violations:
            return
    raise AssertionError(f"{LYING_RUNS} runs on a disk that syncs nothing broke no promise")


@needs_disk
@pytest.mark.soak
def test_no_fault_breaks_a_promise(tmp_path: Path, generated: tuple[Any, Any]) -> None:
    minutes = float(os.environ.get("JEPSEN_MINUTES", MINUTES))
    seed = int(os.environ.get("JEPSEN_SEED", random.SystemRandom().randrange(2**31)))
    total: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    failed: list[int] = []
    began_s = time.monotonic()
    while (gone_s := time.monotonic() - began_s) < minutes * 60 or not total["runs"]:
        tell(gone_s, minutes * 60)
        place = tmp_path / str(seed)
        place.mkdir()
        result = live(seed, RUN_S, place, generated)
        total.update(runs=1, acked=result.acked, operations=sum(result.operations.values()))
        faults.update(result.faults)
        if result.violations:
            failed.append(seed)
            _keep(result)
        _save(minutes, total, faults, failed)
        seed += 1
    assert not failed, f"seeds {failed}: see {KEPT}"
    assert faults.total() > total["runs"]


def _keep(result: Result) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    broken = "".join(f"{violation}\n" for violation in result.violations)
    (KEPT / f"{result.seed}.txt").write_text(f"{broken}\n{result.story()}")


def _save(minutes: float, total: Counter[str], faults: Counter[str], failed: list[int]) -> None:
    counts = {**total, "faults": dict(faults.most_common()), "failures": failed}
    save("jepsen", f"make soak ONLY=jepsen MINUTES={minutes:g}", {"tree": tree_hash(), **counts})
