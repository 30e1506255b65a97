"""The machine that the server runs on: a disk that tears, a clock that jumps, a process that dies and is started again.

Everything inside the process is the real thing: the server with its protocols, lanes and streams, the host, the engine,
the write-ahead log and checkpoints. Only what the operating system would give is simulated. The threads of the log are
rounds that the timeline calls, one shard at a time, sooner or later as the seed has it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Literal, assert_never, cast

from topics import settings as setting_table
from topics.engine.engine import Engine
from topics.engine.host import Opener
from topics.engine.opening import SALT_BITS, options
from topics.engine.recovery import Progress, recover
from topics.secret import Secret
from topics.server.app import Server
from topics.settings import Settings
from topics.storage.committer import Post
from topics.storage.wal import Wal
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs, SimulatedCrash
from topics.testing.platter import CrashMode
from topics.testing.sim.http import KEY
from topics.testing.sim.loop import Listener, SimLoop
from topics.testing.sim.timeline import Timeline

for loaded in ("topics.sqlengine.executor", "topics.wire.arrow", "topics.wire.arrowbody"):
    # The first request that needs one of these would load it, and the same life would have other steps the next time.
    import_module(loaded)


@dataclass(frozen=True, slots=True)
class Detached:
    """The disk is taken from a machine that keeps running, loses as in a power loss, and comes back."""

    mode: CrashMode

    def __str__(self) -> str:
        return f"detached, {self.mode}"


Death = CrashMode | Detached | Literal["killed", "replaced"]
"""`replaced`: killed, and what was kept in memory beside the disk is gone, as with a container that is made again."""
LOSES_NOTHING: Sequence[Death] = ("killed", "replaced")
DISK_SYNC_MS = 200
SHARDS = 2

SETTINGS = setting_table.build(
    {
        "data_dir": "/data",
        "allowed_hosts": "topics",
        "no_grpc": True,
        "wal_shards": SHARDS,
        "wal_file_bytes": 16 << 10,
        "disk_sync_ms": DISK_SYNC_MS,
        "segment_bytes": 64 << 10,
        "segment_records": 40,
        "checkpoint_ms": 4000,
        "drain_ms": 500,
        "throttle_lag_ms": 0,
        "watch_buffer_bytes": 4096,
    }
)
"""Limits so small that a short life rotates, seals and packs."""


class Machine:
    def __init__(self, timeline: Timeline, chance: random.Random, disk: FakeDisk | None = None) -> None:
        self.timeline = timeline
        self.chance = chance
        self.clock: SimClock = timeline.clock
        self.disk = disk or FakeDisk(chance.getrandbits(32))
        self.fs = FaultFs(self.disk)
        self.loop: SimLoop | None = None
        self.on_death: Callable[[], None] = lambda: None
        """Called when the process has died, of whatever cause."""
        self.slow_ms = 0.0
        """How much longer the disk takes than it should."""
        self.slow_shards: Sequence[int] = range(SHARDS)
        """The parts of the log that this is true of."""
        self.standing_slow_ms: dict[int, float] = {}
        """Parts of the log whose files are slow for good, and how much longer each takes."""
        self.problems: list[str] = []
        self.next_death: Death = "killed"
        """What becomes of the disk when a planned crash comes to pass."""
        self.last_death: Death = "killed"
        self.start_error: BaseException | None = None
        """Why the last start failed."""
        self.on_sick: Callable[[], None] = lambda: None
        """Called once in a life, when a part of the log has stopped because the disk failed it."""
        self.stop_error: BaseException | None = None
        self.on_call: Callable[[Call], None] = lambda call: None
        """Called before each call to the file system."""
        self.on_failed_start: Callable[[], None] = lambda: None
        self._server: Server | None = None
        self._engine: Engine | None = None
        self._working: set[int] = set()
        self._sync_ns = 0
        """The last moment that a sync is planned for."""
        self._sick = False
        self.stopping = False
        """Whether the process was asked to end, in the life that it has or had last."""

    # ---- the life of a process

    def start(self, settings: Settings = SETTINGS) -> None:
        """Boot a process on the disk as it is; it recovers, and serves when it is ready."""
        assert self.loop is None, "it runs already"
        self.fs = FaultFs(self.disk)
        self.fs.on_call = self.on_call
        self._engine = None
        self._working.clear()
        self._sync_ns = 0
        self._sick = False
        self.stopping = False
        loop = self.loop = SimLoop(self.timeline, lambda: self.chance.random() * 2 + self.slow_ms)
        loop.call_soon(self._boot, settings)
        self.settle()

    def _boot(self, settings: Settings) -> None:
        # A server takes the text out of its settings, so each one has its own.
        settings = replace(settings, api_keys=Secret(KEY))
        server = self._server = Server(settings, self.clock, self._opener)
        task = asyncio.ensure_future(self._serve(server))
        task.add_done_callback(self._booted)

    async def _serve(self, server: Server) -> None:
        await server.start()
        await server.ready()

    def _booted(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            # A directory that cannot be opened: whoever runs the machine looks after the disk and starts again.
            self.start_error = error
            self.timeline.after(0, self.on_failed_start)

    def _opener(self, settings: Settings, on_progress: Progress) -> Opener:
        def open_engine(post: Post) -> Engine:
            self._engine = recover(
                self.fs, settings.data_dir, self.clock, self._salt, options(settings), None, on_progress
            )
            return self._engine

        return open_engine

    def _salt(self) -> int:
        return self.chance.getrandbits(SALT_BITS)

    @property
    def running(self) -> bool:
        return self.loop is not None

    @property
    def listener(self) -> Listener | None:
        """Where connections are taken; None while nobody takes any."""
        loop = self.loop
        if loop is None or loop.listener is None or not loop.listener.open:
            return None
        return loop.listener

    def stop(self) -> None:
        """Ask the process to end; it drains, stores everything and goes."""
        loop, server = self.loop, self._server
        if loop is None or server is None or self.stopping:
            return
        self.stopping = True
        loop.call_soon(lambda: asyncio.ensure_future(self._close(server)).add_done_callback(self._closed))
        self.settle()

    async def _close(self, server: Server) -> None:
        await server.close()

    def _closed(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stop_error = error
        self.timeline.after(0, lambda: self._died("killed"))

    def die(self, death: Death) -> None:
        """The process is killed, or the power fails."""
        if self.loop is not None:
            self._died(death)

    def _died(self, death: Death) -> None:
        loop, self.loop = self.loop, None
        if loop is None:
            return
        self.fs.crashed = True
        loop.end()
        self.problems += loop.problems
        self._server = self._engine = None
        self.last_death = death
        self.disk = _after(self.disk, death, self.chance)
        self.on_death()

    # ---- running

    def settle(self) -> None:
        """Let the process do what it can do now, and plan what the threads of its log do about it."""
        loop = self.loop
        if loop is None:
            return
        active = loop.drain()
        if self.fs.crashed and self.loop is loop:
            self._died(self.next_death)
        elif active:
            self._plan_rounds()
        if not self._sick and self._engine is not None and self._engine.turn.any_stopped:
            self._sick = True
            self.on_sick()

    def _plan_rounds(self) -> None:
        for shard in range(SHARDS):
            slow_ms = self.slow_ms if shard in self.slow_shards else 0.0
            self._plan_round(shard, self.chance.random() * 3 + slow_ms + self.standing_slow_ms.get(shard, 0.0))

    def _plan_round(self, shard: int, after_ms: float) -> None:
        if self._engine is not None and shard not in self._working:
            self._working.add(shard)
            loop = self.loop
            self.timeline.after(after_ms, lambda: self._round(loop, shard))

    def _round(self, loop: SimLoop | None, shard: int) -> None:
        if loop is None or self.loop is not loop or self._engine is None:
            return
        self._working.discard(shard)
        wal = cast(Wal, self._engine.wal)
        try:
            worked = wal.work(shard)
        except SimulatedCrash:
            return
        if worked:
            self._plan_rounds()
        due_ns = wal.due_ns()
        if due_ns is not None:
            self._plan_sync(loop, due_ns)

    def _plan_sync(self, loop: SimLoop, due_ns: int) -> None:
        """What waits to be synced is, when its time is over."""
        if due_ns > self._sync_ns:
            self._sync_ns = due_ns
            self.timeline.at(due_ns + int(self.slow_ms * 1_000_000), lambda: self._plan_rounds())


def _after(disk: FakeDisk, death: Death, chance: random.Random) -> FakeDisk:
    """The disk as the next process finds it."""
    match death:
        case "killed" | "replaced":
            return disk.kill(forgetful=death == "replaced")
        case Detached(mode):
            return disk.detach(mode, chance)
        case "lost" | "kept" | "torn" | "zeroed" | "reordered":
            return disk.crash(death, chance)
        case _:
            assert_never(death)
