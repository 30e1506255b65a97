"""Smaller inputs that do the same: of a crash, and of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from proof.fuzz.arcs import Arcs
from proof.fuzz.target import Target
from proof.fuzz.trial import Crash, tried, watched, weighed

TRIES_MAX: Final = 2_000
PLAIN: Final = b"0"


def shrunk(data: bytes, still: Callable[[bytes], bool], tries_max: int = TRIES_MAX) -> bytes:
    """The shortest input found for which something is still so: pieces are left out, halves first and bytes last."""
    size = len(data)
    tries = 0
    while size:
        at = 0
        while at < len(data) and tries < tries_max:
            shorter = data[:at] + data[at + size :]
            tries += 1
            if still(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    for at in range(min(len(data), tries_max - tries)):
        plainer = data[:at] + PLAIN + data[at + 1 :]
        if plainer != data and still(plainer):
            data = plainer
    return data


def smallest_crash(target: Target, crash: Crash) -> Crash:
    """The same crash from an input as short as could be found."""

    def still(data: bytes) -> bool:
        found = weighed(target, data) if crash.what.startswith("TookTooMuch") else tried(target, data)
        return found is not None and found.signature == crash.signature

    if crash.what.startswith("TookTooLong"):
        return crash
    with watched():
        data = shrunk(crash.data, still)
        return weighed(target, data) or crash


def covering(target: Target, corpus: Iterable[bytes], inputs_max: int) -> list[bytes]:
    """Few inputs that together reach what the whole corpus reaches, as far as so many can, each made short."""
    arcs = Arcs(module.__file__ for module in target.modules if module.__file__)
    with watched():
        reached = {data: arcs.of(target.run, data) for data in corpus}
        missing = set().union(*reached.values())
        chosen: list[bytes] = []
        while missing and len(chosen) < inputs_max:
            best = min(reached, key=lambda data: (-len(reached[data] & missing), len(data), data))
            wanted = reached.pop(best) & missing
            missing -= wanted
            chosen.append(_shortened(target, arcs, best, wanted))
    return chosen


def _shortened(target: Target, arcs: Arcs, data: bytes, wanted: set[int] | frozenset[int]) -> bytes:
    def still(shorter: bytes) -> bool:
        return tried(target, shorter) is None and wanted <= arcs.of(target.run, shorter)

    return shrunk(data, still, tries_max=400)
