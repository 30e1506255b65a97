"""Random histories of a table, and tables rebuilt out of what a topic says about them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


class History:
    """Random changes of a table with columns `id`, `body` and `n`, as a model keeps them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rows: dict[int, Row] = {}
        self._next_id = 1

    def new_rows(self, count: int) -> list[Row]:
        found = [self._row(self._next_id + at) for at in range(count)]
        self._next_id += count
        self.rows |= {row["id"]: row for row in found}
        return found

    def merged_rows(self, count: int) -> list[Row]:
        """Some that are there, changed, and some that are not."""
        there = self.chance.sample(sorted(self.rows), min(count, len(self.rows)))
        found = [self._row(id) for id in there]
        self.rows |= {row["id"]: row for row in found}
        return found + self.new_rows(self.chance.randint(0, count))

    def raised_ids(self) -> list[int]:
        """Ids of rows whose `n` goes up by one."""
        ids = self._some()
        for id in ids:
            self.rows[id] = {**self.rows[id], "n": None if self.rows[id]["n"] is None else self.rows[id]["n"] + 1}
        return ids

    def removed_ids(self) -> list[int]:
        ids = self._some()
        for id in ids:
            del self.rows[id]
        return ids

    def content(self) -> list[Row]:
        return [self.rows[id] for id in sorted(self.rows)]

    def _some(self) -> list[int]:
        return self.chance.sample(sorted(self.rows), min(self.chance.randint(1, 5), len(self.rows)))

    def _row(self, id: int) -> Row:
        words = ["", 'a "quoted" one', "línea\n", "x" * self.chance.randint(0, 30)]
        return {
            "id": id,
            "body": self.chance.choice([None, *words]),
            "n": self.chance.choice([None, self.chance.randint(-9, 9)]),
        }


def replayed(records: Iterable[Any]) -> list[Row]:
    """The table that records of changes describe, `full` or `diff`; each has to fit what came before."""
    rows: dict[int, Row] = {}
    for record in records:
        change = record.data
        id, op, payload = change["key"]["id"], change["op"], change["payload"]
        assert (id in rows) is (op != "insert"), f"{op} of {id}: {change}"
        if change["payload_mode"] == "diff":
            before = rows.get(id, {})
            for name, both in payload.items():
                assert before.get(name) == both["old"], change
            payload = before | {name: both["new"] for name, both in payload.items()}
        elif op == "delete":
            assert rows[id] == {name: payload.get(name) for name in rows[id]}, change
        if op == "delete":
            del rows[id]
        else:
            rows[id] = payload
    return [rows[id] for id in sorted(rows)]


def keys_left(records: Iterable[Any]) -> list[int]:
    """The keys that are there after changes of which only the keys are known."""
    keys: set[int] = set()
    for record in records:
        id = record.data["payload"]["id"]
        if record.data["op"] == "insert":
            assert id not in keys
            keys.add(id)
        elif record.data["op"] == "delete":
            keys.remove(id)
    return sorted(keys)
