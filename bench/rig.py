"""An engine as a server would run it, and the loop that feeds it: asyncio, WAL threads, real files."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from topics.clock import SystemClock
from topics.core.commands import Append, Command
from topics.engine.engine import Engine, EngineLimits
from topics.engine.host import Host
from topics.engine.opening import options as options_of
from topics.engine.recovery import Options, recover
from topics.engine.ticket import Ticket
from topics.errors import Throttled
from topics.limits import DAY_MS
from topics.settings import Settings
from topics.storage.committer import Post
from topics.storage.fs import RealFs
from topics.wire.records import decode_write

IN_FLIGHT = 8
"""Batches sent before the first one is answered."""
TURN = 16
"""One-record writes that arrive in one turn of the loop."""

DEFAULTS = options_of(Settings())
NO_CHECKPOINTS = replace(DEFAULTS, limits=EngineLimits(checkpoint_ms=DAY_MS, dirty_bytes_max=1 << 40))


def use_one_core() -> None:
    """Stay on one core, the last: the first is where most interrupts go."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def recovered(directory: Path, options: Options, post: Post | None) -> Engine:
    return recover(RealFs(), str(directory), SystemClock(), lambda: random.getrandbits(64), options, post)


@asynccontextmanager
async def running(directory: Path, options: Options | None = None) -> AsyncIterator[Host]:
    """The engine on a directory, with the options that `topics.open` has by itself; closed cleanly in the end."""
    chosen = options or DEFAULTS
    host = await Host.open(lambda post: recovered(directory, chosen, post))
    try:
        yield host
    finally:
        await host.close()


class Timer:
    """`with Timer() as timer: …`, then `timer.seconds`."""

    def __enter__(self) -> Timer:
        self._began = perf_counter()
        self.seconds = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = perf_counter() - self._began


async def answered(host: Host, ticket: Ticket) -> None:
    if ticket.done:
        ticket.result()
    else:
        await host.answer(ticket)


async def send(host: Host, commands: Iterable[Command], in_flight: int = IN_FLIGHT) -> None:
    """Submit all commands, at most so many ahead of the answers; all are answered on return."""
    waiting: deque[Ticket] = deque()
    for command in commands:
        try:
            waiting.append(host.engine.submit(command))
        except Throttled:
            await host.submit_patiently(command)
        if len(waiting) >= in_flight:
            await answered(host, waiting.popleft())
    while waiting:
        await answered(host, waiting.popleft())


async def write(host: Host, topic: str, bodies: Iterable[bytes]) -> None:
    """What a server does with each body: decode, check, append."""
    await send(host, (Append(topic, decode_write(body).records) for body in bodies))


async def write_in_turns(host: Host, topic: str, bodies: Iterable[bytes]) -> None:
    """One-record writes, a turn of them at a time; a turn ends when all of it is answered."""
    turn: list[Ticket] = []
    for body in bodies:
        turn.append(host.engine.submit(Append(topic, decode_write(body).records)))
        if len(turn) == TURN:
            for ticket in reversed(turn):
                await answered(host, ticket)
            turn.clear()
    for ticket in turn:
        await answered(host, ticket)


def forget_cached(directory: Path) -> None:
    """Drop a directory's files from the operating system's cache: the next read comes from the disk."""
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


Step = Callable[[str], None]
"""Called with what a measure is about to do."""
