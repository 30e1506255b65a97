"""What a history is made of: calls as their clients know them, and what became of the machine meanwhile.

Nothing here knows the engine. A client knows what it asked for, when, and what it was told or not. Moments are numbers
of one line that all clients share, so that of two calls it can be said which was over before the other began; `_ms` are
times of a steady clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Outcome(Enum):
    """What a client knows about what it asked for."""

    OK = "ok"
    """It was done, and answered."""
    REFUSED = "refused"
    """It was not done, and never will be."""
    UNKNOWN = "unknown"
    """It may have been done, or will be, or not."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `asked` and `answer` are what matters of it; see the checker that reads the verb."""

    verb: str
    place: str
    """The topic and partition it is about, as `name#0`."""
    asked: Mapping[str, Any]
    sent: int
    done: int | None = None
    outcome: Outcome = Outcome.UNKNOWN
    answer: Mapping[str, Any] = field(default_factory=dict)
    copies: int = 1
    """How often the request went out: a second copy may be carried out later than the first was answered."""
    sent_ms: int = 0
    done_ms: int = 0
    client: str = ""
    wall_ms: int = 0
    """What the clock on the wall showed when it was asked for."""
    latest_ms: int = 0
    """The latest time that clock has ever shown up to the end of the call."""

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def possible(self) -> bool:
        """Whether it may have been done."""
        return self.outcome is not Outcome.REFUSED

    def before(self, other: Call) -> bool:
        """Whether this was over, for good, before the other began."""
        return self.done is not None and self.copies == 1 and self.done < other.sent and self.ok

    def answered_before(self, other: Call) -> bool:
        """Whether the other was asked by somebody who could know this answer."""
        return self.ok and self.done is not None and self.done < other.sent


@dataclass(frozen=True, slots=True)
class Fault:
    """The process died. With `power`, what was not synced may be gone: what was answered in the last `window_ms`.

    With `stopped` it had been asked to end. From `sick_from` on its disk had failed, and a part of it took no writes.
    """

    at: int
    at_ms: int = 0
    power: bool = False
    window_ms: int = 0
    stopped: bool = False
    sick_from: int | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """One event of a stream, as a watcher that honours ids has taken it in."""

    watcher: str
    place: str
    at: int
    records: Sequence[tuple[int, int]] = ()
    """Seq and id of each."""
    from_seq: int = 0
    to_seq: int = 0
    gap: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """What was promised of a place when it was made."""

    synced: bool = True
    """Whether what is answered survives a power loss."""
    capped: bool = False
    """Whether records may be taken by a cap or a TTL, and told so."""
    cap: int = 0
    """How many records are kept; 0 for all."""
    ttl_ms: int = 0
    """How long they are kept; 0 for ever."""
    forgets: bool = False
    """Whether all of it may be gone, and its seqs be given out again, whenever the process dies."""
    leases_synced: bool = True
    """Whether a lease survives a power loss."""
    stop_releases: bool = False
    """Whether a server that is asked to end gives all leases back, and counts no attempt."""
    source: str = ""
    """The place whose records are copied here; empty for none."""
    source_tag: str = ""
    """Only records with this tag are copied; empty for all."""
    letters: str = ""
    """The place of the dead letters; empty when a client does not read it."""
    deliveries_max: int = 0
    """So often is a job delivered before it dies."""
    batches: bool = False
    """Whether records come by other ways than plain writes: batches, results, dead letters."""
    rank_max: int = 0
    """Of a heap: how far from the best a pop may be; 0 says nothing."""
    best_is_low: bool = True


@dataclass(slots=True)
class History:
    """All that is known from outside."""

    topics: dict[str, Topic] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    """When the clock on the wall was set to another time."""
    is_final: bool = False
    """Whether it ends in peace: everything was healed, waited for and read to its end."""

    def topic(self, place: str) -> Topic:
        return self.topics.get(place, Topic())

    def of(self, place: str, *verbs: str) -> list[Call]:
        return [call for call in self.calls if call.place == place and call.verb in verbs]

    def places(self, *verbs: str) -> list[str]:
        """Where these verbs were used, each once."""
        return list(dict.fromkeys(call.place for call in self.calls if call.verb in verbs))

    def may_have_lost(self, call: Call, until: int | None) -> bool:
        """Whether a power loss between a call and a moment may have undone it, if its class allows for that."""
        return any(
            fault.power
            and fault.at > call.sent
            and (until is None or fault.at < until)
            and (call.done is None or fault.at_ms - call.done_ms <= fault.window_ms)
            for fault in self.faults
        )

    def lease_may_be_gone(self, place: str, since: Call, until: Call) -> bool:
        """Whether a lease may have ended between two calls because the process did."""
        topic = self.topic(place)
        return any(
            since.sent < fault.at < (until.done or fault.at + 1)
            and ((fault.power and not topic.leases_synced) or (fault.stopped and topic.stop_releases))
            for fault in self.faults
        )

    def deaths_before(self, call: Call) -> int:
        """How often the process had died when a call was answered."""
        return sum(fault.at < (call.done or 0) for fault in self.faults)

    def has_jumped(self, since: Call, until: Call) -> bool:
        """Whether the clock on the wall may have jumped between the beginning of one call and the end of another."""
        return any(since.sent < at and (until.done is None or at < until.done) for at in self.jumps)

    def jumped_before(self, until: Call) -> bool:
        """Whether the clock on the wall had ever jumped by the end of a call."""
        return any(until.done is None or at < until.done for at in self.jumps)

    def was_sick(self, call: Call) -> bool:
        """Whether a part of the server may have been out of order during a call."""
        return any(
            fault.sick_from is not None and fault.sick_from < (call.done or 0) and call.sent < fault.at
            for fault in self.faults
        )

    def power_lost(self, after: int, until: int | None) -> bool:
        return any(fault.power and fault.at > after and (until is None or fault.at < until) for fault in self.faults)


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken: the rule's name, and what was seen."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"
