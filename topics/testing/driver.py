"""An engine driven by hand: no thread, no event loop, every step on the calling thread and in a fixed order.

For crash tests, the simulator and users' own tests: the same engine as in production, on a disk, a clock and a source
of chance that the test chose.
"""

from __future__ import annotations

import random
from typing import cast

from topics.clock import Clock
from topics.core.commands import Command
from topics.engine.backup import Backup
from topics.engine.engine import Engine
from topics.engine.recovery import Options, recover
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.storage.fs import FileSystem
from topics.storage.wal import Wal

ROUNDS_MAX = 1000
"""Rounds after which a ticket that is still not done counts as stuck."""


class Driver:
    def __init__(
        self, fs: FileSystem, clock: Clock, options: Options | None = None, directory: str = "/data", seed: int = 0
    ) -> None:
        self._random = random.Random(seed)
        self.engine: Engine = recover(fs, directory, clock, self._salt, options or Options(), None)
        self.work()

    def _salt(self) -> int:
        return self._random.getrandbits(64)

    @property
    def wal(self) -> Wal:
        return cast(Wal, self.engine.wal)

    def work(self) -> None:
        """Flush, run the WAL and forward what routers have to until nothing is left to do."""
        for _ in range(ROUNDS_MAX):
            self.engine.flush()
            worked = self.wal.work()
            forwarded = self.engine.forwarding.pump()
            self.engine.freshness.look()
            if not forwarded and not worked:
                return
        raise AssertionError("the WAL finds more to do for ever")

    def do(self, command: Command) -> object:
        """Submit a command and work until it is answered."""
        return self.wait(self.engine.submit(command))

    def wait(self, ticket: Ticket) -> object:
        for _ in range(ROUNDS_MAX):
            if ticket.done:
                break
            self.engine.flush()
            self.wal.work()
            self.engine.freshness.look()
        return ticket.result()

    def fresh(self, *topics: str) -> None:
        """Wait for what a read of these topics waits for."""
        ticket = self.engine.freshness.of(topics)
        if ticket is not None:
            self.wait(ticket)

    def checkpoint(self) -> None:
        self.engine.checkpoint()
        self.work()

    def backup(self) -> Backup:
        """A backup of this moment, ready to be read; `release` it."""
        self.checkpoint()
        backup = Backup.begin(self.engine)
        backup.pin()
        answers: list[TopicsError | OSError | None] = []
        backup.cut(answers.append)
        self.wal.work()
        if answers[0] is not None:
            backup.release()
            raise answers[0]
        backup.open()
        return backup

    def close(self) -> None:
        """A clean stop: everything in segments and a snapshot, the WAL ended."""
        self.engine.stop()
        self.work()
        if self.engine.checkpoint_possible():
            self.engine.checkpoint()
        self.engine.close()
