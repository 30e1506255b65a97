"""The process that is killed: works on all lanes at once, and says on stdout what was acked.

python -m tests.e2e.writer DIRECTORY CHECKPOINT_MS LANE=FIRST_OPERATION …

A line is a lane and the number of an operation that was answered, or a lane, a word of `mixedload` and a number.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
from functools import partial
from itertools import count

import topics
from tests.e2e.mixedload import OPERATIONS
from tests.e2e.workload import perform

STUCK_SECONDS = 120
"""A process that nobody kills says where it hangs, and ends."""


def _say(*words: object) -> None:
    # One short write to a pipe is never torn, and what was written outlives this process.
    os.write(sys.stdout.fileno(), f"{' '.join(map(str, words))}\n".encode())


async def _work(client: topics.Client, lane: str, first_operation: int) -> None:
    mixed = OPERATIONS.get(lane)
    for number in count(first_operation):
        if mixed is None:
            await perform(client, lane, number)
        else:
            await mixed(client, number, partial(_say, lane))
        _say(lane, number)


async def _main(directory: str, checkpoint_ms: str, lanes: dict[str, int]) -> None:
    small = {"wal_file_bytes": 64 << 10, "segment_bytes": 32 << 10, "disk_sync_ms": 5}
    async with topics.open(directory, checkpoint_ms=int(checkpoint_ms), **small) as client:
        _say("open")
        await asyncio.gather(*(_work(client, lane, first) for lane, first in lanes.items()))


if __name__ == "__main__":
    faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
    directory, checkpoint_ms, *rest = sys.argv[1:]
    lanes = {lane: int(first) for lane, first in (part.split("=") for part in rest)}
    asyncio.run(_main(directory, checkpoint_ms, lanes))
