"""What goes wrong in a run, one thing at a time, as often and in the order that the seed has it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from tests.e2e.jepsen.machine import DISK_SYNC_MS, SHARDS, PowerDisk, Server
from tests.e2e.jepsen.outside import Outside
from tests.e2e.jepsen.platter import LOSS_MODES
from topics.testing.checkers.events import Fault

DAY_MS = 24 * 3600 * 1000
SLACK_MS = 2500
"""How late a sync of class `disk` may be on a busy machine, behind `TOPICS_DISK_SYNC_MS` and the disk's own delay."""
JUMPS_MS = (50, -50, 1000, -1000, 3_600_000, -3_600_000, 3 * DAY_MS)
SLOW_S = (0.02, 0.15, 0.5)
FULL_S = 2.0
SLOW_FOR_S = 4.0
JUMP_FOR_S = 3.0


class Faults:
    def __init__(self, disk: PowerDisk, server: Server, outside: Outside, chance: random.Random) -> None:
        self.disk = disk
        self.server = server
        self.outside = outside
        self.on_start: Callable[[], None] = lambda: None
        """Called when the server serves again, perhaps elsewhere."""
        self._chance = chance
        self._slowest_s = 0.0
        self._kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "kill": self._kill,
            "power loss": self._lose_power,
            "detached disk": self._detach,
            "clean stop": self._stop,
            "clock jump": self._jump,
            "full disk": self._fill,
            "slow shard": self._slow,
        }

    async def strike(self) -> None:
        """One fault, to its end."""
        name = self._chance.choice(sorted(self._kinds))
        self.outside.notes.faults[name] += 1
        await self._kinds[name]()

    async def _pause(self, most_s: float) -> None:
        await asyncio.sleep(self._chance.random() * most_s)

    # ---- the process

    async def start(self) -> None:
        await self.server.start()
        self.outside.port = self.server.http_port
        self.on_start()

    def _died(self, power: bool, stopped: bool = False, sick_from: int | None = None) -> None:
        notes, self.outside.port = self.outside.notes, 0
        window_ms = DISK_SYNC_MS + SLACK_MS + int(4000 * self._slowest_s)
        notes.history.faults.append(Fault(notes.moment(), notes.now_ms, power, window_ms, stopped, sick_from))

    async def _kill(self, sick_from: int | None = None) -> None:
        await self.server.kill()
        self._died(power=False, sick_from=sick_from)
        await self._pause(0.3)
        await self.start()

    async def _stop(self) -> None:
        code = await self.server.stop()
        self._died(power=False, stopped=True)
        if code:
            self.outside.notes.problems.append(f"a server that was asked to end ended with {code}")
        await self.start()

    async def _lose_power(self) -> None:
        await self.server.kill()
        await self._take_unsynced()

    async def _detach(self) -> None:
        """The disk goes while the server runs, and comes back without what was not synced."""
        self.disk.command("detach")
        sick_from = self.outside.notes.moment()
        await self._pause(0.5)
        await self.server.kill()
        await self._take_unsynced(sick_from)

    async def _take_unsynced(self, sick_from: int | None = None) -> None:
        self.disk.lose_power(self._chance.choice(LOSS_MODES), self._chance.getrandbits(32))
        self._died(power=True, sick_from=sick_from)
        await self.start()

    # ---- the disk and the clock

    async def _fill(self) -> None:
        sick_from = self.outside.notes.moment()
        self.disk.command("fill", room_bytes=self._chance.randint(0, 30_000))
        await self._pause(FULL_S)
        self.disk.command("empty")
        await self._kill(sick_from)

    async def _slow(self) -> None:
        """One shard of the log is slow, and the other is not."""
        self._slowest_s = max(self._slowest_s, seconds := self._chance.choice(SLOW_S))
        self.disk.command("slow", prefix=f"/data/wal/{self._chance.randrange(SHARDS)}-", seconds=seconds)
        await self._pause(SLOW_FOR_S)
        self.disk.command("slow", prefix="", seconds=0)

    async def _jump(self) -> None:
        """The clock shows another time for a while, then the right one."""
        ms = self._chance.choice(JUMPS_MS)
        self.outside.notes.jump(ms)
        await self._pause(JUMP_FOR_S)
        self.outside.notes.jump(-ms)
