"""What goes wrong: the machine, its disk and its clock, as often and in the order that the seed has it.

Each seed draws which kinds it has, so that some lives are mostly crashes and some mostly a bad disk. Every fault is
counted by its kind. When the disk has failed, whoever runs the machine sees to it: mends it and starts again.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

from topics.testing.faultfs import Call, When
from topics.testing.platter import CRASH_MODES
from topics.testing.sim.calls import Notebook
from topics.testing.sim.loop import SimLoop
from topics.testing.sim.machine import DISK_SYNC_MS, LOSES_NOTHING, SHARDS, Death, Detached, Machine
from topics.testing.sim.network import CALM, Network, Weather
from topics.testing.sim.slowshard import SlowShard
from topics.testing.sim.timeline import Timeline

HOUR_MS = 3_600_000
FAULT_MS = 350.0
"""Time between two faults of the machine, on average."""
SLACK_MS = 60
"""How late a sync may come on a disk that keeps up: rounds of the log take a few milliseconds each."""


class Faults:
    def __init__(
        self, timeline: Timeline, machine: Machine, network: Network, notes: Notebook, chance: random.Random
    ) -> None:
        self._timeline = timeline
        self._machine = machine
        self._network = network
        self._notes = notes
        self._chance = chance
        self._over = False
        self._healed: SimLoop | None = None
        """The process that ran when everything was healed: what it met before may still keep it from starting."""
        self._slowest_ms = 0.0
        self._sick_since_ms: int | None = None
        """When the disk first failed the log, in this life of the process."""
        self._sick_from: int | None = None
        self._forgot = False
        """Whether it threw away what it could not sync: only a reboot tells what is left."""
        self._restarting = False
        kinds: list[tuple[str, Callable[[], None]]] = [
            ("kill", self._kill),
            ("power loss", self._lose_power),
            ("detached disk", self._detach),
            ("replaced process", self._replace),
            ("crash at a file call", self._crash_at_call),
            ("clean stop", self._stop),
            ("failing sync", self._fail_sync),
            ("failing write", self._fail_write),
            ("torn write", self._tear),
            ("full disk", self._fill),
            ("slow disk", self._slow),
            ("clock jump forward", self._jump_forward),
            ("clock jump back", self._jump_back),
            ("clock far ahead for a while", self._go_astray),
            ("weather", self._weather),
        ]
        self.slow_shard = SlowShard(machine, notes, chance)
        count = chance.randint(3, len(kinds))
        self._kinds = chance.sample(kinds, count)

    @property
    def disk_is_well(self) -> bool:
        """Whether the disk has failed nothing in this life of the process."""
        return self._sick_since_ms is None and not self._forgot

    def begin(self) -> None:
        self.slow_shard.begin()
        self._weather()
        self._plan()

    def _plan(self) -> None:
        self._timeline.after(self._chance.expovariate(1 / FAULT_MS), self._strike)

    def _strike(self) -> None:
        if self._over:
            return
        name, fault = self._chance.choice(self._kinds)
        if self._machine.running:
            self._notes.faults[name] += 1
            fault()
        self._plan()

    def heal(self) -> None:
        """From here on nothing fails any more."""
        self._over = True
        self._healed = self._machine.loop
        self._network.weather = CALM
        self._machine.fs.clear()
        self._machine.disk.set_capacity(None)
        self._machine.slow_ms = 0.0
        self.slow_shard.heal()
        if self._sick_since_ms is not None or not self._machine.running:
            self._restart_soon(0)

    # ---- the process

    def died(self) -> None:
        """The process is gone, and with it what was not on the disk."""
        death = self._machine.last_death
        window_ms = DISK_SYNC_MS + SLACK_MS + int(4 * (self._slowest_ms + self.slow_shard.slow_ms))
        if self._sick_since_ms is not None:
            window_ms += self._notes.now_ms - self._sick_since_ms
        self._notes.died(death not in LOSES_NOTHING, window_ms, self._machine.stopping, self._sick_from)
        self._notes.faults[f"died: {death}"] += 1
        self._slowest_ms = self._machine.slow_ms
        self._sick_since_ms = self._sick_from = None
        self._forgot = False
        self._restart_soon(self._chance.random() * 400)

    def _restart_soon(self, after_ms: float) -> None:
        if not self._restarting:
            self._restarting = True
            self._timeline.after(after_ms, self._restart)

    def _restart(self) -> None:
        self._restarting = False
        machine = self._machine
        if machine.running:
            # The disk has failed: mend it, and begin anew on what is there.
            machine.die(self._chance.choice(CRASH_MODES) if self._forgot else self._death())
            return
        machine.disk.set_capacity(None)
        machine.next_death = self._death()
        machine.start()

    def sick(self) -> None:
        """A part of the log has stopped. Whoever runs the machine hears of it after a while."""
        if self._sick_since_ms is None:
            self._sick_since_ms = self._notes.now_ms
        self._sick_from = self._notes.moment()
        self._restart_soon(self._chance.random() * 1500)

    def start_failed(self) -> None:
        """The process could not open its directory, because the disk failed it: another try."""
        if self._over and self._machine.loop is not self._healed and not self._notes.problems:
            self._notes.problems.append(
                f"nothing fails any more, and the server cannot start: {self._machine.start_error!r}"
            )
        self._machine.die("killed")

    def _death(self) -> Death:
        return self._chance.choice(("killed", "killed", "replaced", *CRASH_MODES, *map(Detached, CRASH_MODES)))

    def _kill(self) -> None:
        self._machine.die("killed")

    def _lose_power(self) -> None:
        self._machine.die(self._chance.choice(CRASH_MODES))

    def _detach(self) -> None:
        self._machine.die(Detached(self._chance.choice(CRASH_MODES)))

    def _replace(self) -> None:
        self._machine.die("replaced")

    def _crash_at_call(self) -> None:
        self._machine.next_death = self._death()
        when: When = "before" if self._chance.random() < 0.5 else "after"
        self._machine.fs.crash(nth=self._chance.randint(1, 60), when=when)

    def _stop(self) -> None:
        self._machine.stop()

    # ---- the disk

    def _fail_sync(self) -> None:
        forget = self._chance.random() < 0.5
        disk = self._machine.disk

        def on_fire(call: Call) -> None:
            self._sick_since_ms = self._sick_since_ms or self._notes.now_ms
            if forget:
                self._forgot = True
                disk.forget_pending(call.path)

        self._machine.fs.fail("sync", path="*.wal", nth=self._chance.randint(1, 6), on_fire=on_fire)

    def _fail_write(self) -> None:
        code = self._chance.choice((errno.EIO, errno.ENOSPC))
        self._machine.fs.fail("write_at", code, nth=self._chance.randint(1, 12))

    def _tear(self) -> None:
        self._machine.fs.tear(self._chance.randint(0, 300), path="*.wal", nth=self._chance.randint(1, 12))

    def _fill(self) -> None:
        disk = self._machine.disk
        used = sum(len(content) for content in disk.contents().values())
        disk.set_capacity(used + self._chance.randint(0, 30_000))
        self._timeline.after(self._chance.random() * 2000, lambda: disk.set_capacity(None))

    def _slow(self) -> None:
        self._machine.slow_ms = self._chance.choice((20.0, 150.0, 600.0))
        self._machine.slow_shards = self._chance.choice((range(SHARDS), *([shard] for shard in range(SHARDS))))
        self._slowest_ms = max(self._slowest_ms, self._machine.slow_ms)
        self._timeline.after(self._chance.random() * 1500, self._mend_speed)

    def _mend_speed(self) -> None:
        self._machine.slow_ms = 0.0

    # ---- the clock and the network

    def _jump_forward(self) -> None:
        self._notes.jump(self._chance.choice((50, 1000, 30_000)))

    def _jump_back(self) -> None:
        self._notes.jump(-self._chance.choice((50, 1000, 30_000, HOUR_MS)))

    def _go_astray(self) -> None:
        """Far ahead, and right again before anybody believes it."""
        far_ms = self._chance.choice((HOUR_MS, 10 * HOUR_MS))
        self._notes.jump(far_ms)
        self._timeline.after(self._chance.random() * 1500, lambda: self._notes.jump(-far_ms))

    def _weather(self) -> None:
        chance = self._chance
        self._network.weather = Weather(
            delay_ms=chance.choice((0.5, 3.0, 40.0)),
            cut=chance.choice((0.0, 0.03, 0.15)),
            twice=chance.choice((0.0, 0.05, 0.2)),
            late=chance.choice((0.0, 0.02, 0.1)),
            pieces=chance.choice((0.0, 0.3)),
        )
