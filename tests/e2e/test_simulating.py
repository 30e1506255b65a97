"""The simulator on several processes: they end with whoever started them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

RUN = [sys.executable, "-m", "topics.testing.sim", "--seeds", "100000", "--processes", "2", "--out"]
GUARD_SECONDS = 120


def workers_of(pid: int) -> list[int]:
    """Those that run seeds, and not the one that tidies up behind them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_the_workers_of_one_that_is_killed_end_too(tmp_path: Path) -> None:
    until_s = time.monotonic() + GUARD_SECONDS
    with subprocess.Popen([*RUN, tmp_path / "tally.json"], stdout=subprocess.DEVNULL) as process:
        while len(workers := workers_of(process.pid)) < 2:
            assert process.poll() is None and time.monotonic() < until_s
            time.sleep(0.05)
        process.kill()
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until_s, f"{workers} go on"
        time.sleep(0.05)
