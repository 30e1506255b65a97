"""How much memory this process took at its peak, as the kernel counts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from topics.limits import KIB

RESET_PEAK = "5"
STATUS = Path("/proc/self/status")


def _bytes(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * KIB


@contextmanager
def grows_at_most(bytes_max: int) -> Iterator[None]:
    """What is done within takes no more memory than that at any time, beside what there was."""
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    except OSError:
        pytest.skip("the kernel does not let us measure a peak")
    before = _bytes("VmRSS")
    yield
    grown = _bytes("VmHWM") - before
    assert grown <= bytes_max, f"{grown >> 20} MiB more at the peak, {bytes_max >> 20} MiB are allowed"
