"""What there is in the world: the topics of every kind, and how safe each is."""

from __future__ import annotations

from typing import Any, Final

from topics.testing.checkers.events import Topic

LEASE_MS: Final = 250
VISIBILITY_MS: Final = 240
LATE_MS: Final = 60
"""How much too late those are who are a little late: another one may have it by then, and still be at it."""
WINDOW_MS: Final = 86_400_000
"""So long is a key remembered: longer than the clock is ever off in a life, so that what is repeated is known."""
CAP: Final = 12
TTL_MS: Final = 600
RANK_MAX: Final = 1
"""A pop gives the best of all that is ready."""

LOGS: Final[dict[str, dict[str, Any]]] = {
    "safe": {"durability": "fsync", "visibility_ms": VISIBILITY_MS, "leases_durable": True},
    "fast": {"durability": "disk", "visibility_ms": VISIBILITY_MS},
    "short": {"durability": "disk", "cap_records": CAP},
    "parts": {"durability": "fsync", "partitions": 2},
    "brief": {"durability": "fsync", "ttl_ms": TTL_MS},
    "scratch": {"durability": "memory"},
    "air": {"durability": "ephemeral"},
    "again": {},
    "left": {"durability": "fsync"},
    "right": {"durability": "fsync"},
    "middle": {"durability": "fsync"},
    "results": {"durability": "fsync"},
}
QUEUES: Final[dict[str, dict[str, Any]]] = {
    "jobs": {"durability": "fsync", "leases_durable": True, "max_deliveries": 3, "dead_letter": "jobs-dead"},
    "chores": {"durability": "disk", "max_deliveries": 0},
    "doomed": {"durability": "fsync", "leases_durable": True, "max_deliveries": 1, "dead_letter": "doomed-dead"},
}
HEAP: Final[dict[str, Any]] = {
    "type": "heap",
    "partitions": 2,
    "durability": "fsync",
    "leases_durable": True,
    "max_retries": 2,
    "lease_ms": LEASE_MS,
    "idempotency_window_ms": WINDOW_MS,
}
LETTERS: Final = {"jobs": "jobs-dead", "doomed": "doomed-dead", "heap": "heap.dlq"}
"""By topic, where its dead letters are; of topics whose records can die."""
ROUTERS: Final[dict[str, dict[str, Any]]] = {
    "safe-copy": {"source": "safe", "dest": "safe-copy", "guarantee": "exactly_once", "create_dest": True},
    "fast-copy": {"source": "fast", "dest": "fast-copy", "create_dest": True},
    "safe-some": {"source": "safe", "dest": "safe-some", "filter": ["tag", "Eq", "a"], "create_dest": True},
}
COPIES: Final = ("safe-copy", "safe-some")
"""Made by routers, and then as safe as what they are copies of."""
LEDGER: Final = "ledger"
"""Made, written and consumed by statements."""

DOOMED: Final = "doomed#0"
DOOMED_LETTERS: Final = "doomed-dead#0"
BATCHED: Final = ("left#0", "right#0", "middle#0")
"""In two parts of the log; a batch is for two of them or for all."""
WRITTEN: Final = (
    "safe#0", "safe#0", "fast#0", "fast#0", "short#0", "parts#0", "parts#1", "brief#0", "scratch#0", "air#0", "again#0",
)  # fmt: skip
"""Where writers write, those that matter most more often."""
DELETED: Final = ("fast#0", "parts#1")
WATCHED: Final = ("safe#0", "fast#0", "short#0", "parts#1", *BATCHED)
READ_LAST: Final = (
    *dict.fromkeys(WRITTEN), *BATCHED, "results#0", "safe-copy#0", "fast-copy#0", "safe-some#0", f"{LEDGER}#0",
)  # fmt: skip

PROMISES: Final[dict[str, Topic]] = {
    "safe#0": Topic(),
    "fast#0": Topic(synced=False, leases_synced=False),
    "short#0": Topic(synced=False, capped=True, cap=CAP),
    "brief#0": Topic(capped=True, ttl_ms=TTL_MS),
    "scratch#0": Topic(synced=False, forgets=True),
    "air#0": Topic(synced=False, forgets=True),
    "again#0": Topic(synced=False),
    f"{LEDGER}#0": Topic(),
    "parts#0": Topic(),
    "parts#1": Topic(),
    "left#0": Topic(batches=True),
    "right#0": Topic(batches=True),
    "middle#0": Topic(batches=True),
    "results#0": Topic(batches=True),
    "safe-copy#0": Topic(source="safe#0"),
    "safe-some#0": Topic(source="safe#0", source_tag="a"),
    "fast-copy#0": Topic(source="fast#0", synced=False),
    "jobs#0": Topic(batches=True),
    "chores#0": Topic(synced=False, leases_synced=False, batches=True),
    DOOMED: Topic(batches=True, letters=DOOMED_LETTERS, deliveries_max=1),
    DOOMED_LETTERS: Topic(batches=True),
    "heap": Topic(batches=True, stop_releases=True, rank_max=RANK_MAX),
}


def split(place: str) -> tuple[str, int]:
    topic, _, partition = place.partition("#")
    return topic, int(partition or 0)


def place_key(place: str) -> str:
    """As watchers name it: the first partition is the topic itself."""
    topic, partition = split(place)
    return f"{topic}#{partition}" if partition else topic
