"""Many watchers in a process of their own: `python audience.py PORT COUNT RECORDS [TOPIC]`.

All watch one topic, `news` without another name. Lines on stdout keep the two processes in step:

    open       every watcher has its stream, and has caught up
    heard N    N watchers got RECORDS records, each once and in order; now they all go away, some politely, some not
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import sys

SIDE_BY_SIDE = 50
"""Connections that are made at once: a listener's queue is short."""
SEQ = re.compile(rb'"\$seq":(\d+)')

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def listen(port: int, topic: str) -> Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"topics": {topic: {"tail": True}}}).encode()
    head = b"POST /v0/watch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % len(body) + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    size = int(re.search(rb"Content-Length: (\d+)", answer)[1])  # type: ignore[index]
    url = json.loads(await reader.readexactly(size))["stream_url"]
    writer.write(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % url.encode())
    await reader.readuntil(b"event: caught-up\n")
    return reader, writer


async def hear(reader: asyncio.StreamReader, count: int) -> bool:
    seqs: list[int] = []
    rest = b""
    while len(seqs) < count:
        *lines, rest = (rest + await reader.read(1 << 16)).split(b"\n")
        seqs += [int(seq) for line in lines for seq in SEQ.findall(line)]
    return seqs == list(range(1, count + 1))


async def audience(port: int, count: int, records: int, topic: str = "news") -> None:
    connections: list[Connection] = []
    while len(connections) < count:
        size = min(SIDE_BY_SIDE, count - len(connections))
        connections += await asyncio.gather(*(listen(port, topic) for _ in range(size)))
    say("open")
    heard = await asyncio.gather(*(hear(reader, records) for reader, _ in connections))
    for number, (_, writer) in enumerate(connections):
        if number % 2:
            # A reset instead of an end.
            connected = writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()
    say(f"heard {sum(heard)}")


if __name__ == "__main__":
    asyncio.run(audience(*map(int, sys.argv[1:4]), *sys.argv[4:]))
