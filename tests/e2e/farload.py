"""What goes on in the killed process over its own sockets: heaps over gRPC, a WebSocket, and a group in SQL.

Lanes as those of `mixedload`, of a process that serves. A unary call is answered when what it did is safe; so is a
settle on a Work stream, and a publish. What a watcher was shown is there ever after.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

import topics
from tests.e2e.found import GROUP, check_group, check_log, check_taken
from tests.e2e.ledger import Say
from tests.e2e.mixedload import LEASE_MS, WINDOW_MS, Check, enqueue, settle
from topics.client import Client

PREFETCH = 3
TAKEN = 4
"""Records that the group takes at once."""


class Doors:
    """The ways into one server, each opened once."""

    def __init__(self, client: Client, socket: ClientConnection) -> None:
        self.client = client
        """HTTP, and gRPC for heaps."""
        self.socket = socket
        self.popping = client.heap("stream", consumer="c").pop(prefetch=PREFETCH)
        self._follows = False
        """Whether the socket shows what is published."""

    async def publish(self, number: int, seen: Callable[[int], None], **fields: Any) -> None:
        """Write a record with this number on a socket that follows the topic, and read until it is answered."""
        command = {"op": "publish", "request_id": number, "topic": "socket", "records": [{"data": number}], **fields}
        await self.socket.send(json.dumps(command))
        while (heard := json.loads(await self.socket.recv()))["op"] != "ack":
            if heard.get("code") == "throttled":
                # A machine that is slow for reasons of its own.
                await asyncio.sleep(heard["detail"]["retry_after_ms"] / 1000)
                await self.socket.send(json.dumps(command))
                continue
            assert heard["op"] in ("subscribed", "caught_up", "record"), heard
            for record in heard.get("records", ()):
                seen(record["data"])
        if not self._follows:
            self._follows = True
            await self.socket.send(json.dumps({"op": "subscribe", "topic": "socket", "tail": True}))


@asynccontextmanager
async def doors(url: str, grpc_address: str) -> AsyncIterator[Doors]:
    socket_url = f"{url.replace('http', 'ws', 1)}/v0/ws"
    async with topics.connect(url, grpc=grpc_address) as client, connect(socket_url, ping_interval=None) as socket:
        # What SQL needs takes a while to load, and many a process is not given that long to live.
        await client.sql("SHOW TOPICS")
        yield Doors(client, socket)


Operation = Callable[[Doors, int, Say], Awaitable[None]]


async def _unary(far: Doors, number: int, say: Say) -> None:
    """Enqueue a message, pop one and settle it, each by a call of its own."""
    heap = far.client.heap("unary", consumer="c")
    await enqueue(heap, number)
    for message in await heap.take() if number % 3 else ():
        await settle(message, say)


async def _stream(far: Doors, number: int, say: Say) -> None:
    """Enqueue a message, and settle one of those that came on the Work stream."""
    await enqueue(far.client.heap("stream"), number)
    if number % 3:
        await settle(await anext(far.popping), say)


async def _socket(far: Doors, number: int, say: Say) -> None:
    config = {} if number else {"config": {"idempotency_window_ms": WINDOW_MS}}
    await far.publish(number, partial(say, "seen"), idempotency_key=str(number), **config)


async def _statements(far: Doors, number: int, say: Say) -> None:
    """Insert a record, unless it is there; have the group take a few and ack them.

    Whoever died has claims, which are not ours although we go on with its work: so each life has a name of its own.
    """
    if not number:
        await far.client.sql(f"CREATE TOPIC IF NOT EXISTS statements WITH (visibility_ms = {LEASE_MS})")
    (counted,) = await far.client.sql("SELECT count(*) FROM statements")
    if counted.rows == [[number]]:
        await far.client.sql("INSERT INTO TOPIC statements (data) VALUES (?)", [number])
    if number % TAKEN == TAKEN - 1:
        claims = f"statements GROUP '{GROUP}' CONSUMER 'c{os.getpid()}'"
        (taken,) = await far.client.sql(f"CONSUME FROM {claims} FROM EARLIEST LIMIT {TAKEN}")
        seqs = [dict(zip((column.name for column in taken.columns), row, strict=True))["offset"] for row in taken.rows]
        for seq in seqs:
            say("settling", seq)
        if seqs:
            (done,) = await far.client.sql(f"ACK {claims} UPTO OFFSET ?", [seqs[-1]])
            say("committed", done.rows[0][-1])


OPERATIONS: dict[str, Operation] = {
    "unary": _unary,
    "stream": _stream,
    "socket": _socket,
    "statements": _statements,
}
CHECKS: dict[str, Check] = {
    "unary": check_taken,
    "stream": check_taken,
    "socket": check_log,
    "statements": check_group,
}
