"""Histories made by hand: one call after the other, each over before the next begins unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from topics.testing.checkers import Call, Fault, Heard, History, Outcome, Topic, Violation

PLACE = "t#0"
STEP_MS = 10


class Making:
    """A history in the making."""

    def __init__(self, place: str = PLACE, **promises: Any) -> None:
        self.history = History({place: Topic(**promises)})
        self.place = place
        self._moment = 0

    def _next(self) -> int:
        self._moment += 1
        return self._moment

    def call(self, verb: str, asked: dict[str, Any], answer: dict[str, Any] | None = None, **more: Any) -> Call:
        """Answered with `answer`; with None nobody knows. `sent`, `copies`, `place` and `outcome` may be said."""
        outcome = Outcome.UNKNOWN if answer is None else Outcome.OK
        sent = more.pop("sent", None) or self._next()
        done = None if answer is None else self._next()
        fields = {
            "place": self.place,
            "outcome": outcome,
            "sent_ms": sent * STEP_MS,
            "done_ms": (done or sent) * STEP_MS,
        }
        made = Call(verb, asked=asked, sent=sent, done=done, answer=answer or {}, **{**fields, **more})
        self.history.calls.append(made)
        return made

    def die(self, power: bool = True, window_ms: int = 0, **more: Any) -> None:
        at = self._next()
        self.history.faults.append(Fault(at, at * STEP_MS, power, window_ms, **more))

    def hear(self, records: Iterable[tuple[int, int]] = (), **more: Any) -> None:
        self.history.heard.append(Heard("watcher", self.place, self._next(), list(records), **more))

    def end(self) -> History:
        self.history.is_final = True
        return self.history

    # ---- logs

    def write(self, *rows: tuple[int, int], tag: str = "", key: Any = None, **more: Any) -> Call:
        """Seq and id of each record; without an answer the seqs are nobody's to know."""
        answer = {"seqs": [seq for seq, _ in rows], "deduped": more.pop("deduped", False)}
        unknown = more.pop("unknown", False)
        ids = [number for _, number in rows]
        asked = {"ids": ids, "tags": [tag] * len(ids), "key": key, **more.pop("asked", {})}
        return self.call("write", asked, None if unknown else answer, **more)

    def read(self, *rows: tuple[int, int], from_seq: int = 0, upto: int = 0, **more: Any) -> Call:
        upto = upto or max([from_seq, *(seq for seq, _ in rows)])
        answer = {
            "records": [(seq, number, "") for seq, number in rows],
            "gap": more.pop("gap", None),
            "next_seq": upto,
            "head_seq": more.pop("head_seq", upto),
        }
        return self.call("read", {"from_seq": from_seq, **more.pop("asked", {})}, answer, **more)

    def delete(self, unknown: bool = False, **asked: Any) -> Call:
        return self.call("delete", asked, None if unknown else {})

    # ---- leases

    def claim(self, *grants: dict[str, Any], **more: Any) -> Call:
        return self.call("claim", more.pop("asked", {}), {"grants": list(grants)}, **more)

    def settle(self, verb: str, item: Any, lease: str, unknown: bool = False, **answer: Any) -> Call:
        told = {"skipped": [], "deadlines": {}, **answer}
        return self.call(verb, {"items": [item], "leases": [lease]}, None if unknown else told)


def grant(item: Any, lease: str, at: int, until: int, attempts: int = 1, **more: Any) -> dict[str, Any]:
    fields = {"id": item, "born_ms": 0, **more}
    return {
        "item": item, "lease": lease, "granted_ms": at, "deadline_ms": until, "attempts": attempts, **fields,
    }  # fmt: skip


def rules(checker: Callable[[History], Iterator[Violation]], history: History) -> list[str]:
    """The names of the rules that a history breaks, each once."""
    return sorted({violation.rule.partition(".")[2] for violation in checker(history)})
