"""Is a lease a lease? One holder at a time, done means done, whoever comes late is turned away, and nothing is lost.

For queues and heaps alike; an `item` is a seq or a message id. Verbs: `claim` answers `grants`, each a plain mapping of
item, id, lease, granted_ms, deadline_ms, attempts, born_ms. `ack`, `nack`, `complete` and `extend` ask for `items` and
`leases`; the answer has `skipped`, of an extend also `deadlines` by item. `write` and `enqueue` ask for `ids` and may
have `delays`, in milliseconds by id; the answer of a `write` has `seqs`. `redrive` takes dead letters back into their
place. At the end `letters` answers the `ids` among the dead letters of a place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from topics.testing.checkers.events import Call, History, Violation


@dataclass(frozen=True, slots=True)
class _Grant:
    item: Any
    id: int
    lease: str
    granted_ms: int
    deadline_ms: int
    attempts: int
    born_ms: int
    claim: Call


@dataclass(frozen=True, slots=True)
class _Settled:
    """What somebody who had a lease said of it. `known` says that it counted."""

    verb: str
    lease: str
    call: Call
    known: bool


def check_leases(history: History) -> Iterator[Violation]:
    for place in history.places("claim"):
        yield from _Leases(history, place).check()


class _Leases:
    def __init__(self, history: History, place: str) -> None:
        self.history = history
        self.place = place
        self.topic = history.topic(place)
        self.grants: dict[Any, list[_Grant]] = defaultdict(list)
        self.ids: dict[Any, int] = {}
        for call in history.of(place, "claim"):
            for fields in call.answer.get("grants", ()):
                self.ids[fields["item"]] = fields["id"]
                if call.ok:
                    self.grants[fields["item"]].append(_Grant(**fields, claim=call))
        for grants in self.grants.values():
            grants.sort(key=lambda grant: (*self._when(grant), grant.claim.done or 0))
        self.settled: dict[Any, list[_Settled]] = defaultdict(list)
        self.longer: dict[str, int] = {}
        for call in history.of(place, "ack", "nack", "complete", "extend"):
            if call.possible:
                self._take(call)

    def _when(self, grant: _Grant) -> tuple[int, int]:
        """Its place in time. A server whose clock was set back while it was down may grant at an earlier time."""
        return self.history.deaths_before(grant.claim), grant.granted_ms

    def _take(self, call: Call) -> None:
        skipped = call.answer.get("skipped", ())
        for item, lease in zip(call.asked["items"], call.asked["leases"], strict=True):
            turned_away = call.ok and item in skipped
            if turned_away and call.copies == 1:
                continue
            # Of two copies that went out one may have counted, and the other was answered.
            self.settled[item].append(_Settled(call.verb, lease, call, call.ok and not turned_away))
            if call.verb == "extend" and call.ok:
                self.longer[lease] = max(self.longer.get(lease, 0), call.answer["deadlines"].get(item, 0))

    def check(self) -> Iterator[Violation]:
        for item, grants in self.grants.items():
            yield from self._one_at_a_time(item, grants)
            yield from self._done_is_done(item, grants)
            yield from self._latecomers_are_skipped(item, grants)
            yield from self._counted(item, grants)
        yield from self._not_early()
        if self.history.is_final:
            yield from self._nothing_is_lost()

    def _fail(self, rule: str, text: str) -> Violation:
        return Violation(f"lease.{rule}", f"{self.place}: {text}")

    def _forgotten(self, since: Call, until: Call) -> bool:
        return self.history.lease_may_be_gone(self.place, since, until)

    def _undone(self, call: Call, until: int | None) -> bool:
        return not self.topic.synced and self.history.may_have_lost(call, until)

    # ---- the rules

    def _one_at_a_time(self, item: Any, grants: list[_Grant]) -> Iterator[Violation]:
        for first, second in pairwise(grants):
            if first.lease == second.lease:
                yield self._fail("id", f"{item} was handed out twice under the lease {first.lease}")
            deadline_ms = max(first.deadline_ms, self.longer.get(first.lease, 0))
            given_back = any(
                one.lease == first.lease and one.verb != "extend" and one.call.sent < (second.claim.done or 0)
                for one in self.settled[item]
            )
            if second.granted_ms <= deadline_ms and not given_back and not self._forgotten(first.claim, second.claim):
                text = f"{item} was somebody's up to {deadline_ms} and was handed out again at {second.granted_ms}"
                yield self._fail("live", text)

    def _done_is_done(self, item: Any, grants: list[_Grant]) -> Iterator[Violation]:
        done = [one for one in self.settled[item] if one.known and one.verb in ("ack", "complete")]
        for one in done:
            for grant in grants:
                if one.call.answered_before(grant.claim) and not self._undone(one.call, grant.claim.done):
                    yield self._fail("done", f"{item} was acked and was handed out again")
        for first, second in pairwise(done):
            if first.lease != second.lease and not self._undone(first.call, second.call.done):
                yield self._fail("done", f"{item} was acked twice, under {first.lease} and {second.lease}")

    def _latecomers_are_skipped(self, item: Any, grants: list[_Grant]) -> Iterator[Violation]:
        for one in self.settled[item]:
            mine = [grant for grant in grants if grant.lease == one.lease]
            if not one.known or not mine:
                continue
            for grant in grants:
                later = self._when(grant) > self._when(mine[0]) and grant.claim.answered_before(one.call)
                if later and not self._forgotten(grant.claim, one.call):
                    yield self._fail("fence", f"{item} was somebody else's, and {one.verb} of an older lease counted")

    def _counted(self, item: Any, grants: list[_Grant]) -> Iterator[Violation]:
        for first, second in pairwise(grants):
            if second.attempts <= first.attempts and not self._forgotten(first.claim, second.claim):
                text = f"{item} was handed out as number {first.attempts} and later as number {second.attempts}"
                yield self._fail("count", text)

    def _not_early(self) -> Iterator[Violation]:
        delays: dict[int, int] = {}
        written: set[Any] = set()
        for call in self.history.of(self.place, "write", "enqueue"):
            delays |= dict(call.asked.get("delays", {}))
            written |= set(call.answer.get("seqs", ()))
        redrives = [call for call in self.history.of(self.place, "redrive") if call.possible]
        for item, grants in self.grants.items():
            for grant in grants:
                # A dead letter that is taken back is a new job, which has waited already.
                again = item not in written and any(call.sent < (grant.claim.done or 0) for call in redrives)
                if grant.granted_ms < grant.born_ms + delays.get(grant.id, 0) and not again:
                    text = f"{grant.item} came {grant.granted_ms - grant.born_ms} ms after it was written"
                    yield self._fail("early", f"{text}, and was to wait for {delays[grant.id]} ms")

    def _nothing_is_lost(self) -> Iterator[Violation]:
        history = self.history
        acked = {self.ids.get(item): ones for item, ones in self.settled.items() if item in self.ids}
        letters = {number for call in history.of(self.place, "letters") if call.ok for number in call.answer["ids"]}
        gone: set[int] = set()
        for item, ones in self.settled.items():
            if any(one.verb in ("ack", "complete") for one in ones) and item in self.ids:
                gone.add(self.ids[item])
        for call in history.of(self.place, "write", "enqueue"):
            for number in call.asked["ids"] if call.ok else ():
                if number not in gone | letters and not self._undone(call, None):
                    yield self._fail("lost", f"job {number} was never done and is in no place")
        for number in sorted(letters & acked.keys()):
            for one in acked[number]:
                if one.known and one.verb in ("ack", "complete") and not self._undone(one.call, None):
                    yield self._fail("both", f"job {number} was acked and is among the dead letters")
