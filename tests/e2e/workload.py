"""What the killed process does, so that whoever finds its directory can tell exactly what must be in it.

A lane is one topic and an endless list of operations, done one after the other. Operation number n is always the same:
a batch with an idempotency key, or a delete. So is what the topic holds after it, down to the seqs, because the death
of a process costs no seq. `held_after` is that, computed without the engine.
"""

from __future__ import annotations

from typing import NamedTuple

from topics.client import Client
from topics.client.fields import ConfigFields, RecordFields
from topics.model import Durability

Row = tuple[int, object, str | None]
"""Seq, data and tag of a record."""

LANES = {
    "fsync-a": Durability.FSYNC,
    "fsync-b": Durability.FSYNC,
    "disk-a": Durability.DISK,
    "disk-b": Durability.DISK,
}
WINDOW_MS = 3_600_000
"""Longer than any test takes: a key is never forgotten before it is tried again."""

TAGS = 7
DELETE_TAG_EVERY = 20
ERASE_TAG_EVERY = 45
DELETE_OLD_EVERY = 30
OLD = 25
"""How many operations back a delete of old records leaves."""


class Deletion(NamedTuple):
    """Records with a tag, or all below a seq."""

    tag: str | None = None
    before_seq: int | None = None
    erase: bool = False

    def takes(self, seq: int, record: RecordFields) -> bool:
        return record.get("tag") == self.tag if self.tag is not None else seq < (self.before_seq or 0)


def _deletion(lane: str, number: int) -> Deletion | None:
    """What an operation deletes; None when it writes."""
    if number % DELETE_TAG_EVERY == DELETE_TAG_EVERY - 1:
        return Deletion(tag="tag-3")
    if number % ERASE_TAG_EVERY == ERASE_TAG_EVERY - 1:
        return Deletion(tag="tag-5", erase=True)
    if number % DELETE_OLD_EVERY == DELETE_OLD_EVERY - 1:
        return Deletion(before_seq=held_after(lane, max(0, number - OLD)).next_seq)
    return None


def _records(lane: str, number: int) -> list[RecordFields]:
    return [
        {
            "data": {"lane": lane, "operation": number, "index": index, "padding": "x" * (37 * number % 300)},
            "tag": f"tag-{(number + index) % TAGS}",
        }
        for index in range(1 + 5 * number % 11)
    ]


class Held(NamedTuple):
    """What a lane's topic holds, and which seq it gives next."""

    next_seq: int
    records: dict[int, RecordFields]

    def after(self, lane: str, number: int) -> Held:
        deletion = _deletion(lane, number)
        if deletion is not None:
            left = {seq: record for seq, record in self.records.items() if not deletion.takes(seq, record)}
            return Held(self.next_seq, left)
        added = dict(enumerate(_records(lane, number), self.next_seq))
        return Held(self.next_seq + len(added), self.records | added)

    def rows(self) -> list[Row]:
        return [(seq, record["data"], record.get("tag")) for seq, record in self.records.items()]


_history: dict[str, list[Held]] = {}
"""What each lane holds after 0, 1, 2 … operations, as far as somebody asked."""


def held_after(lane: str, operations: int) -> Held:
    history = _history.setdefault(lane, [Held(1, {})])
    while len(history) <= operations:
        history.append(history[-1].after(lane, len(history) - 1))
    return history[operations]


async def perform(client: Client, lane: str, number: int) -> None:
    """Do one operation and check its answer. Doing it again, before the next one, changes nothing."""
    topic = client.topic(lane)
    deletion = _deletion(lane, number)
    if deletion is not None:
        await topic.delete(deletion.before_seq, match=deletion.tag, erase=deletion.erase)
        return
    config: ConfigFields = {"durability": LANES[lane].value, "idempotency_window_ms": WINDOW_MS}
    written = await topic.write_many(_records(lane, number), idempotency_key=f"{lane}-{number}", config=config)
    assert written.first_seq == held_after(lane, number).next_seq, (lane, number, written)


async def stored(client: Client, lane: str) -> list[Row]:
    """All that a topic gives its readers, who must not be told of any loss."""
    topic = client.topic(lane)
    found: list[Row] = []
    from_seq = 0
    while True:
        page = await topic.diff(from_seq, limit=1000)
        assert page.tombstone is None, page.tombstone
        found += [(record.seq, record.data, record.tag) for record in page.records]
        from_seq = page.next_from_seq
        if page.caught_up:
            return found
