"""The process that is killed: works on all lanes at once, and says on stdout what was acked.

python -m tests.e2e.writer DOOR DIRECTORY CHECKPOINT_MS LANE=FIRST_OPERATION …

The door is `open`, the engine in the process, or `serve`, a server to which all lanes speak over sockets; the lanes of
`farload` need one. A line is a lane and the number of an operation that was answered, or a lane, a word of `ledger`
and a number.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from itertools import count

import topics
from tests.e2e import farload, mixedload
from tests.e2e.workload import perform
from topics import settings
from topics.cli.eventloop import loop_factory
from topics.clock import SystemClock
from topics.server.app import Server

STUCK_SECONDS = 120
"""A process that nobody kills says where it hangs, and ends."""
SMALL = {"wal_file_bytes": 64 << 10, "segment_bytes": 32 << 10, "disk_sync_ms": 5}
"""So that much happens soon."""
LOCAL = {"host": "127.0.0.1", "port": 0, "grpc_port": 0, "no_grpc": False, "throttle_lag_ms": 0}
"""A machine that is slow for reasons of its own is not to be throttled."""

Operation = Callable[[int], Awaitable[None]]


def _say(*words: object) -> None:
    # One short write to a pipe is never torn, and what was written outlives this process.
    try:
        os.write(sys.stdout.fileno(), f"{' '.join(map(str, words))}\n".encode())
    except BrokenPipeError:
        # Whoever was to kill us is dead.
        os._exit(1)


def _near(client: topics.Client, lane: str) -> Operation:
    mixed = mixedload.OPERATIONS.get(lane)
    if mixed is None:
        return partial(perform, client, lane)
    return lambda number: mixed(client, number, partial(_say, lane))


def _far(doors: farload.Doors, lane: str) -> Operation:
    far = farload.OPERATIONS.get(lane)
    if far is None:
        return _near(doors.client, lane)
    return lambda number: far(doors, number, partial(_say, lane))


async def _work(operation: Operation, lane: str, first_operation: int) -> None:
    for number in count(first_operation):
        await operation(number)
        _say(lane, number)


@asynccontextmanager
async def _opened(directory: str, checkpoint_ms: int) -> AsyncIterator[Callable[[str], Operation]]:
    async with topics.open(directory, checkpoint_ms=checkpoint_ms, **SMALL) as client:
        yield partial(_near, client)


@asynccontextmanager
async def _served(directory: str, checkpoint_ms: int) -> AsyncIterator[Callable[[str], Operation]]:
    values = {**asdict(settings.load({})), **SMALL, **LOCAL, "data_dir": directory, "checkpoint_ms": checkpoint_ms}
    async with Server(settings.build(values), SystemClock()) as server:
        await server.ready()
        async with farload.doors(server.url, server.grpc_address) as doors:
            yield partial(_far, doors)


DOORS = {"open": _opened, "serve": _served}


async def _main(door: str, directory: str, checkpoint_ms: int, lanes: dict[str, int]) -> None:
    async with DOORS[door](directory, checkpoint_ms) as operation_of:
        _say("open")
        await asyncio.gather(*(_work(operation_of(lane), lane, first) for lane, first in lanes.items()))


if __name__ == "__main__":
    faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
    door, directory, checkpoint_ms, *rest = sys.argv[1:]
    lanes = {lane: int(first) for lane, first in (part.split("=") for part in rest)}
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_main(door, directory, int(checkpoint_ms), lanes))
