"""A process with several consumers of one heap over gRPC, that keeps a ledger which outlives it.

    python -m tests.e2e.heapconsumer ENDPOINT LEDGER CONSUMERS

A line of the ledger is `begun` or `done`, the message, its attempts and the consumer; `done` is written when the
server has said so. Each consumer pops on a stream of its own until the process is told to stop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import aclosing, suppress

import topics
from topics import errors

PREFETCH = 10


async def consume(client: topics.Client, file: int, name: str) -> None:
    heap = client.heap("jobs", consumer=name)

    def note(what: str, message: topics.Message) -> None:
        line = f"{what} {message.data} {message.attempts} {name}\n"
        assert os.write(file, line.encode()) == len(line)

    async def handle(message: topics.Message) -> None:
        note("begun", message)
        if await message.ack():
            note("done", message)

    await until_there(heap)
    async with aclosing(heap.pop(prefetch=PREFETCH)) as messages, asyncio.TaskGroup() as handling:
        async for message in messages:
            handling.create_task(handle(message))


async def until_there(heap: topics.Heap) -> None:
    """The server may be between two lives when this process begins, and who was never there is an error."""
    while True:
        with suppress(errors.Unavailable):
            await heap.info()
            return


async def main(endpoint: str, ledger: str, consumers: str) -> None:
    file = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with topics.connect(grpc=endpoint) as client:
        consuming = [
            asyncio.create_task(consume(client, file, f"{os.getpid()}-{number}")) for number in range(int(consumers))
        ]
        stopping = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait({*consuming, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in consuming:
            task.cancel()
        await asyncio.wait(consuming)
        for task in done - {stopping}:
            task.result()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
