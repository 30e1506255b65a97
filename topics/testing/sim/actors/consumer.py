"""Consumers of a group: they consume, extend, ack all or a part, give back, or vanish."""

from __future__ import annotations

from typing import Any

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.plan import LATE_MS, VISIBILITY_MS, split

GROUP = "crew"
PLACES = ("safe#0", "fast#0")


def consume_request(place: str, consumer: str, limit: int, wait_ms: int = 0) -> Request:
    topic, _ = split(place)
    body = {"limit": limit, "consumer": consumer, "wait_ms": wait_ms}
    path = f"/v0/topics/{topic}/groups/{GROUP}/consume"
    return Request("consume", place, "POST", path, body, {"group": GROUP}, _read_batch)


def _read_batch(fields: Fields) -> Fields:
    gap = fields["tombstone"]
    return {
        "claim": fields["claim_id"] if fields["last_seq"] else "",
        "first_seq": fields["first_seq"],
        "last_seq": fields["last_seq"],
        "records": [(record["$seq"], record["data"]["id"]) for record in fields["records"]],
        "granted_ms": fields["deadline"] - (fields["visibility_ms"] or VISIBILITY_MS),
        "deadline_ms": fields["deadline"],
        "committed_seq": fields["committed_seq"],
        "gap": None if gap is None else (gap["gap_from"], gap["gap_to"], gap["reason"]),
    }


def settle_request(verb: str, place: str, batch: Fields, **more: Any) -> Request:
    """`ack`, `nack` or `extend` of a batch, by its claim."""
    topic, _ = split(place)
    body = {"upto_seq": batch["last_seq"], "claim_id": batch["claim_id"], **more}
    asked = {
        "group": GROUP,
        "claim": batch["claim_id"],
        "first_seq": batch["first_seq"],
        "last_seq": body["upto_seq"],
    }
    path = f"/v0/topics/{topic}/groups/{GROUP}/{verb}"
    return Request(f"group_{verb}", place, "POST", path, body, asked, _read_settled)


def _read_settled(fields: Fields) -> Fields:
    found: Fields = {"acked": fields.get("acked", 0), "deadline_ms": fields.get("deadline", 0)}
    if "committed_seq" in fields:
        found["committed_seq"] = fields["committed_seq"]
    return found


class Consumer(Actor):
    pause_ms = 90.0

    def routine(self) -> Routine:
        chance = self.chance
        place = chance.choice(PLACES)
        reply = yield consume_request(place, self.name, chance.choice((1, 3, 8)))
        batch = reply.fields
        if not reply.ok or not batch["last_seq"]:
            return
        if chance.random() < 0.2:
            yield settle_request("extend", place, batch, visibility_ms=2 * VISIBILITY_MS)
        # In time, or when somebody else has it by now, or when nobody has.
        yield chance.choice((5, 60, VISIBILITY_MS + LATE_MS, 2 * VISIBILITY_MS))
        fate = chance.random()
        if fate < 0.6:
            part = chance.random() < 0.2
            more = {"upto_seq": chance.randint(batch["first_seq"], batch["last_seq"])} if part else {}
            for _ in range(3):
                reply = yield settle_request("ack", place, batch, **more)
                if reply.ok:
                    return
        elif fate < 0.75:
            yield settle_request("nack", place, batch, delay_ms=chance.choice((0, 150)))
