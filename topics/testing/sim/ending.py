"""The end of a life: everything is healed, and somebody takes all that is left and reads all there is."""

from __future__ import annotations

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.actors import consumer, popper, worker
from topics.testing.sim.actors.reader import read_request
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.liveness import probe
from topics.testing.sim.plan import LEASE_MS, READ_LAST

LATER_MS = 4000.0
"""Longer than any lease, delay or backoff that anybody was given; the clock on the wall does not help."""
IDLE_ROUNDS = 1
"""So often in a row there must be nothing left, with a lease's time in between."""
ROUNDS_MAX = 60


class Ending(Actor):
    """Does its work once; `is_over` then."""

    is_over = False

    def _again(self) -> None:
        if not self.is_over:
            super()._again()

    def routine(self) -> Routine:
        yield LATER_MS
        for place in worker.LETTERS:
            yield from self._drain(place)
        yield from self._drain_heap()
        for place in consumer.PLACES:
            yield from self._drain_group(place)
        yield from probe(self)
        for place in READ_LAST:
            yield from self.read(place)
        yield from self.letters()
        self.is_over = True

    def _drain(self, place: str) -> Routine:
        idle = 0
        for _ in range(ROUNDS_MAX):
            reply = yield worker.claim_request(place, self.name, 50)
            jobs = reply.fields.get("claimed", []) if reply.ok else []
            if jobs:
                yield worker.settle_request("ack", place, self.name, jobs)
                idle = 0
            else:
                idle += 1
                if idle > IDLE_ROUNDS:
                    return
                yield 2.0 * LEASE_MS

    def _drain_heap(self) -> Routine:
        idle = 0
        for _ in range(ROUNDS_MAX):
            reply = yield popper.pop_request(self.name, 20)
            messages = reply.fields.get("items", []) if reply.ok else []
            if messages:
                yield popper.settle_request("ack", messages)
                idle = 0
            else:
                idle += 1
                if idle > IDLE_ROUNDS:
                    return
                yield 2.0 * LEASE_MS

    def _drain_group(self, place: str) -> Routine:
        for _ in range(ROUNDS_MAX):
            reply = yield consumer.consume_request(place, self.name, 200)
            if not reply.ok or not reply.fields["last_seq"]:
                return
            yield consumer.settle_request("ack", place, reply.fields)

    def read(self, place: str) -> Routine:
        from_seq = 0
        while True:
            reply = yield read_request(place, from_seq, 1000, final=True)
            if not reply.ok or reply.fields["caught_up"]:
                return
            from_seq = reply.fields["next_from_seq"]

    def letters(self) -> Routine:
        """What is among the dead letters, of queues and of the heap."""
        for place, topic in worker.LETTERS.items():
            if topic:
                body = {"from_seq": 0, "limit": 1000}
                yield Request("letters", place, "POST", f"/v0/topics/{topic}/diff", body, {}, _read_letters)
        yield Request("letters", popper.HEAP, "GET", f"/v1/heaps/{popper.HEAP}/dlq?limit=1000", None, {}, _read_dead)


def _read_letters(fields: Fields) -> Fields:
    return {"ids": [record["data"]["id"] for record in fields["records"]]}


def _read_dead(fields: Fields) -> Fields:
    return {"ids": [one["payload_json"]["id"] for one in fields["items"]]}
