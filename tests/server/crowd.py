"""A crowd of clients in a process of its own: `python crowd.py PORT IDLE ACTIVE`.

Each end of a connection is an open file, and a process may have so many only; with the crowd elsewhere the server has
all of its own. Lines on stdin and stdout keep the two in step:

    idle      the idle connections are there
    active    the active ones are too, and have asked
    answered  each of them has got its own answer
    gone N    the server has ended N connections, and they are all
"""

from __future__ import annotations

import asyncio
import sys

SIDE_BY_SIDE = 100
"""Connections that are made at once: a listener's queue is short."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def connect(port: int, count: int) -> list[Connection]:
    made: list[Connection] = []
    while len(made) < count:
        size = min(SIDE_BY_SIDE, count - len(made))
        made += await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(size)))
    return made


async def answer(number: int, reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line.split()[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    body = await reader.readexactly(size)
    assert f'"/{number}"'.encode() in body, body


async def crowd(port: int, idle_count: int, active_count: int) -> None:
    idle = await connect(port, idle_count)
    say("idle")
    await asyncio.to_thread(sys.stdin.readline)
    active = await connect(port, active_count)
    for number, (_, writer) in enumerate(active):
        writer.write(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number)
    say("active")
    await asyncio.gather(*(answer(number, reader) for number, (reader, _) in enumerate(active)))
    say("answered")
    ends = await asyncio.gather(*(reader.read(1) for reader, _ in [*idle, *active]))
    for _, writer in [*idle, *active]:
        writer.close()
    say(f"gone {ends.count(b'')}")


if __name__ == "__main__":
    asyncio.run(crowd(*map(int, sys.argv[1:])))
