"""One run of a decoder, and what came of it: nothing, or a crash.

CPU time and not the time on the wall is bounded, so that a busy machine makes no crashes. The alarm is a signal, hence
a trial belongs on the main thread.
"""

from __future__ import annotations

import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, TracebackType

from proof.fuzz.target import CPU_S_MAX, MEMORY_BYTES_FREE, Target


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


@contextmanager
def watched() -> Iterator[None]:
    """Within, whatever takes too long is interrupted."""
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise TookTooLong


def tried(target: Target, data: bytes) -> Crash | None:
    """Run an input; None when it is accepted or refused as it should be. Only within `watched`."""
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S_MAX)
    try:
        target.run(data)
    except target.errors:
        pass
    except TookTooLong as error:
        return Crash(data, f"TookTooLong: more than {CPU_S_MAX:g} s of CPU time", _place(target, error.__traceback__))
    except Exception as error:
        return Crash(data, f"{type(error).__name__}: {error}", _place(target, error.__traceback__))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


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


def _place(target: Target, trace: TracebackType | None) -> str:
    files = {module.__file__: module.__name__ for module in target.modules}
    found = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in files or not found:
            found = f"{files.get(name, name.rpartition('/')[2])}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
