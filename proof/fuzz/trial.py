"""One run of a decoder, and what came of it: a way that it went, or a crash.

CPU time and not the time on the wall is bounded, so that a busy machine makes no crashes. The alarm is a signal, hence
a trial belongs on the main thread. It rings every now and then, whatever is running: setting it for each input would
cost as much as many a decoder does.
"""

from __future__ import annotations

import signal
import tracemalloc
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Final

from proof.fuzz.target import CPU_S_MAX, MEMORY_BYTES_FREE, Target

RINGS_MAX: Final = 4
"""The alarm rings so often in the CPU time that an input may take."""
_WAY_BITS: Final = 0xFFFF_FFFF_FFFF


class TookTooLong(BaseException):
    """Not an `Exception`, so that no decoder takes it for one of its own."""


@dataclass(frozen=True, slots=True)
class Crash:
    data: bytes
    what: str
    """The error in one line."""
    where: str
    """The innermost line of ours that it went through: two crashes in the same place are one."""

    @property
    def signature(self) -> tuple[str, str]:
        return self.what.partition(":")[0], self.where


class Alarm:
    """Interrupts a trial that it has heard for too long."""

    def __init__(self) -> None:
        self.trial = 0
        """Which one is running; it is counted up by whoever begins one."""
        self.running = False
        self._heard = 0
        self._rings = 0

    def ring(self, number: int, frame: FrameType | None) -> None:
        if not self.running:
            return
        if self._heard != self.trial:
            self._heard, self._rings = self.trial, 0
            return
        self._rings += 1
        if self._rings >= RINGS_MAX:
            raise TookTooLong


ALARM: Final = Alarm()


@contextmanager
def watched() -> Iterator[None]:
    """Within, whatever takes too long is interrupted."""
    every_s = CPU_S_MAX / RINGS_MAX
    before = signal.signal(signal.SIGVTALRM, ALARM.ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, every_s, every_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def attempt(target: Target, data: bytes) -> Crash | Hashable:
    """Run an input: a crash, or else the way it went; two that differ in it did not do the same. Within `watched`."""
    alarm = ALARM
    alarm.trial += 1
    alarm.running = True
    try:
        return target.run(data)
    except target.errors as error:
        return _way(error.__traceback__)
    except TookTooLong as error:
        return Crash(data, f"TookTooLong: more than {CPU_S_MAX:g} s of CPU time", _place(target, error.__traceback__))
    except Exception as error:
        return Crash(data, f"{type(error).__name__}: {error}", _place(target, error.__traceback__))
    finally:
        alarm.running = False


def tried(target: Target, data: bytes) -> Crash | None:
    """The same for who asks for a crash only; None when the input is accepted or refused as it should be."""
    came = attempt(target, data)
    return came if isinstance(came, Crash) else None


def weighed(target: Target, data: bytes) -> Crash | None:
    """The same, and how much memory it takes at its peak."""
    begun = not tracemalloc.is_tracing()
    if begun:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        crash = tried(target, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if begun:
            tracemalloc.stop()
    allowed = MEMORY_BYTES_FREE + target.memory_factor * len(data)
    if crash is None and peak - before > allowed:
        what = f"TookTooMuch: {peak - before} bytes of memory for {len(data)} bytes of input, {allowed} are allowed"
        return Crash(data, what, target.name)
    return crash


def _way(trace: TracebackType | None) -> int:
    """The calls that an error came through, as a number."""
    way = 0
    while trace is not None:
        way = way * 1_000_003 + trace.tb_lasti & _WAY_BITS
        trace = trace.tb_next
    return way


def _place(target: Target, trace: TracebackType | None) -> str:
    files = {module.__file__: module.__name__ for module in target.modules}
    found = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in files or not found:
            found = f"{files.get(name, name.rpartition('/')[2])}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
