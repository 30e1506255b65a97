"""How much each measure does: enough to trust for a full run, just enough to see that it works for a quick one."""

from __future__ import annotations

import msgspec

BATCH = 1000
"""Records in one batch, and in one page that is read."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    rounds: int
    """Each timed part is done so often, alternating with the peer."""
    write_batches: int
    """Without a checkpoint in between."""
    sustained_batches: int
    """With the checkpoints that so much data brings."""
    read_batches: int
    recovery_records: int
    single_turns: int
    sync_turns: int
    short_records: int
    long_records: int
    length_batches: int
    topics: int
    topic_records: int
    dirty_bytes: int
    load_seconds: float
    """How long a server is under load in one round."""
    lone_writes: int
    replay_records: int
    memory_records: int
    ready_records: int
    live_writes: int
    live_crowd: int
    """Watchers who all get each of the pulses."""
    live_pulses: int
    queue_jobs: int
    queue_short: int
    """Jobs in a short queue, and done in a long one; the others are what a long one has beside them."""
    queue_ready: int
    queue_leased: int
    heap_messages: int
    """In a heap with a long backlog."""
    spark_records: int
    spark_batches: int
    """Micro-batches of which the time is taken."""


FULL = Sizes(
    rounds=3,
    write_batches=300,
    sustained_batches=1000,
    read_batches=1000,
    recovery_records=1_000_000,
    single_turns=2000,
    sync_turns=500,
    short_records=10_000,
    long_records=10_000_000,
    length_batches=50,
    topics=10_000,
    topic_records=10,
    dirty_bytes=64 << 20,
    load_seconds=3.0,
    lone_writes=20_000,
    replay_records=200_000,
    memory_records=1_000_000,
    ready_records=1_000_000,
    live_writes=5000,
    live_crowd=1000,
    live_pulses=100,
    queue_jobs=240_000,
    queue_short=40_000,
    queue_ready=1_000_000,
    queue_leased=100_000,
    heap_messages=2_000_000,
    spark_records=2_000_000,
    spark_batches=30,
)
QUICK = Sizes(
    rounds=1,
    write_batches=20,
    sustained_batches=40,
    read_batches=20,
    recovery_records=10_000,
    single_turns=50,
    sync_turns=10,
    short_records=2_000,
    long_records=50_000,
    length_batches=5,
    topics=200,
    topic_records=2,
    dirty_bytes=2 << 20,
    load_seconds=0.2,
    lone_writes=100,
    replay_records=5_000,
    memory_records=20_000,
    ready_records=5_000,
    live_writes=50,
    live_crowd=50,
    live_pulses=5,
    queue_jobs=8_000,
    queue_short=2_000,
    queue_ready=8_000,
    queue_leased=2_000,
    heap_messages=8_000,
    spark_records=10_000,
    spark_batches=3,
)
