"""What there is in the world: the topics of every kind, and how safe each is."""

from __future__ import annotations

from typing import Any, Final

from topics.testing.checkers.events import Topic

LEASE_MS: Final = 800
VISIBILITY_MS: Final = 700
CAP: Final = 12
RANK_MAX: Final = 1
"""A pop gives the best of all that is ready."""

LOGS: Final[dict[str, dict[str, Any]]] = {
    "safe": {"durability": "fsync", "visibility_ms": VISIBILITY_MS, "leases_durable": True},
    "fast": {"durability": "disk", "visibility_ms": VISIBILITY_MS},
    "short": {"durability": "disk", "cap_records": CAP},
    "parts": {"durability": "fsync", "partitions": 2},
    "left": {"durability": "fsync"},
    "right": {"durability": "fsync"},
    "results": {"durability": "fsync"},
}
QUEUES: Final[dict[str, dict[str, Any]]] = {
    "jobs": {"durability": "fsync", "leases_durable": True, "max_deliveries": 3, "dead_letter": "jobs-dead"},
    "chores": {"durability": "disk", "max_deliveries": 0},
}
HEAP: Final[dict[str, Any]] = {
    "type": "heap",
    "partitions": 2,
    "durability": "fsync",
    "leases_durable": True,
    "max_retries": 2,
    "lease_ms": LEASE_MS,
}
ROUTERS: Final[dict[str, dict[str, Any]]] = {
    "safe-copy": {"source": "safe", "dest": "safe-copy", "guarantee": "exactly_once", "create_dest": True},
    "fast-copy": {"source": "fast", "dest": "fast-copy", "create_dest": True},
}

WRITTEN: Final = ("safe#0", "safe#0", "fast#0", "fast#0", "short#0", "parts#0", "parts#1")
"""Where writers write, those that matter most more often."""
DELETED: Final = ("fast#0", "parts#1")
BATCHED: Final = ("left#0", "right#0")
WATCHED: Final = ("safe#0", "fast#0", "short#0", "parts#1")
READ_LAST: Final = (*dict.fromkeys(WRITTEN), *BATCHED, "results#0", "safe-copy#0", "fast-copy#0")

PROMISES: Final[dict[str, Topic]] = {
    "safe#0": Topic(),
    "fast#0": Topic(synced=False, leases_synced=False),
    "short#0": Topic(synced=False, capped=True),
    "parts#0": Topic(),
    "parts#1": Topic(),
    "left#0": Topic(batches=True),
    "right#0": Topic(batches=True),
    "results#0": Topic(batches=True),
    "safe-copy#0": Topic(source="safe#0"),
    "fast-copy#0": Topic(source="fast#0", synced=False),
    "jobs#0": Topic(batches=True),
    "chores#0": Topic(synced=False, leases_synced=False, batches=True),
    "heap": Topic(batches=True, stop_releases=True, rank_max=RANK_MAX),
}


def split(place: str) -> tuple[str, int]:
    topic, _, partition = place.partition("#")
    return topic, int(partition or 0)
