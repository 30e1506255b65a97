"""Batches over two topics or three: staged, then published as a producer until that is answered, or called off.

Meanwhile others write to one of the two alone, and look at all: what stands behind a batch must not uncover a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.actors.reader import read_request
from topics.testing.sim.actors.writer import plain_request
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.plan import BATCHED, split

if TYPE_CHECKING:
    from topics.testing.sim.world import World


class Batcher(Actor):
    pause_ms = 90.0

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._epoch = 0

    def routine(self) -> Routine:
        chance = self.chance
        self._epoch += 1
        parts: list[tuple[str, list[int]]] = []
        stages: list[str] = []
        for place in chance.sample(BATCHED, chance.choice((2, 2, len(BATCHED)))):
            stage, ids = f"{self.name}-{self._epoch}-{place[:-2]}", self.ids(chance.choice((1, 3)))
            parts.append((place, ids))
            stages.append(stage)
            for _ in range(6):
                reply = yield _stage(place, stage, ids)
                if reply.ok:
                    break
                yield self.retry_ms()
            else:
                return
        if chance.random() < 0.15:
            yield Request("abort", "", "POST", "/v0/abort", {"stages": stages}, {"stages": stages})
            return
        key = (self.name, self._epoch)
        body = {"stages": stages, "producer_id": self.name, "epoch": self._epoch}
        publish = Request(
            "publish", "", "POST", "/v0/publish", body, {"key": key, "stages": stages, "parts": parts}, _read_published
        )
        for _ in range(8):
            reply = yield publish
            if reply.ok and chance.random() < 0.9:
                return
            yield self.retry_ms()


class Mixer(Actor):
    """Writes behind batches."""

    pause_ms = 60.0

    def routine(self) -> Routine:
        places = self.chance.sample(BATCHED, len(BATCHED))
        yield plain_request(places[0], self.ids(1)[0])
        for place in places:
            yield read_request(place, 0, 1000)


def _stage(place: str, stage: str, ids: list[int]) -> Request:
    topic, _ = split(place)
    body = {"stage": stage, "at": 0, "records": [{"data": {"id": number}} for number in ids]}
    return Request("stage", place, "POST", f"/v0/topics/{topic}/stage", body, {"stage": stage, "ids": ids})


def _read_published(fields: Fields) -> Fields:
    return {"written": [(part["topic"], part["first_seq"], part["last_seq"]) for part in fields["written"]]}
