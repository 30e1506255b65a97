"""Running one part: a process with a log of its own, ended when its time is over."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from proof.soak.part import Part
from proof.tree import ROOT

LAST_LINES = 25


@dataclass(frozen=True, slots=True)
class Ran:
    why: str
    """What went wrong, in a word or two; empty when it passed."""
    seconds: float
    last_words: str


def run(part: Part, logs: Path) -> Ran:
    logs.mkdir(parents=True, exist_ok=True)
    path = logs / f"{part.name}.log"
    began_s = time.monotonic()
    with path.open("w") as log:
        process = subprocess.Popen(
            part.command, cwd=ROOT, env=os.environ | part.variables, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait(part.limit_minutes * 60)
            why = f"ended with {code}" if code else ""
        except subprocess.TimeoutExpired:
            why = f"took longer than {part.limit_minutes:g} minutes"
        finally:
            # Also when somebody interrupts us.
            process.kill()
            process.wait()
    last_words = "\n".join(path.read_text(errors="replace").splitlines()[-LAST_LINES:])
    return Ran(why, time.monotonic() - began_s, last_words)
