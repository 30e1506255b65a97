"""Many seeds, one after the other or on several processors, with a tally that is saved as it grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

from topics.clock import SystemClock
from topics.testing.sim.tally import Tally, load
from topics.testing.sim.verdict import Result, live
from topics.testing.sim.world import LIFE_MS

CHUNK = 20
"""Seeds between two looks at the clock, and two savings."""

OnDone = Callable[[Result], None]


def run_seed(seed: int, life_ms: int = LIFE_MS) -> Result:
    """One life. A life that cannot be lived to its end is a failure of its seed, too, and others go on."""
    try:
        return live(seed, life_ms)
    except Exception as error:
        return Result(seed, [f"simulator.broken: {type(error).__name__}: {error}"])


def run_many(
    first_seed: int,
    count: int,
    path: Path,
    *,
    processes: int = 1,
    minutes: float = 0,
    command: str = "",
    on_done: OnDone = lambda result: None,
) -> Tally:
    """Run the seeds that are missing in the tally at `path`, for so many minutes at most; 0 is without end."""
    tally = load(path, first_seed)
    tally.command = command
    clock = SystemClock()
    until_ns = clock.ticks_ns() + int(minutes * 60e9) if minutes else None
    seeds = range(first_seed + tally.seeds, first_seed + count)
    for results in _chunks(seeds, processes):
        for result in results:
            tally.add(result)
            on_done(result)
        tally.save(path)
        if until_ns is not None and clock.ticks_ns() > until_ns:
            break
    return tally


def _chunks(seeds: range, processes: int) -> Iterator[list[Result]]:
    chunks = (seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK))
    if processes == 1:
        for chunk in chunks:
            yield [run_seed(seed) for seed in chunk]
        return
    # Each a fresh interpreter: a life leaves nothing behind, but what a fork takes along is not asked for either.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_end_with_parent)
    try:
        # One chunk ahead: nobody waits for the longest life of a chunk.
        before: Iterator[Result] = iter(())
        for chunk in chain(chunks, [range(0)]):
            ahead = pool.map(run_seed, chunk)
            if results := list(before):
                yield results
            before = ahead
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Who runs many seeds may be killed, and nobody else ends those that it started."""
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
