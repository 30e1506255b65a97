"""Producers and consumers of the heap over gRPC, by stubs that protoc makes of the published contract."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc

from tests.e2e.jepsen.outside import Outside
from topics.testing.checkers.events import Outcome
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.plan import HEAP as CONFIG
from topics.testing.sim.plan import LATE_MS, LEASE_MS, PROMISES

HEAP = "calls"
"""A heap of their own: payloads over gRPC are bytes, those of the simulator's clients are JSON."""
PROMISE = {HEAP: PROMISES["heap"]}
TIMEOUT_S = 4.0
STREAM_S = 1.0
"""How long a consumer waits for a message before it closes its stream."""
IDLE_ROUNDS = 4
NOT_DONE = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
PAUSE_S = 0.09
TRIES_MAX = 8


def make_request() -> Request:
    return Request("make", "", "PUT", f"/v0/topics/{HEAP}", CONFIG)


def letters_request() -> Request:
    return Request("letters", HEAP, "GET", f"/v1/heaps/{HEAP}/dlq?limit=1000", None, {}, _read_letters)


def _read_letters(fields: Fields) -> Fields:
    return {"ids": [json.loads(base64.b64decode(one["payload"]))["id"] for one in fields["items"]]}


def _millis(stamp: Any) -> int:
    return int(stamp.seconds * 1000 + round(stamp.nanos / 1_000_000))


class GrpcClients:
    """What all of them share: the messages, the stubs and the address of the server."""

    def __init__(self, outside: Outside, generated: tuple[Any, Any]) -> None:
        self.outside = outside
        self.messages, self._stubs = generated
        self.address = ""

    def stub(self) -> tuple[Any, Any]:
        channel = grpc.aio.insecure_channel(self.address)
        return channel, self._stubs.DisheapStub(channel)

    # ---- a producer

    async def produce(self, name: str) -> None:
        """Enqueue single messages as a producer; repeat each until it is answered."""
        outside = self.outside
        while not outside.stopped.is_set():
            number = outside.next_id()
            priority = outside.chance.randint(-5, 20)
            asked = {"ids": [number], "priorities": [priority], "delays": {number: 0}, "key": f"{name}-{number}"}
            request = self.messages.EnqueueReq(
                topic=HEAP,
                payload=json.dumps({"id": number}).encode(),
                priority=priority,
                producer_id=name,
                epoch=1,
                sequence=number,
            )
            for _ in range(TRIES_MAX):
                if await self._call("enqueue", asked, "Enqueue", request, lambda said: {"messages": [said.message_id]}):
                    break
                await asyncio.sleep(outside.chance.random() * 0.3)
            await asyncio.sleep(outside.chance.expovariate(1 / PAUSE_S))

    # ---- a consumer

    async def consume(self, name: str) -> None:
        """Take one message on a stream; ack it, give it back, or let its lease end."""
        while not self.outside.stopped.is_set():
            if self.address:
                await self._take_one()
            await asyncio.sleep(self.outside.chance.expovariate(1 / PAUSE_S))

    async def drain(self) -> None:
        """Take and ack all that is left, until nothing comes for longer than any backoff."""
        idle = 0
        while idle < IDLE_ROUNDS:
            idle = 0 if await self._take_one(acks=True) else idle + 1

    async def _take_one(self, acks: bool = False) -> bool:
        """Whether there was a message."""
        outside = self.outside
        channel, stub = self.stub()
        async with channel:
            finished = asyncio.Event()
            asked = outside.notes.ask("grpc", "claim", HEAP, {"max": 1})
            stream = stub.PopStream(self._openings(finished))
            try:
                item = await asyncio.wait_for(stream.read(), STREAM_S)
            except (TimeoutError, grpc.RpcError):
                item = grpc.aio.EOF
            if item is grpc.aio.EOF:
                outside.notes.note(asked, Outcome.UNKNOWN, {})
            else:
                outside.notes.note(asked, Outcome.OK, {"grants": [_grant(item)]})
                await self._settle(item, acks)
            finished.set()
            stream.cancel()
        return item is not grpc.aio.EOF

    async def _openings(self, finished: asyncio.Event) -> AsyncIterator[Any]:
        wanted = self.messages.PopFilter(topic=HEAP)
        wanted.visibility_timeout.FromMilliseconds(LEASE_MS)
        yield self.messages.PopOpen(filter=wanted)
        yield self.messages.PopOpen(flow_control=self.messages.FlowControl(credits=1))
        await finished.wait()

    async def _settle(self, item: Any, acks: bool) -> None:
        """The stream stays open until the lease is over: closing it would give the message back."""
        chance = self.outside.chance
        if not acks:
            await asyncio.sleep(chance.choice((5, 60, LEASE_MS + LATE_MS)) / 1000)
        fate = 0.0 if acks else chance.random()
        asked = {"items": [item.message_id], "leases": [item.lease_token]}
        fields = {"topic": HEAP, "message_id": item.message_id, "lease_token": item.lease_token}
        if fate < 0.6:
            await self._call("ack", asked, "Ack", self.messages.AckReq(**fields), _settled)
        elif fate < 0.8:
            await self._call("nack", asked, "Nack", self.messages.NackReq(**fields), _settled)
        else:
            await asyncio.sleep(2 * LEASE_MS / 1000)

    async def _call(self, verb: str, asked: Fields, rpc: str, request: Any, read: Any) -> bool:
        """One unary call in the history; whether it was answered."""
        notes = self.outside.notes
        if not self.address:
            return False
        channel, stub = self.stub()
        call = notes.ask("grpc", verb, HEAP, asked)
        async with channel:
            try:
                said = await getattr(stub, rpc)(request, timeout=TIMEOUT_S)
            except grpc.RpcError as error:
                code = error.code()
                notes.counts[f"refused: {code.name}"] += 1
                if code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
                    notes.problems.append(f"{rpc} was answered {code.name}: {error.details()}")
                notes.note(call, Outcome.REFUSED if code in NOT_DONE else Outcome.UNKNOWN, {})
                return False
        notes.note(call, Outcome.OK, read(said))
        return True


def _settled(said: Any) -> Fields:
    return {"skipped": [], "deadlines": {}}


def _grant(item: Any) -> Fields:
    deadline_ms = _millis(item.lease_deadline)
    return {
        "item": item.message_id,
        "id": json.loads(item.payload)["id"],
        "lease": item.lease_token,
        "granted_ms": deadline_ms - LEASE_MS,
        "deadline_ms": deadline_ms,
        "attempts": item.attempts,
        "born_ms": _millis(item.enqueued_time),
    }
