"""After everything is healed: does each lease, delay, retry, TTL and wait end in its time?

The probe makes one of each, on topics from which all else was taken, and says with each call how long its answer may
take. What the clocks did before must not matter. The checkers judge: `liveness` the calls, `retention` the TTL.
"""

from __future__ import annotations

from dataclasses import replace

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.actors import consumer, popper, worker
from topics.testing.sim.actors.writer import write_request
from topics.testing.sim.calls import Request
from topics.testing.sim.plan import LEASE_MS, TTL_MS, VISIBILITY_MS

QUEUE = "chores#0"
TOPIC = "fast#0"
KEPT = "brief#0"
DELAY_MS = 300
RETRY_MS = 200
WAIT_MS = 3000
"""How long a call waits for what must come sooner."""
IDLE_MS = 300
"""How long a call waits for what does not come."""


def probe(actor: Actor) -> Routine:
    yield write_request(KEPT, actor.ids(1), [""])
    yield from _probe_queue(actor)
    yield from _probe_heap(actor)
    yield from _probe_group(actor)
    # Longer than the time that a record is kept; the last read of all topics follows.
    yield 2.0 * TTL_MS


def _timed(request: Request, purpose: str, within_ms: int, brings: bool = True) -> Request:
    asked = {**request.asked, "for": purpose, "within_ms": within_ms, "brings": brings}
    return replace(request, asked=asked, timeout_ms=2 * WAIT_MS)


def _probe_queue(actor: Actor) -> Routine:
    def claim(purpose: str, within_ms: int, brings: bool = True) -> Request:
        wait_ms = WAIT_MS if brings else IDLE_MS
        return _timed(worker.claim_request(QUEUE, actor.name, 1, wait_ms), purpose, within_ms, brings)

    yield write_request(QUEUE, actor.ids(1), [""], delay_ms=DELAY_MS)
    yield claim("waits for a delayed job", DELAY_MS)
    reply = yield claim("waits for the end of a lease", LEASE_MS)
    jobs = reply.fields.get("claimed", []) if reply.ok else []
    if jobs:
        yield worker.settle_request("nack", QUEUE, actor.name, jobs, delay_ms=RETRY_MS)
        reply = yield claim("waits for a retry", RETRY_MS)
        jobs = reply.fields.get("claimed", []) if reply.ok else []
        if jobs:
            yield worker.settle_request("ack", QUEUE, actor.name, jobs)
            yield claim("waits in vain", IDLE_MS, brings=False)


def _probe_heap(actor: Actor) -> Routine:
    def pop(purpose: str, within_ms: int, brings: bool = True) -> Request:
        wait_ms = WAIT_MS if brings else IDLE_MS
        return _timed(popper.pop_request(actor.name, 1, wait_ms), purpose, within_ms, brings)

    yield popper.enqueue_request(actor.name, actor.ids(1)[0], DELAY_MS)
    yield pop("waits for a delayed message", DELAY_MS)
    # A message whose lease ran out waits for its backoff as well: a second at most after the first time.
    reply = yield pop("waits for the end of a lease and a backoff", LEASE_MS + popper.BACKOFF_MS)
    messages = reply.fields.get("items", []) if reply.ok else []
    if messages:
        yield popper.settle_request("nack", messages, backoff_override=RETRY_MS / 1000)
        reply = yield pop("waits for a retry", RETRY_MS)
        messages = reply.fields.get("items", []) if reply.ok else []
        if messages:
            yield popper.settle_request("ack", messages)
            yield pop("waits in vain", IDLE_MS, brings=False)


def _probe_group(actor: Actor) -> Routine:
    def consume(purpose: str, within_ms: int, brings: bool = True) -> Request:
        wait_ms = WAIT_MS if brings else IDLE_MS
        return _timed(consumer.consume_request(TOPIC, actor.name, 10, wait_ms), purpose, within_ms, brings)

    yield write_request(TOPIC, actor.ids(1), [""])
    yield consume("takes a record", 0)
    reply = yield consume("waits for the end of a claim", VISIBILITY_MS)
    if reply.ok and reply.fields["last_seq"]:
        yield consumer.settle_request("ack", TOPIC, reply.fields)
        yield consume("waits in vain", IDLE_MS, brings=False)
