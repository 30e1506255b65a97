"""Writers: plain writes, and writes under a key or as a producer, which are repeated until they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.plan import WRITTEN, split

if TYPE_CHECKING:
    from topics.testing.sim.world import World

TAGS = ("a", "b", "")
TRIES_MAX = 12


def write_request(place: str, ids: list[int], tags: list[str], key: Any = None, delay_ms: int = 0) -> Request:
    """`key` is an idempotency key, or producer, epoch and sequence. Nobody gets jobs before `delay_ms`."""
    topic, partition = split(place)
    body: Fields = {
        "records": [
            {"data": {"id": number}, **({"tag": tag} if tag else {})} for number, tag in zip(ids, tags, strict=True)
        ],
        "partition": partition,
    }
    if delay_ms:
        body["delay_ms"] = delay_ms
    if isinstance(key, tuple):
        body |= {"producer_id": key[0], "epoch": key[1], "sequence": key[2]}
    elif key is not None:
        body["idempotency_key"] = key
    asked = {"ids": ids, "tags": tags, "key": key, "delays": dict.fromkeys(ids, delay_ms)}
    return Request("write", place, "POST", f"/v0/topics/{topic}", body, asked, read_written)


def plain_request(place: str, number: int) -> Request:
    """One record and nothing else: what the server's lane takes."""
    topic, _ = split(place)
    asked = {"ids": [number], "tags": [""], "key": None}
    return Request(
        "write", place, "POST", f"/v0/topics/{topic}", {"records": [{"data": {"id": number}}]}, asked, read_written
    )


def read_written(fields: Fields) -> Fields:
    return {"seqs": fields["seqs"], "deduped": fields["deduped"]}


class Writer(Actor):
    pause_ms = 35.0

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._sequences: dict[str, int] = {}
        self._keys = 0

    def routine(self) -> Routine:
        chance = self.chance
        place = chance.choice(WRITTEN)
        kind = chance.randrange(4)
        if kind == 0 and not place.endswith("#1"):
            yield plain_request(place, self.ids(1)[0])
            return
        ids = self.ids(chance.choice((1, 1, 2, 3, 6)))
        tags = [chance.choice(TAGS) for _ in ids]
        if kind == 1:
            yield write_request(place, ids, tags)
            return
        key: Any
        if kind == 2:
            self._keys += 1
            key = f"{self.name}-{self._keys}"
        else:
            sequence = self._sequences[place] = self._sequences.get(place, -1) + 1
            key = (self.name, 1, sequence)
        request = write_request(place, ids, tags, key)
        for _ in range(TRIES_MAX):
            reply = yield request
            if reply.ok and chance.random() < 0.9:
                return
            yield self.retry_ms()
