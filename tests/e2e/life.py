"""One process from its start to its violent end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Life:
    """A `writer` that works until somebody kills it."""

    def __init__(self, door: str, directory: Path, checkpoint_ms: int, done: Mapping[str, int]) -> None:
        lanes = [f"{lane}={operations}" for lane, operations in done.items()]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.writer", door, str(directory), str(checkpoint_ms), *lanes],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def kill(self, after_acks: int, delay_s: float) -> list[str]:
        """Kill it a moment after so many acks; everything it said, up to its last line."""
        assert self._process.stdout is not None and self._process.stderr is not None
        said = [self._process.stdout.readline() for _ in range(after_acks)]
        time.sleep(delay_s)
        self._process.send_signal(signal.SIGKILL)
        rest, errors = self._process.stdout.read(), self._process.stderr.read()
        status = self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()
        assert status == -signal.SIGKILL, f"it ended by itself with {status}: {errors.decode()}"
        lines = (b"".join(said) + rest).decode().splitlines()
        return [line for line in lines if line != "open"]
