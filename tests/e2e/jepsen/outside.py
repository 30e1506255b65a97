"""Clients outside the server: they run the simulator's routines over real sockets, and keep the history.

The routines (`topics/testing/sim/actors`) say what to ask and which fields of the answer to note, so the same checkers
read a history from here and a simulated one. A request goes out as plain bytes on a connection of its own; neither the
client library nor the server takes part.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from topics.testing.checkers.events import Outcome
from topics.testing.sim.actor import Actor
from topics.testing.sim.calls import NOT_DONE_CODES, Notebook, Reply, Request
from topics.testing.sim.http import ResponseReader, request_bytes

NS_PER_MS = 1_000_000
CONNECT_S = 2.0
PAUSE_MS_MIN = 1.0
READ_BYTES = 1 << 16


class WallClock:
    """The wall clock as the server sees it: that of the machine plus an offset, read from a file by `setclock.c`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset_ms = 0
        self.jump(0)

    @property
    def offset_ms(self) -> int:
        return self._offset_ms

    def now_ms(self) -> int:
        return time.time_ns() // NS_PER_MS + self._offset_ms

    def jump(self, ms: int) -> None:
        self._offset_ms += ms
        with self._file.open("r+b" if self._file.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("=q", self._offset_ms * NS_PER_MS))


@dataclass(slots=True)
class RealTime:
    """What a notebook needs of a timeline, in real time."""

    clock: WallClock

    @property
    def now_ns(self) -> int:
        return time.monotonic_ns()


class Outside:
    """All clients of one run, and what they noted."""

    def __init__(self, seed: int, clock: WallClock) -> None:
        self.chance = random.Random(f"outside {seed}")
        self.notes = Notebook(RealTime(clock))
        self.port = 0
        """Where the server listens now; 0 while nobody knows."""
        self.stopped = asyncio.Event()
        self._ids = itertools.count(1)

    def next_id(self) -> int:
        return next(self._ids)

    # ---- routines

    async def live(self, actor: Actor) -> None:
        """Run an actor's routine again and again, until everybody is told to stop."""
        while not self.stopped.is_set():
            if self.port:
                await self.once(actor)
            await asyncio.sleep(self.chance.expovariate(1 / actor.pause_ms) / 1000)

    async def once(self, actor: Actor) -> None:
        routine = actor.routine()
        try:
            step = next(routine)
            while True:
                if isinstance(step, Request):
                    step = routine.send(await self.perform(actor.name, step))
                else:
                    await asyncio.sleep(max(PAUSE_MS_MIN, step) / 1000)
                    step = next(routine)
        except StopIteration:
            return

    # ---- one call

    async def perform(self, client: str, request: Request) -> Reply:
        """Ask once, and note what the client knows afterwards."""
        asked = self.notes.ask(client, request.verb, request.place, request.asked)
        reply = await self._exchange(request)
        self.notes.note(asked, reply.outcome, request.read(reply.fields) if reply.ok else {})
        return reply

    async def _exchange(self, request: Request) -> Reply:
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except (OSError, TimeoutError):
            return Reply(Outcome.REFUSED)
        answer = ResponseReader()
        try:
            async with asyncio.timeout(request.timeout_ms / 1000):
                writer.write(request_bytes(request.method, request.path, request.body, request.headers))
                while not answer.is_whole and (data := await reader.read(READ_BYTES)):
                    answer.feed(data)
        except (OSError, TimeoutError):
            return Reply(Outcome.UNKNOWN)
        finally:
            writer.close()
        return self._reply(request, answer)

    def _reply(self, request: Request, answer: ResponseReader) -> Reply:
        if not answer.is_whole:
            return Reply(Outcome.UNKNOWN)
        if answer.status < 300:
            return Reply(Outcome.OK, request.decode(answer), bytes(answer.body))
        refusal = Reply(Outcome.REFUSED, answer.fields())
        if answer.status == 500:
            self.notes.problems.append(f"{request.method} {request.path} was answered {refusal.fields}")
        self.notes.counts[f"refused: {refusal.code}"] += 1
        unsure = answer.status >= 500 and refusal.code not in NOT_DONE_CODES
        return Reply(Outcome.UNKNOWN if unsure else Outcome.REFUSED, refusal.fields)

    async def until_done(self, request: Request, tries: int = 100) -> Reply:
        """Repeat a request that may be repeated until it is answered."""
        for _ in range(tries):
            reply = await self.perform("nobody", request)
            if reply.ok:
                return reply
            await asyncio.sleep(0.1)
        raise AssertionError(f"{request.method} {request.path} is never answered: {reply}")
