"""Queues: the boss writes jobs, some of them for later; workers claim, extend, complete, give back, or vanish."""

from __future__ import annotations

from typing import Any

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.actors.writer import write_request
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.plan import LATE_MS, LEASE_MS, QUEUES, split

LETTERS = {f"{name}#0": config.get("dead_letter") for name, config in QUEUES.items()}


def claim_request(place: str, node: str, most: int, wait_ms: int = 0) -> Request:
    topic, _ = split(place)
    body = {"node": node, "max": most, "lease_ms": LEASE_MS, "wait_ms": wait_ms}
    return Request("claim", place, "POST", f"/v0/topics/{topic}/claim", body, {}, _read_claimed)


def _read_claimed(fields: Fields) -> Fields:
    return {
        "grants": [
            {
                "item": job["$seq"],
                "id": job["data"]["id"],
                "lease": job["lease_id"],
                "granted_ms": job["deadline"] - LEASE_MS,
                "deadline_ms": job["deadline"],
                "attempts": job["deliveries"],
                "born_ms": job["$ts"],
            }
            for job in fields["claimed"]
        ]
    }


def settle_request(verb: str, place: str, node: str, jobs: list[Fields], **more: Any) -> Request:
    """`ack`, `nack` or `extend` of jobs as they were claimed."""
    topic, _ = split(place)
    items, leases = [job["$seq"] for job in jobs], [job["lease_id"] for job in jobs]
    body = {"node": node, "seqs": items, "lease_ids": leases, **more}
    return Request(
        verb, place, "POST", f"/v0/topics/{topic}/{verb}", body, {"items": items, "leases": leases}, _read_settled
    )


def _read_settled(fields: Fields) -> Fields:
    deadlines = {int(seq): deadline for seq, deadline in fields.get("deadlines", {}).items()}
    return {"skipped": fields["skipped"], "deadlines": deadlines}


class Boss(Actor):
    pause_ms = 110.0

    def routine(self) -> Routine:
        chance = self.chance
        place = chance.choice(tuple(LETTERS))
        ids = self.ids(chance.choice((1, 2, 4)))
        delay_ms = chance.choice((0, 0, 150, 900))
        key = f"{self.name}-{ids[0]}"
        request = write_request(place, ids, [""] * len(ids), key, delay_ms=delay_ms)
        for _ in range(8):
            reply = yield request
            if reply.ok:
                return
            yield self.retry_ms()


class Worker(Actor):
    pause_ms = 90.0

    def routine(self) -> Routine:
        chance = self.chance
        place = chance.choice(tuple(LETTERS))
        wait_ms = chance.choice((0, 0, 300))
        reply = yield claim_request(place, self.name, chance.choice((1, 2, 5)), wait_ms)
        jobs = reply.fields.get("claimed", []) if reply.ok else []
        if not jobs:
            if LETTERS[place] and chance.random() < 0.15:
                yield Request("redrive", place, "POST", f"/v0/topics/{LETTERS[place]}/redrive", {}, may_repeat=False)
            return
        if chance.random() < 0.25:
            yield chance.random() * LEASE_MS
            yield settle_request("extend", place, self.name, jobs, lease_ms=2 * LEASE_MS)
        # In time, or when somebody else has it by now, or when nobody has.
        yield chance.choice((5, 60, LEASE_MS + LATE_MS, 2 * LEASE_MS))
        fate = chance.random()
        if fate < 0.55:
            for _ in range(3):
                reply = yield settle_request("ack", place, self.name, jobs)
                if reply.ok:
                    return
        elif fate < 0.7:
            yield settle_request("nack", place, self.name, jobs, delay_ms=chance.choice((0, 200)))
        elif fate < 0.85:
            yield self._complete(place, jobs)

    def _complete(self, place: str, jobs: list[Fields]) -> Request:
        """Done, with a result for each in the same commit."""
        ids = self.ids(len(jobs))
        topic, _ = split(place)
        request = settle_request("ack", place, self.name, jobs)
        assert isinstance(request.body, dict)
        body = request.body | {"produce": [{"topic": "results", "records": [{"data": {"id": one}} for one in ids]}]}
        asked = {**request.asked, "parts": [("results#0", ids)], "key": f"job {jobs[0]['$seq']}"}
        return Request("complete", place, "POST", f"/v0/topics/{topic}/ack", body, asked, _read_settled)
