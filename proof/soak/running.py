"""Running one part: a process with a log of its own, ended when its time is over."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proof.soak import progress
from proof.soak.part import Part
from proof.tree import ROOT

LAST_LINES = 25
LOOK_S = 0.5
"""How often it is asked how far it is."""

Told = Callable[[float, float], None]
"""Hears how much of all is done."""


@dataclass(frozen=True, slots=True)
class Ran:
    why: str
    """What went wrong, in a word or two; empty when it passed."""
    seconds: float
    last_words: str


def run(part: Part, logs: Path, told: Told = lambda done, total: None) -> Ran:
    logs.mkdir(parents=True, exist_ok=True)
    path, how_far = logs / f"{part.name}.log", logs / f"{part.name}.progress"
    how_far.unlink(missing_ok=True)
    variables = {progress.VARIABLE: str(how_far), **part.variables}
    began_s = time.monotonic()
    with path.open("w") as log:
        process = subprocess.Popen(
            part.command,
            cwd=ROOT,
            env=os.environ | variables,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            with _interrupted_by_sigterm():
                why = _wait(process, part.limit_minutes, how_far, told)
        finally:
            # Also when somebody interrupts us. What it has started, a server under load, ends with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    last_words = "\n".join(path.read_text(errors="replace").splitlines()[-LAST_LINES:])
    return Ran(why, time.monotonic() - began_s, last_words)


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM is as Ctrl-C: what we have started ends with us."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait(process: subprocess.Popen[bytes], limit_minutes: float, how_far: Path, told: Told) -> str:
    """Until it ends or its time is over; what went wrong."""
    deadline_s = time.monotonic() + limit_minutes * 60
    while (left_s := deadline_s - time.monotonic()) > 0:
        try:
            code = process.wait(min(left_s, LOOK_S))
        except subprocess.TimeoutExpired:
            if said := progress.told(how_far):
                told(*said)
        else:
            return f"ended with {code}" if code else ""
    return f"took longer than {limit_minutes:g} minutes"
