"""Heaps: messages of many priorities, one by one and in transactions; consumers pop, extend, ack, nack, or vanish."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import TIMEOUT_MS, Fields, Request
from topics.testing.sim.plan import LATE_MS, LEASE_MS

HEAP = "heap"
IMPATIENT_MS = 25
BACKOFF_MS = 1000
"""The longest backoff after a first failure."""


def millis(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def enqueue_request(producer: str, number: int, delay_ms: int) -> Request:
    """One message without a name of its own."""
    body = {"topic": HEAP, "payload_json": {"id": number}, "priority": 0, "not_before": delay_ms / 1000}
    asked = {"ids": [number], "priorities": [0], "delays": {number: delay_ms}, "key": f"{producer}-{number}"}
    return Request("enqueue", HEAP, "POST", "/v1/enqueue", body, asked, _read_one)


def pop_request(consumer: str, most: int, wait_ms: int = 0) -> Request:
    body = {"topic": HEAP, "max": most, "visibility_timeout": LEASE_MS / 1000, "consumer": consumer}
    if wait_ms:
        body["wait_time"] = wait_ms / 1000
    return Request("claim", HEAP, "POST", "/v1/pop", body, {"max": most}, _read_popped)


def _read_popped(fields: Fields) -> Fields:
    return {
        "grants": [
            {
                "item": message["message_id"],
                "id": message["payload_json"]["id"],
                "lease": message["lease_token"],
                "granted_ms": millis(message["lease_deadline"]) - LEASE_MS,
                "deadline_ms": millis(message["lease_deadline"]),
                "attempts": message["attempts"],
                "born_ms": millis(message["enqueued_time"]),
            }
            for message in fields["items"]
        ]
    }


def settle_request(verb: str, messages: list[Fields], **more: Any) -> Request:
    leases = [{"lease_token": one["lease_token"], "message_id": one["message_id"]} for one in messages]
    items = [one["message_id"] for one in messages]
    asked = {"items": items, "leases": [one["lease_token"] for one in messages]}

    def read(fields: Fields) -> Fields:
        skipped = [items[one["place"]] for one in fields["refused"]]
        deadline = fields.get("lease_deadline")
        kept = [item for item in items if item not in skipped]
        return {"skipped": skipped, "deadlines": dict.fromkeys(kept, millis(deadline)) if deadline and kept else {}}

    return Request(verb, HEAP, "POST", f"/v1/{verb}", {"topic": HEAP, "leases": leases, **more}, asked, read)


class Enqueuer(Actor):
    pause_ms = 110.0

    def routine(self) -> Routine:
        chance = self.chance
        ids = self.ids(chance.choice((1, 1, 2, 5)))
        priorities = [chance.randint(-5, 20) for _ in ids]
        delays = {number: chance.choice((0, 0, 0, 400)) for number in ids}
        messages = [
            {"topic": HEAP, "payload_json": {"id": number}, "priority": priority, "not_before": delays[number] / 1000}
            for number, priority in zip(ids, priorities, strict=True)
        ]
        key = f"{self.name}-{ids[0]}"
        asked = {"ids": ids, "priorities": priorities, "delays": delays, "key": key}
        # Who is impatient asks again while the first is still being stored.
        timeout_ms = chance.choice((IMPATIENT_MS, TIMEOUT_MS))
        if len(ids) == 1:
            body: Fields = messages[0] | {"producer_id": self.name, "epoch": 1, "sequence": ids[0]}
            request = Request("enqueue", HEAP, "POST", "/v1/enqueue", body, asked, _read_one, timeout_ms)
        else:
            body = {"messages": messages, "transaction_id": key}
            request = Request("enqueue", HEAP, "POST", "/v1/enqueue:batch", body, asked, _read_many, timeout_ms)
        for _ in range(8):
            reply = yield request
            if reply.ok:
                return
            yield self.retry_ms()


def _read_one(fields: Fields) -> Fields:
    return {"messages": [fields["message_id"]]}


def _read_many(fields: Fields) -> Fields:
    return {"messages": [one["message_id"] for one in fields["responses"]]}


class Popper(Actor):
    pause_ms = 90.0

    def routine(self) -> Routine:
        chance = self.chance
        reply = yield pop_request(self.name, chance.choice((1, 1, 3)))
        messages = reply.fields.get("items", []) if reply.ok else []
        if not messages:
            if chance.random() < 0.1:
                yield Request("replay", HEAP, "POST", f"/v1/heaps/{HEAP}/dlq/replay", {}, may_repeat=False)
            return
        if chance.random() < 0.25:
            yield settle_request("extend", messages, extension=2 * LEASE_MS / 1000)
        # In time, or when somebody else has it by now, or when nobody has.
        yield chance.choice((5, 60, LEASE_MS + LATE_MS, 2 * LEASE_MS))
        fate = chance.random()
        if fate < 0.6:
            for _ in range(3):
                reply = yield settle_request("ack", messages)
                if reply.ok:
                    return
        elif fate < 0.8:
            yield settle_request("nack", messages, backoff_override=chance.choice((0, 0.2)))
