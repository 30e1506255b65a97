"""The state of the consumer groups of one partition's log, and the only functions that change it.

    committed         every record up to here is acked, deleted or lost
    ranges            whose the seqs behind it are, up to the last that was handed out (`core/groupranges.py`)
    losses            what was lost before it was acked, until somebody knows (`core/grouplosses.py`)

State changes in `apply`, from facts, and in `observe`, as the log and the time say: what was lost below the floor
becomes a loss, what is deleted is passed over, claims that ran out are free. None of that is stored, since the same log
at the same time says the same again; the floors it depends on are stored before any fact of a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from topics.core import live
from topics.core.groupfacts import (
    AnyGroupFact,
    GroupAcked,
    GroupDropped,
    GroupFreed,
    GroupKept,
    GroupLeased,
    GroupPaused,
    GroupPlaced,
    LivingGroupFact,
    SeqRange,
)
from topics.core.grouplosses import Loss, Losses
from topics.core.groupranges import ACKED, CLAIMED, FREE, LEAVING, Ranges
from topics.model import Reason

if TYPE_CHECKING:
    from topics.core.log import Log

CLAIM_ID_PREFIX = "claim_"
TOKEN_DIGITS_MAX = 16


class Group:
    __slots__ = (
        "committed",
        "dead_letter_error",
        "dead_lettered",
        "losses",
        "lost_count",
        "name",
        "paused",
        "ranges",
        "start_seq",
        "updated_ms",
    )

    def __init__(self, name: str, cursor: int = 0, at_ms: int = 0) -> None:
        self.name = name
        self.paused = False
        self.dead_lettered = 0
        self.dead_letter_error: str | None = None
        """Why what was to be dead-lettered last could not be; it stays and is tried again."""
        self.lost_count = 0
        self.place(cursor, at_ms)

    def place(self, cursor: int, at_ms: int) -> None:
        self.start_seq = cursor + 1
        self.committed = cursor
        self.ranges = Ranges(cursor + 1)
        self.losses = Losses()
        self.updated_ms = at_ms

    @property
    def next_seq(self) -> int:
        """The first seq that was never handed out."""
        return self.ranges.next_seq

    def next_due_ms(self, now_ms: int) -> int | None:
        """When there may be something to hand out because of time alone; None when never."""
        due = [self.ranges.next_due_ms(), self.losses.next_due_ms()]
        return min((due_ms for due_ms in due if due_ms is not None and due_ms > now_ms), default=None)

    # ---- what the log and the time say

    def observe(self, log: Log) -> None:
        """Pass over what is gone: what was lost is a loss, what was deleted is nothing."""
        if self.committed + 1 < log.evict_floor:
            self._lose(log, self.committed + 1, log.evict_floor - 1)
        self._advance(log)

    def skip_gone(self, log: Log) -> None:
        """Pass over what is gone of that which was never handed out."""
        self._pass(log, self.next_seq, live.next_live(log, self.next_seq) - 1)

    def settle(self, log: Log) -> None:
        """After a recovery: what was handed out and did not survive is lost."""
        for hole in log.holes:
            if hole.gap_from < self.next_seq and hole.gap_to > self.committed:
                first = max(hole.gap_from, self.committed + 1)
                self._lose(log, first, min(hole.gap_to, self.next_seq - 1), hole.reason)
        self.observe(log)

    def _advance(self, log: Log) -> None:
        while True:
            committed = self.ranges.commit()
            if committed is None:
                first = live.next_live(log, self.committed + 1)
                if first <= self.committed + 1:
                    return
                self._pass(log, self.committed + 1, first - 1)
            else:
                self.committed = committed

    def _pass(self, log: Log, first: int, last: int) -> None:
        """All of these are gone; those in a hole were lost."""
        if first > last:
            return
        for hole in log.holes:
            if hole.gap_from <= last and hole.gap_to >= first:
                self._lose(log, max(hole.gap_from, first), min(hole.gap_to, last), hole.reason)
        self.ranges.ack(first, last)

    def _lose(self, log: Log, first: int, last: int, reason: Reason | None = None) -> None:
        """What is not acked of these is lost, and counts as acked from here on."""
        for found in list(self.ranges.between(first, last)):
            if found.state in (ACKED, LEAVING):
                continue
            seqs = max(first, found.first), min(last, found.last)
            due_ms = found.due_ms if found.token or found.state != FREE else 0
            claim = due_ms, found.consumer, found.token
            self._add_loss(log, seqs, reason, claim)
            self.ranges.ack(*seqs)
        if last >= self.next_seq:
            seqs = max(first, self.next_seq), last
            self._add_loss(log, seqs, reason, (0, "", 0))
            self.ranges.ack(*seqs)

    def _add_loss(self, log: Log, seqs: SeqRange, reason: Reason | None, claim: tuple[int, str, int]) -> None:
        first, last = seqs
        self.lost_count += last - first + 1
        self.losses.add(Loss(first, last, reason or log.loss_reason(first), *claim))

    # ---- facts

    def apply(self, fact: LivingGroupFact, log: Log, now_ms: int) -> int:
        """How many seqs became acked."""
        acked = 0
        match fact:
            case GroupPlaced():
                self.place(fact.cursor, fact.at_ms)
            case GroupLeased():
                self._lease(fact, log)
            case GroupAcked():
                acked = sum(self.ranges.ack(max(first, self.committed + 1), last) for first, last in fact.ranges)
                for first, last in fact.known:
                    self.losses.know(first, last)
                self.updated_ms = fact.at_ms
            case GroupFreed():
                for first, last in fact.ranges:
                    self.ranges.free(first, last, fact.due_ms, now_ms)
                for first, last in fact.untold:
                    self.losses.free(first, last, fact.due_ms)
            case GroupKept():
                for first, last in fact.ranges:
                    self.ranges.keep(first, last, fact.due_ms)
                for first, last in fact.told:
                    self.losses.keep(first, last, fact.due_ms)
            case GroupPaused():
                self.paused = fact.paused
            case _:
                assert_never(fact)
        self.observe(log)
        return acked

    def _lease(self, fact: GroupLeased, log: Log) -> None:
        if fact.last_seq >= self.next_seq:
            self._pass(log, self.next_seq, fact.first_seq - 1)
            self.ranges.grow(fact.last_seq, CLAIMED, fact.due_ms, fact.consumer, fact.token)
        elif fact.first_seq:
            self.ranges.claim(fact.first_seq, fact.last_seq, fact.due_ms, fact.consumer, fact.token)
        for first, last in fact.told:
            self.losses.tell(first, last, fact.due_ms, fact.consumer, fact.token)

    def leave(self, ranges: list[SeqRange]) -> None:
        """Ranges are on their way to the dead-letter topic."""
        for first, last in ranges:
            self.ranges.leave(first, last)

    def left(self, ranges: list[SeqRange], letter_count: int, log: Log) -> None:
        """They are there; the group may have been placed anew meanwhile."""
        self.dead_lettered += letter_count
        for first, last in ranges:
            for found in [each for each in self.ranges.between(first, last) if each.state == LEAVING]:
                self.ranges.ack(found.first, found.last)
        self.observe(log)


class Groups:
    """All groups of a log, by name."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def get(self, name: str) -> Group | None:
        return self._groups.get(name)

    def add(self, group: Group, log: Log) -> None:
        self._groups[group.name] = group
        self.hold(group, log)

    def hold(self, group: Group, log: Log) -> None:
        """Tell retention what the group still needs."""
        log.holds.groups[group.name] = group.committed + 1

    def apply(self, fact: AnyGroupFact, log: Log, now_ms: int = 0) -> int:
        """Replay, and the same change when it is decided. A fact of a group that is not known is left out."""
        group = self._groups.get(fact.group)
        if isinstance(fact, GroupDropped):
            self._groups.pop(fact.group, None)
            log.holds.groups.pop(fact.group, None)
            return 0
        if group is None:
            if not isinstance(fact, GroupPlaced):
                return 0
            group = self._groups[fact.group] = Group(fact.group)
        group.observe(log)
        acked = group.apply(fact, log, now_ms)
        self.hold(group, log)
        return acked

    def settle(self, log: Log) -> None:
        """After a recovery."""
        for group in self._groups.values():
            group.settle(log)
            self.hold(group, log)


def claim_id(token: int) -> str:
    return f"{CLAIM_ID_PREFIX}{token:x}"


def parse_claim_id(text: str) -> int:
    """The token of a claim id; 0, which is no claim's, when it is none."""
    try:
        token = int(text[len(CLAIM_ID_PREFIX) :][:TOKEN_DIGITS_MAX], 16)
    except ValueError:
        return 0
    return token if token > 0 and claim_id(token) == text else 0
