"""Is a consumer group one? Its committed seq goes forward, nothing is passed over, no two have the same records.

Verbs, all of one `group` that they ask for: `consume` answers `claim` (empty for nothing), `first_seq`, `last_seq`,
`records` (seq, id), `granted_ms`, `deadline_ms` (0 where it is not told), `committed_seq` (where it is told), `gap`.
`group_ack` asks for `claim`, `first_seq`, `last_seq` and answers `acked`, `committed_seq`; `group_nack` and
`group_extend` ask for the same, an extend answers `deadline_ms`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topics.testing.checkers.events import Call, History, Violation

VERBS = ("consume", "group_ack", "group_nack", "group_extend")


def check_groups(history: History) -> Iterator[Violation]:
    calls: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in history.calls:
        if call.verb in VERBS and call.possible:
            calls[call.place, call.asked["group"]].append(call)
    for (place, group), found in calls.items():
        yield from _Group(history, place, group, found).check()


class _Group:
    def __init__(self, history: History, place: str, group: str, calls: list[Call]) -> None:
        self.history = history
        self.place = place
        self.group = group
        self.topic = history.topic(place)
        self.calls = calls
        self.claims = [call for call in calls if call.verb == "consume" and call.ok and call.answer["claim"]]
        self.acks = [call for call in calls if call.verb == "group_ack"]

    def check(self) -> Iterator[Violation]:
        yield from self._forward()
        yield from self._apart()
        yield from self._acked_is_done()
        yield from self._committed_is_done()
        yield from self._nothing_is_passed_over()
        for claim in self.claims:
            seqs = [seq for seq, _ in claim.answer["records"]]
            first, last = claim.answer["first_seq"], claim.answer["last_seq"]
            if seqs != sorted(set(seqs)) or any(not first <= seq <= last for seq in seqs):
                yield self._fail("range", f"a claim of {first} to {last} has the seqs {seqs}")

    def _fail(self, rule: str, text: str) -> Violation:
        return Violation(f"group.{rule}", f"{self.place} {self.group}: {text}")

    def _undone(self, call: Call, until: int | None) -> bool:
        return not self.topic.synced and self.history.may_have_lost(call, until)

    def _forward(self) -> Iterator[Violation]:
        told = [call for call in self.calls if call.ok and "committed_seq" in call.answer]
        told.sort(key=lambda call: call.done or 0)
        for at, call in enumerate(told):
            before = [other for other in told[:at] if other.answered_before(call)]
            for other in before:
                was, is_now = other.answer["committed_seq"], call.answer["committed_seq"]
                if is_now < was and not (not self.topic.synced and self.history.power_lost(other.sent, call.done)):
                    yield self._fail("back", f"the committed seq was {was} and then {is_now}")
                    return

    def _apart(self) -> Iterator[Violation]:
        extends = [call for call in self.calls if call.verb == "group_extend" and call.ok]
        told = [call for call in self.claims if call.answer["deadline_ms"]]
        claims = sorted(told, key=lambda call: (call.answer["granted_ms"], call.done or 0))
        for at, second in enumerate(claims):
            for first in claims[:at]:
                one, other = first.answer, second.answer
                if one["last_seq"] < other["first_seq"] or other["last_seq"] < one["first_seq"]:
                    continue
                # A claim that had run out may be extended when nobody has its records any more, so an extend that was
                # answered later says nothing about who had them before.
                own = [call for call in extends if call.asked["claim"] == one["claim"] and call.answered_before(second)]
                deadline_ms = max([one["deadline_ms"], *(call.answer["deadline_ms"] for call in own)])
                if other["granted_ms"] > deadline_ms or self._given_back(first, second):
                    continue
                if self.topic.leases_synced or not self.history.power_lost(first.sent, second.done):
                    text = f"{one['first_seq']} to {one['last_seq']} were somebody's up to {deadline_ms}"
                    again = f"{other['first_seq']} to {other['last_seq']} were handed out at {other['granted_ms']}"
                    yield self._fail("live", f"{text}, and {again}")

    def _given_back(self, claim: Call, other: Call) -> bool:
        return any(
            call.verb in ("group_nack", "group_ack")
            and call.asked["claim"] == claim.answer["claim"]
            and call.sent < (other.done or 0)
            for call in self.calls
        )

    def _acked_is_done(self) -> Iterator[Violation]:
        for ack in self.acks:
            first, last = ack.asked["first_seq"], ack.asked["last_seq"]
            if not ack.ok or ack.answer["acked"] <= last - first:
                continue  # Only a whole claim is known to be nobody else's in part.
            for claim in self.claims:
                again = [seq for seq, _ in claim.answer["records"] if first <= seq <= last]
                if again and ack.answered_before(claim) and not self._undone(ack, claim.done):
                    yield self._fail("done", f"{again} were acked and were handed out again")

    def _committed_is_done(self) -> Iterator[Violation]:
        """What the group is known to be through with is handed out to nobody."""
        told = [call for call in self.calls if call.ok and "committed_seq" in call.answer]
        for claim in self.claims:
            for call in told:
                committed = call.answer["committed_seq"]
                again = [seq for seq, _ in claim.answer["records"] if seq <= committed]
                if again and call.answered_before(claim) and not self._undone(call, claim.done):
                    yield self._fail("done", f"the committed seq was {committed}, and {again} were handed out")
                    return

    def _nothing_is_passed_over(self) -> Iterator[Violation]:
        acked: set[int] = set()
        told: set[int] = set()
        for call in self.acks:
            acked.update(range(call.asked["first_seq"], call.asked["last_seq"] + 1))
        for claim in self.claims:
            if claim.answer["gap"] is not None:
                told.update(range(claim.answer["gap"][0], claim.answer["gap"][1] + 1))
        told_calls = [call for call in self.calls if call.ok and "committed_seq" in call.answer]
        committed = max((call.answer["committed_seq"] for call in told_calls), default=0)
        deletes = [call for call in self.history.of(self.place, "delete") if call.possible]
        for write in self.history.of(self.place, "write"):
            for seq in write.answer["seqs"] if write.ok and not deletes and not self.topic.capped else ():
                if seq <= committed and seq not in acked | told and not self._undone(write, None):
                    yield self._fail("passed", f"the committed seq is {committed}, and nobody acked {seq}")
