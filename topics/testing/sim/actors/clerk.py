"""The clerk speaks SQL: it makes a topic, inserts into it, and consumes it in a group, all by statements.

A statement tells neither the claim nor its deadline. A clerk has one claim at a time, under its name.
"""

from __future__ import annotations

from collections.abc import Callable

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import Fields, Request
from topics.testing.sim.plan import LATE_MS, LEDGER, VISIBILITY_MS

PLACE = f"{LEDGER}#0"
GROUP = "office"


def _statement(verb: str, place: str, text: str, asked: Fields, read: Callable[[Fields], Fields]) -> Request:
    return Request(verb, place, "POST", "/v0/sql", {"sql": text}, asked, lambda fields: read(fields["results"][0]))


def create_request() -> Request:
    options = f"durability = 'fsync', visibility_ms = {VISIBILITY_MS}"
    return _statement("make", "", f"CREATE TOPIC IF NOT EXISTS {LEDGER} WITH ({options})", {}, lambda result: {})


def insert_request(ids: list[int]) -> Request:
    rows = ", ".join(f"""('{{"id": {number}}}')""" for number in ids)
    asked = {"ids": ids, "tags": [""] * len(ids), "key": None}
    return _statement("write", PLACE, f"INSERT INTO TOPIC {LEDGER} VALUES {rows}", asked, _read_inserted)


def _read_inserted(result: Fields) -> Fields:
    ((_, _, first_seq, last_seq),) = result["rows"]
    return {"seqs": list(range(first_seq, last_seq + 1)), "deduped": False}


def consume_request(consumer: str, limit: int) -> Request:
    text = f"CONSUME FROM {LEDGER} GROUP '{GROUP}' CONSUMER '{consumer}' FROM EARLIEST LIMIT {limit}"
    return _statement("consume", PLACE, text, {"group": GROUP}, read_consumed)


def read_consumed(result: Fields) -> Fields:
    names = [column["name"] for column in result["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in result["rows"]]
    records = [(row["offset"], row["payload"]["id"]) for row in rows]
    gap = result.get("tombstone")
    return {
        "claim": f"{records[0][0]} to {records[-1][0]}" if records else "",
        "first_seq": records[0][0] if records else 0,
        "last_seq": records[-1][0] if records else 0,
        "records": records,
        "granted_ms": 0,
        "deadline_ms": 0,
        "gap": None if gap is None else (gap["gap_from"], gap["gap_to"], gap["reason"]),
    }


def settle_request(verb: str, consumer: str, batch: Fields) -> Request:
    """`ACK` or `NACK` of all that was consumed last."""
    text = f"{verb} {LEDGER} GROUP '{GROUP}' CONSUMER '{consumer}' UPTO OFFSET {batch['last_seq']}"
    # Whoever names itself means all that it has up to there, also of claims whose answer it never got.
    asked = {"group": GROUP, "claim": batch["claim"], "first_seq": 1, "last_seq": batch["last_seq"]}
    return _statement(f"group_{verb.lower()}", PLACE, text, asked, _read_settled)


def _read_settled(result: Fields) -> Fields:
    names = [column["name"] for column in result["columns"]]
    row = dict(zip(names, result["rows"][0], strict=True))
    return {"acked": 0, "deadline_ms": 0, "committed_seq": row["committed_offset"]}


class Clerk(Actor):
    pause_ms = 110.0

    def routine(self) -> Routine:
        chance = self.chance
        self.world.notes.counts["by statement"] += 1
        if chance.random() < 0.45:
            yield insert_request(self.ids(chance.choice((1, 2, 4))))
            return
        reply = yield consume_request(self.name, chance.choice((1, 3, 8)))
        batch = read_consumed(reply.fields["results"][0]) if reply.ok else {}
        if not batch or not batch["claim"]:
            return
        yield chance.choice((5, 60, VISIBILITY_MS + LATE_MS, 2 * VISIBILITY_MS))
        fate = chance.random()
        if fate < 0.65:
            for _ in range(3):
                reply = yield settle_request("ACK", self.name, batch)
                if reply.ok:
                    return
        elif fate < 0.8:
            yield settle_request("NACK", self.name, batch)
