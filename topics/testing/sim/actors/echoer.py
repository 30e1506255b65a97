"""Echoers look for what they have just brought about: the copies of a write, the letters of jobs that died."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.actors.reader import read_request
from topics.testing.sim.actors.worker import claim_request, settle_request
from topics.testing.sim.actors.writer import write_request
from topics.testing.sim.calls import Request
from topics.testing.sim.plan import DOOMED, DOOMED_LETTERS

COPIED: Final = (("safe#0", ("safe-copy#0", "safe-some#0")), ("fast#0", ("fast-copy#0",)))
SWEEP_MAX: Final = 50
"""More jobs than there ever are: a claim that asks for them finds all."""


class Echoer(Actor):
    pause_ms = 60.0

    def routine(self) -> Routine:
        yield from self._copies() if self.chance.random() < 0.7 else self._letters()

    def _copies(self) -> Routine:
        source, copies = self.chance.choice(COPIED)
        ids = self.ids(self.chance.choice((1, 3)))
        reply = yield write_request(source, ids, ["a"] * len(ids))
        for place in copies if reply.ok else ():
            yield read_request(place, 0, 1000)

    def _letters(self) -> Routine:
        ids = self.ids(1)
        yield write_request(DOOMED, ids, [""], f"{self.name}-{ids[0]}")
        reply = yield self._claim(1)
        jobs = reply.fields.get("claimed", []) if reply.ok else []
        if not jobs:
            return
        nack = settle_request("nack", DOOMED, self.name, jobs)
        yield replace(nack, asked={**nack.asked, "at_once": True})
        yield self._claim(SWEEP_MAX)
        yield read_request(DOOMED_LETTERS, 0, 1000)

    def _claim(self, most: int) -> Request:
        request = claim_request(DOOMED, self.name, most)
        return replace(request, asked={"max": most})
