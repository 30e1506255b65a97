"""A worker process that keeps a ledger: what it began and what it has done, each written before it goes on.

    python -m tests.e2e.worker URL LEDGER

A line of the ledger is `begun` or `done`, the seq, the delivery, when it was written, and the deadline of the lease
then, both in milliseconds. A line that was written outlives the process that wrote it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time

import topics

CONCURRENCY = 8
LEASE_MS = 2000
WORK_SECONDS_MAX = 0.01
RETRY_SECONDS = 0.1


async def main(url: str, ledger: str) -> None:
    file = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    def note(what: str, job: topics.Job) -> None:
        line = f"{what} {job.seq} {job.deliveries} {time.time_ns() // 1_000_000} {job.deadline_ms}\n"
        assert os.write(file, line.encode()) == len(line)

    async def handle(job: topics.Job) -> None:
        note("begun", job)
        await asyncio.sleep(random.uniform(0, WORK_SECONDS_MAX))
        note("done", job)

    async with topics.connect(url) as client:
        await reach(client)
        await client.queue("jobs").run(handle, concurrency=CONCURRENCY, lease_ms=LEASE_MS, stop=stop)


async def reach(client: topics.Client) -> None:
    """Wait for a server that is not there yet; from then on that is for the worker to do."""
    while True:
        try:
            await client.queue("jobs").state()
            return
        except topics.errors.Unavailable:
            await asyncio.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
