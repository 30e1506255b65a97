"""Write requests as a client would send them: JSON with about 100 bytes of data a record."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import msgspec

from bench.sizes import BATCH

DIFFERENT = 16
"""Bodies that differ from each other, so that no cache sees one body only."""
TAGS = 1000
NODES = ("berlin", "paris")
_NOTE_CHARS = 36


def _record(chance: random.Random, tags: bool, nodes: bool) -> dict[str, Any]:
    data = {
        "id": chance.randrange(10**9),
        "user": f"user-{chance.randrange(10**6):06d}",
        "amount": chance.randrange(10**6) / 100,
        "note": "".join(chance.choices("abcdefghij klmnop", k=_NOTE_CHARS)),
    }
    record: dict[str, Any] = {"data": data}
    if tags:
        record["tag"] = f"user:{chance.randrange(TAGS)}"
    if nodes:
        record["node"] = chance.choice(NODES)
    return record


def bodies(count: int, *, records: int = BATCH, tags: bool = False, nodes: bool = False) -> Iterator[bytes]:
    """So many bodies of so many records each; the same ones on every run."""
    chance = random.Random(1)
    made = [
        msgspec.json.encode({"records": [_record(chance, tags, nodes) for _ in range(records)]})
        for _ in range(min(count, DIFFERENT))
    ]
    return islice(cycle(made), count)
