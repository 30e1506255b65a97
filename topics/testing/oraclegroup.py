"""A naive model of what a consumer group promises, to hold an implementation against.

Written from the specification alone: a list of records, loops over everything, one state a record. A record is live, or
it was deleted or lost. Whether it is or not, the group has acked it, somebody has it until a deadline, it rests until a
time, or it waits; time decides which, whenever it is asked. The model does not say how many records one consume gets,
only which ones may come first and what must not be among them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class End(Enum):
    """Why a record is gone."""

    DELETED = auto()
    LOST = auto()
    """Expired or evicted."""


@dataclass(slots=True)
class Entry:
    seq: int
    ts: int
    tag: str = ""
    end: End | None = None
    acked: bool = False
    """Done; of what was lost: somebody knows."""
    deliveries: int = 0
    consumer: str = ""
    token: int = 0
    """Of the last claim, unless it was given back; also of the claim that a loss was told with."""
    deadline_ms: int = 0
    rests_until_ms: int = 0

    def is_held(self, now_ms: int) -> bool:
        return bool(self.token) and now_ms <= self.deadline_ms

    def is_waiting(self, now_ms: int) -> bool:
        return not self.acked and not self.is_held(now_ms) and now_ms >= self.rests_until_ms

    def forget(self) -> None:
        self.acked, self.deliveries, self.rests_until_ms = False, 0, 0
        self.let_go()

    def let_go(self) -> None:
        self.consumer, self.token, self.deadline_ms = "", 0, 0


@dataclass(slots=True)
class OracleGroup:
    ttl_ms: int = 0
    cap_records: int = 0
    max_deliveries: int = 0
    """With a dead-letter topic; 0 is none."""
    entries: list[Entry] = field(default_factory=list)
    start_seq: int = 0
    """0 while the group is not there."""
    buried: int = 0

    # ---- the log

    @property
    def head_seq(self) -> int:
        return len(self.entries)

    def at(self, seq: int) -> Entry:
        return self.entries[seq - 1]

    def live(self, now_ms: int) -> list[Entry]:
        for entry in self.entries:
            if entry.end is None and self.ttl_ms and now_ms - entry.ts > self.ttl_ms:
                entry.end = End.LOST
        return [entry for entry in self.entries if entry.end is None]

    def write(self, count: int, now_ms: int, tag: str = "") -> None:
        self.live(now_ms)
        self.entries += [Entry(self.head_seq + at + 1, now_ms, tag) for at in range(count)]
        live = self.live(now_ms)
        for entry in live[: max(0, len(live) - self.cap_records)] if self.cap_records else ():
            entry.end = End.LOST

    def delete(self, now_ms: int, before_seq: int | None = None, tag: str | None = None) -> int:
        found = [
            entry
            for entry in self.live(now_ms)
            if (before_seq is None or entry.seq < before_seq) and (tag is None or entry.tag == tag)
        ]
        for entry in found:
            entry.end = End.DELETED
        return len(found)

    # ---- the group

    def own(self) -> list[Entry]:
        """The records that the group is to get or has got."""
        return self.entries[self.start_seq - 1 :] if self.start_seq else []

    def place(self, cursor: int) -> None:
        self.start_seq = cursor + 1
        for entry in self.entries:
            entry.forget()

    def drop(self) -> None:
        self.start_seq = 0
        for entry in self.entries:
            entry.forget()

    def committed(self, now_ms: int) -> int:
        self.live(now_ms)
        seq = self.start_seq - 1
        for entry in self.own():
            if not entry.acked and entry.end is None:
                break
            seq = entry.seq
        return seq

    def free(self, now_ms: int) -> list[Entry]:
        """To be handed out before anything new: handed out before, or passed by when something behind was acked."""
        self.live(now_ms)
        touched = [each.seq for each in self.own() if each.deliveries or each.acked]
        waiting = [each for each in self.own() if each.end is None and each.is_waiting(now_ms)]
        return [each for each in waiting if each.deliveries or each.seq < max(touched, default=0)]

    def fresh(self, now_ms: int) -> list[Entry]:
        """Never handed out."""
        self.live(now_ms)
        return [each for each in self.own() if each.end is None and not each.deliveries and each.is_waiting(now_ms)]

    def untold(self, now_ms: int) -> list[Entry]:
        """Lost, and to be told."""
        self.live(now_ms)
        return [each for each in self.own() if each.end is End.LOST and each.is_waiting(now_ms)]

    def losses(self, now_ms: int) -> list[Entry]:
        """Lost, and nobody acked to know."""
        self.live(now_ms)
        return [each for each in self.own() if each.end is End.LOST and not each.acked]

    def bury(self, now_ms: int) -> list[Entry]:
        """What goes to the dead letters before a consume finds something to hand out."""
        found = []
        for entry in self.free(now_ms):
            if not self.max_deliveries or entry.deliveries < self.max_deliveries:
                break
            found.append(entry)
        for entry in found:
            entry.acked = True
        self.buried += len(found)
        return found

    def handed_out(self, entry: Entry, consumer: str, token: int, deadline_ms: int) -> None:
        entry.consumer, entry.token, entry.deadline_ms = consumer, token, deadline_ms
        entry.deliveries += entry.end is None

    def meant(self, now_ms: int, upto_seq: int, from_seq: int, consumer: str, token: int | None) -> list[Entry]:
        """What is somebody's, of those that a command names; what ran out counts until somebody else gets it."""
        self.live(now_ms)
        own = [entry for entry in self.own() if not entry.acked and entry.token and entry.end is not End.DELETED]
        if token is not None:
            tokens = {token}
        elif consumer:
            tokens = {entry.token for entry in own if entry.consumer == consumer}
        else:
            tokens = {entry.token for entry in own if entry.seq == upto_seq}
        held = [entry for entry in own if entry.token in tokens]
        if consumer:
            held = [entry for entry in held if entry.consumer == consumer]
        ended = {entry.token for entry in held if entry.end is None and entry.seq <= upto_seq}
        ended -= {entry.token for entry in held if entry.end is None and entry.seq > upto_seq}
        return [
            entry
            for entry in held
            if entry.seq >= from_seq and (entry.seq <= upto_seq or (entry.end is End.LOST and entry.token in ended))
        ]

    def ack(self, now_ms: int, upto_seq: int, from_seq: int, consumer: str, token: int | None) -> None:
        upto_seq = min(upto_seq, self.head_seq)
        for entry in self.meant(now_ms, upto_seq, from_seq, consumer, token):
            entry.acked = True
        if token is None:
            for entry in self.fresh(now_ms):
                if from_seq <= entry.seq <= upto_seq:
                    entry.acked = True

    def nack(self, now_ms: int, upto_seq: int, from_seq: int, consumer: str, token: int | None, delay_ms: int) -> None:
        for entry in self.meant(now_ms, min(upto_seq, self.head_seq), from_seq, consumer, token):
            entry.let_go()
            entry.rests_until_ms = now_ms + delay_ms

    def extend(
        self, now_ms: int, upto_seq: int, from_seq: int, consumer: str, token: int | None, deadline_ms: int
    ) -> None:
        for entry in self.meant(now_ms, min(upto_seq, self.head_seq), from_seq, consumer, token):
            entry.deadline_ms = deadline_ms
