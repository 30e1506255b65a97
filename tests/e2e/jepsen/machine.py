"""The machine under test: a mounted disk that can lose power, a clock that can be set, and `topics serve` on both."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.e2e.jepsen.outside import WallClock
from tests.e2e.jepsen.platter import LossMode
from topics.settings import TABLE

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 60
SHARDS = 2
DISK_SYNC_MS = 200
SETTINGS = {
    "TOPICS_ALLOWED_HOSTS": "topics",
    "TOPICS_WAL_SHARDS": SHARDS,
    "TOPICS_WAL_FILE_BYTES": 64 << 10,
    "TOPICS_DISK_SYNC_MS": DISK_SYNC_MS,
    "TOPICS_SEGMENT_BYTES": 64 << 10,
    "TOPICS_SEGMENT_RECORDS": 100,
    "TOPICS_CHECKPOINT_MS": 700,
    "TOPICS_DRAIN_MS": 500,
    "TOPICS_THROTTLE_LAG_MS": 0,
    "PYTHONWARNINGS": "error",
}
"""Limits so small that a minute rotates, seals and packs."""
SHIM = Path(__file__).with_name("setclock.c")


def missing() -> str:
    """What this machine lacks for such a run; empty when it has all."""
    if not Path("/dev/fuse").exists() or shutil.which("fusermount3") is None:
        return "a file system in user space cannot be mounted here (Debian: apt install fuse3)"
    if os.geteuid():
        return "only root may mount the disk"
    if shutil.which("gcc") is None:
        return "the clock of a process cannot be set without a C compiler (Debian: apt install gcc libc6-dev)"
    return ""


class PowerDisk:
    """A disk of `powerdisk.py`, which runs as a process of its own."""

    def __init__(self, mountpoint: Path) -> None:
        self.mountpoint = mountpoint
        mountpoint.mkdir(parents=True)
        self._log = mountpoint.with_suffix(".log").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.jepsen.powerdisk", str(mountpoint)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._lock = threading.Lock()
        self._mounted = False
        self.mount()

    def command(self, name: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps({"do": name, **fields}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, f"the disk ended with {self._process.poll()} at the command {name}"
        said = json.loads(line)
        assert said["done"] == name, said
        return dict(said)

    def mount(self) -> None:
        self.command("mount")
        self._mounted = True

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.mountpoint)], check=True)
        self._mounted = False

    def lose_power(self, mode: LossMode, seed: int) -> None:
        """What was not synced is gone, as the mode says. Nothing may have a file of it open."""
        self.unmount()
        self.command("lose_power", mode=mode, seed=seed)
        self.mount()

    def close(self) -> None:
        if self._mounted:
            subprocess.run(["umount", "-l", str(self.mountpoint)], check=False)
        self._process.kill()
        with self._process:
            self._log.close()


class Server:
    """`topics serve` on the disk: started, killed and asked to end as the run has it."""

    def __init__(self, directory: Path, clock: WallClock, clock_file: Path) -> None:
        self.directory = directory
        self.clock = clock
        self.http_port = 0
        self.grpc_address = ""
        self.problems: list[str] = []
        """What it logged as errors of its own."""
        self._clock_file = clock_file
        self._shim = clock_file.with_name("setclock.so")
        # libfaketime would do, but its locks hold up a process with threads for seconds when the machine is busy.
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", self._shim, SHIM, "-ldl"], check=True)
        self._process: asyncio.subprocess.Process | None = None
        self._log: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._last_lines: list[str] = []

    def _environment(self) -> dict[str, str]:
        ours = {row.variable for row in TABLE}
        inherited = {name: value for name, value in os.environ.items() if name not in ours}
        clock = {"LD_PRELOAD": str(self._shim), "SETCLOCK_FILE": str(self._clock_file)}
        return inherited | {name: str(value) for name, value in SETTINGS.items()} | clock

    async def start(self) -> None:
        """Start it and wait until it serves."""
        self._ready = asyncio.Event()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "topics", "serve", "--port=0", "--grpc-port=0", f"--data-dir={self.directory}",
            cwd=ROOT, env=self._environment(), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._log = asyncio.create_task(self._read_log(self._process))
        waits = [asyncio.create_task(self._ready.wait()), self._log]
        await asyncio.wait(waits, timeout=TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        waits[0].cancel()
        if not self._ready.is_set():
            raise StartFailed("".join(self._last_lines[-20:]))

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        self._last_lines = []
        while line := (await process.stderr.readline()).decode():
            self._last_lines.append(line)
            said = json.loads(line) if line.startswith("{") else {"event": line}
            if said["event"] == "listening":
                self.http_port, self.grpc_address = int(said["url"].rpartition(":")[2]), said["grpc"]
            elif said["event"] == "ready":
                self._ready.set()
            if "traceback" in said or "exception" in said or not line.startswith("{"):
                self.problems.append(line.strip())

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """Ask it to end; its exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        self.http_port, self.grpc_address = 0, ""
        if process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            code = await asyncio.wait_for(process.wait(), TIMEOUT_S)
        except TimeoutError:
            process.kill()
            raise AssertionError(f"the server did not end within {TIMEOUT_S} s of {number.name}") from None
        if self._log is not None:
            await self._log
        return code


class StartFailed(Exception):
    """The server ended before it served; what it said last."""
