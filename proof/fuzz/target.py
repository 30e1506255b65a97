"""A target: one decoder, and what the search has to know of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import sha256
from inspect import getsource
from types import ModuleType
from typing import Final

from topics.limits import KIB, MIB

Run = Callable[[bytes], Hashable]
CODE_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    name: str
    run: Run
    """Decodes an input; what it accepts it also encodes, where that can be done, and compares. It may tell in short
    what came of it: something that nothing came to before is looked at closely."""
    errors: tuple[type[Exception], ...]
    """What it may raise. Anything else is a crash."""
    modules: tuple[ModuleType, ...]
    """Whose arcs guide the search."""
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()
    """Pieces of its language, which chance would take long to find."""
    mend: Callable[[bytes], bytes] = bytes
    """Makes sums over an input right again, so that what stands behind them is reached."""
    bytes_max: int = 4 * KIB
    """Inputs grow no longer."""
    memory_factor: int = 512
    """An input of n bytes may take `MEMORY_BYTES_FREE` and so many times n at its peak."""

    @property
    def code(self) -> str:
        """A hash of the modules, as they are written."""
        digest = sha256()
        for module in self.modules:
            digest.update(getsource(module).encode())
        return digest.hexdigest()[:CODE_DIGITS]


MEMORY_BYTES_FREE: Final = 1 * MIB
"""What any input may take, however short: the machinery around a decoder is not free either."""
CPU_S_MAX: Final = 5.0
"""CPU time that an input may take. A decoder takes microseconds for a few kilobytes, and traced ten times as many."""
