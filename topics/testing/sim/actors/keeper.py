"""The keeper looks after the data: it takes backups, stores everything now and then, and looks at the numbers."""

from __future__ import annotations

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import Request


class Keeper(Actor):
    pause_ms = 1500.0

    def routine(self) -> Routine:
        what = self.chance.randrange(4)
        if what == 0:
            yield Request("snapshot", "", "POST", "/v1/snapshot", timeout_ms=8000)
        elif what == 1:
            yield Request("look", "", "GET", "/v0/topics?page_size=100")
            yield Request("look", "", "GET", "/v1/stats")
            yield Request("look", "", "GET", "/v0/metrics")
        else:
            reply = yield Request("backup", "", "GET", "/v0/backup", timeout_ms=12_000, may_repeat=False)
            if reply.ok and reply.body:
                call = self.world.notes.history.calls[-1]
                self.world.archives.append((call, reply.body))
