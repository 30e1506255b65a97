"""What happened to the messages of a heap, as it is stored, beside the facts that heaps share with queues.

Popping is `Claimed`, an ack `Acked`, an extension `Extended`, a stream that ended `Released`, a dead letter a move.
That a lease ran out is not stored: it follows from the time, and so does how long its message rests
(`core/backoff.py`).
"""

from __future__ import annotations

import msgspec


class Nacked(msgspec.Struct, frozen=True, tag="nacked", omit_defaults=True):
    """Deliveries failed: each message is nobody's, and ready from its time on."""

    seqs: list[int]
    due_times: list[int]
    at_ms: int
    reason: str = ""


class PriorityChanged(msgspec.Struct, frozen=True, tag="priority_changed"):
    """A waiting message has another priority than its record says."""

    seq: int
    priority: int


HeapFact = Nacked | PriorityChanged
