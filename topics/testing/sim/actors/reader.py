"""Readers page through logs; the deleter takes records away, some of them from the disk as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.plan import BATCHED, DELETED, READ_LAST, split

if TYPE_CHECKING:
    from topics.testing.sim.world import World


def read_request(place: str, from_seq: int, limit: int, **more: bool) -> Request:
    topic, partition = split(place)
    body = {"from_seq": from_seq, "limit": limit, "partition": partition, "include_tags": True}
    asked = {"from_seq": from_seq, **more}
    return Request("read", place, "POST", f"/v0/topics/{topic}/diff", body, asked, read_page)


def read_page(fields: Fields) -> Fields:
    gap = fields["tombstone"]
    return {
        "records": [
            (record["$seq"], record["data"].get("id", 0), record.get("$tag", "")) for record in fields["records"]
        ],
        "gap": None if gap is None else (gap["gap_from"], gap["gap_to"], gap["reason"]),
        "next_seq": fields["next_from_seq"],
        "head_seq": fields["head_seq"],
        "times": [record["$ts"] for record in fields["records"]],
        "epoch": fields["epoch"],
    }


class Reader(Actor):
    pause_ms = 90.0

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._cursors: dict[str, int] = {}

    def routine(self) -> Routine:
        chance = self.chance
        if chance.random() < 0.3:
            # All sides of a batch, one behind the other.
            for place in chance.sample(BATCHED, len(BATCHED)):
                yield read_request(place, 0, 1000)
            return
        place = chance.choice(READ_LAST)
        cursor = self._cursors.get(place, 0) if chance.random() < 0.8 else 0
        reply = yield read_request(place, cursor, chance.choice((3, 20, 1000)))
        if reply.ok:
            self._cursors[place] = reply.fields["next_from_seq"]


class Deleter(Actor):
    pause_ms = 350.0

    def routine(self) -> Routine:
        chance = self.chance
        place = chance.choice(DELETED)
        topic, partition = split(place)
        reply = yield read_request(place, 0, 1)
        if not reply.ok:
            return
        head_seq = reply.fields["head_seq"]
        asked: Fields = {}
        if chance.random() < 0.7:
            asked["before_seq"] = chance.randint(1, head_seq + 1)
        if chance.random() < 0.6 or not asked:
            asked["tag"] = chance.choice(("a", "b"))
        body = {"partition": partition, "erase": chance.random() < 0.25}
        body |= {"match" if name == "tag" else name: value for name, value in asked.items()}
        yield Request("delete", place, "POST", f"/v0/topics/{topic}/delete", body, asked, timeout_ms=8000)
