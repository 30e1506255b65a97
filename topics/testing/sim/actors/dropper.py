"""The dropper takes a whole topic away and makes it anew, while others write to it and read it."""

from __future__ import annotations

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import Fields, Request

TOPIC = "again"
PLACE = f"{TOPIC}#0"


class Dropper(Actor):
    pause_ms = 500.0

    def routine(self) -> Routine:
        path = f"/v0/topics/{TOPIC}"
        drop = Request("drop", PLACE, "DELETE", path, None, {}, _read_dropped, may_repeat=False)
        for _ in range(4):
            reply = yield drop
            if reply.ok:
                break
            yield self.retry_ms()
        if self.chance.random() < 0.5:
            # Otherwise the next write makes it, with the same config.
            yield Request("make", "", "PUT", path, {})


def _read_dropped(fields: Fields) -> Fields:
    return {"dropped": fields["deleted"]}
