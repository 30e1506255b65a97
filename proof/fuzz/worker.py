"""A search in a process of its own, so that one that takes the process with it is a crash like any other.

Each input is written into a file that both sides share before it is run: what stands there when the process has died
is what killed it.
"""

from __future__ import annotations

import gc
import mmap
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from proof.fuzz import corpus
from proof.fuzz.search import Search
from proof.fuzz.shrinking import covering, smallest_crash
from proof.fuzz.target import Run, Target
from proof.fuzz.targets import TARGETS
from proof.fuzz.trial import Crash

CORPUS_MAX: Final = 512
"""Inputs of a decoder that are kept between searches."""
LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Done:
    inputs: int
    traced: int
    arcs: int
    crashes: list[Crash]
    seconds: float


class LastInput:
    """The input that is being run, where it outlives the process."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(LENGTH_BYTES + bytes_max))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)

    def note(self, data: bytes) -> None:
        self._shared[: LENGTH_BYTES + len(data)] = len(data).to_bytes(LENGTH_BYTES, "little") + data

    @staticmethod
    def read(path: Path) -> bytes:
        text = path.read_bytes()
        return text[LENGTH_BYTES : LENGTH_BYTES + int.from_bytes(text[:LENGTH_BYTES], "little")]


def inputs_of(target: Target) -> list[bytes]:
    """Where a search begins: the seeds, what is kept with the tests, what was found here before."""
    kept = [*corpus.read(corpus.KEPT / target.name), *corpus.read(corpus.FOUND / target.name)]
    return [*target.seeds, *(data for data in kept if len(data) <= target.bytes_max)]


def search(target: Target, seed: int, inputs: int, on_inputs: Callable[[int], None], seconds: float) -> Done:
    """One search, up to so many inputs or seconds; what it finds is in files when it is over."""
    began_s = time.monotonic()
    found = Search(target, inputs_of(target), seed)
    for count in found.run(inputs):
        on_inputs(count)
        if time.monotonic() - began_s > seconds:
            break
    crashes = [smallest_crash(target, crash) for crash in found.crashes.values()]
    corpus.write(corpus.KEPT / target.name, (crash.data for crash in crashes), corpus.CRASH_START)
    if len(found.corpus) > CORPUS_MAX:
        found.corpus = covering(target, found.corpus, CORPUS_MAX)
    corpus.replace(corpus.FOUND / target.name, found.corpus)
    return Done(found.inputs, found.traced, len(found.arcs), crashes, time.monotonic() - began_s)


def search_apart(name: str, seed: int, inputs: int, on_inputs: Callable[[int], None], seconds: float) -> Done:
    """The same in another process; its death is a crash."""
    began_s = time.monotonic()
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(name, seed, inputs, seconds, theirs), daemon=True)
    process.start()
    theirs.close()
    done = 0
    try:
        while True:
            said = ours.recv()
            if isinstance(said, Done):
                return said
            on_inputs(said)
            done += said
    except EOFError:
        process.join()
        if process.exitcode is None or process.exitcode >= 0:
            raise RuntimeError(f"the search of {name} ended with {process.exitcode}: see above why") from None
        data = LastInput.read(_last_path(name))
        corpus.write(corpus.KEPT / name, [data], corpus.CRASH_START)
        crash = Crash(data, f"Died: the process was ended by signal {-process.exitcode}", name)
        return Done(done, 0, 0, [crash], time.monotonic() - began_s)
    finally:
        process.join()


def _serve(name: str, seed: int, inputs: int, seconds: float, pipe: Connection) -> None:
    target = TARGETS[name]
    last = LastInput(_last_path(name), target.bytes_max)

    def run(data: bytes) -> Hashable:
        last.note(data)
        return target.run(data)

    # All modules are there for good: nobody needs to look through them again and again.
    gc.freeze()
    pipe.send(search(_with(target, run), seed, inputs, pipe.send, seconds))


def _with(target: Target, run: Run) -> Target:
    fields = {name: getattr(target, name) for name in Target.__slots__}
    return Target(**{**fields, "run": run})


def _last_path(name: str) -> Path:
    return corpus.FOUND / f"{name}.last"
