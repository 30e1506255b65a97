"""The lease table: what was handed out of a log, to whom, until when, and how often.

Only records that were ever touched have an entry. A record that waits for its first delivery has none: the owner of
the table finds it with a cursor over the log. An entry is a row of columns (seq, due time, holder, token, deliveries)
and is in one of four states:

    LEASED    somebody holds it, until `due_ms`
    DELAYED   nobody may have it before `due_ms`: it was written or given back with a delay
    FREE      to be handed out again, lowest seq first: its lease ran out, or it was given back
    LEAVING   being moved to another log, see `core/move.py`

Time alone makes LEASED and DELAYED FREE, in `expire`: lazily, from one schedule of due times, without a timer an entry.
A lease that ran out still names its holder, who may complete or extend it until somebody else gets it. So the state is
what the columns say at a time, kept beside them to be counted: no fact and no image holds it.

`due_ms` is the first millisecond at which a record may be handed out again; a lease's deadline is the one before.

Three heaps find entries: by due time (`Schedule`), by seq among the free ones, and by seq among all, for a floor that
moves past them. Entries that change leave dead items in the heaps, which are passed over when met; a heap that is
mostly dead is made anew, so that it costs what its live part costs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from topics.core.holders import NOBODY, Holders
from topics.core.schedule import Schedule

FREE: Final = 0
LEASED: Final = 1
DELAYED: Final = 2
LEAVING: Final = 3

_SLACK = 1024
"""Dead items that are not worth making a heap anew for."""

LEASE_ID_PREFIX = "lease_"
TOKEN_DIGITS_MAX = 16


class Lease(NamedTuple):
    """One entry, to look at."""

    seq: int
    state: int
    due_ms: int
    node: str
    token: int
    deliveries: int


class LeaseColumns(NamedTuple):
    """All entries, ascending by seq, as a snapshot keeps them: eight bytes little endian each, or four."""

    seqs: bytes
    due_times: bytes
    tokens: bytes
    deliveries: bytes
    holders: bytes
    """Places in `nodes`, counted from 1; 0 is nobody."""
    nodes: list[str]


class LeaseTable:
    __slots__ = (
        "_by_seq",
        "_deliveries",
        "_due_times",
        "_free",
        "_holders",
        "_schedule",
        "_slots",
        "_states",
        "_tokens",
        "_unused",
        "counts",
        "highest",
        "holders",
    )

    def __init__(self) -> None:
        self.holders = Holders()
        self.counts = [0, 0, 0, 0]
        """Entries by state."""
        self.highest = 0
        """No entry was ever above this seq."""
        self._slots: dict[int, int] = {}
        self._due_times = array("Q")
        self._tokens = array("Q")
        self._deliveries = array("I")
        self._holders = array("I")
        self._states = bytearray()
        self._unused: list[int] = []
        self._free: list[int] = []
        self._by_seq: list[int] = []
        self._schedule = Schedule()

    # ---- looking

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, seq: int) -> bool:
        return seq in self._slots

    def get(self, seq: int) -> Lease | None:
        slot = self._slots.get(seq)
        if slot is None:
            return None
        return Lease(
            seq,
            self._states[slot],
            self._due_times[slot],
            self.holders.nodes[self._holders[slot]],
            self._tokens[slot],
            self._deliveries[slot],
        )

    def __iter__(self) -> Iterator[Lease]:
        """All entries, ascending by seq."""
        return (lease for seq in sorted(self._slots) if (lease := self.get(seq)) is not None)

    def deliveries(self, seq: int) -> int:
        slot = self._slots.get(seq)
        return 0 if slot is None else self._deliveries[slot]

    def conditions(self, seqs: Iterable[int]) -> tuple[list[int], list[int]]:
        """The state of each of these, and how often it was handed out; one without an entry is free."""
        slots = [self._slots.get(seq) for seq in seqs]
        states = [FREE if slot is None else self._states[slot] for slot in slots]
        return states, [0 if slot is None else self._deliveries[slot] for slot in slots]

    def split(self, node: str, seqs: Sequence[int], tokens: Sequence[int] | None) -> tuple[list[int], list[int]]:
        """The seqs that `node` may complete, each once and ascending, and the others, as they were named.

        They are its own when it was the last to get them, with this very token if tokens are given.
        """
        slots, nodes, holders, own_tokens = self._slots, self.holders.nodes, self._holders, self._tokens
        held: list[int] = []
        skipped = []
        own = -1
        for at, seq in enumerate(seqs):
            slot = slots.get(seq)
            if slot is None or (tokens is not None and own_tokens[slot] != tokens[at]):
                skipped.append(seq)
                continue
            holder = holders[slot]
            if holder != own:
                # Neighbours mostly have the same holder.
                if nodes[holder] != node:
                    skipped.append(seq)
                    continue
                own = holder
            held.append(seq)
        once = set(held)
        if len(once) < len(held):
            return sorted(once), skipped_of(seqs, once)
        return sorted(held), skipped

    def is_free(self, seq: int) -> bool:
        slot = self._slots.get(seq)
        return slot is not None and self._states[slot] == FREE

    def is_waiting(self, seq: int) -> bool:
        """Whether nobody has this: no entry, or a free or delayed one."""
        slot = self._slots.get(seq)
        return slot is None or self._states[slot] in (FREE, DELAYED)

    def next_due_ms(self) -> int | None:
        """When `expire` may have something to do."""
        return self._schedule.next_ms()

    # ---- time

    def expire(self, now_ms: int) -> None:
        """Free what is due by now."""
        due_first = self._schedule.next_ms()
        if due_first is None or due_first > now_ms:
            return
        slots, states, due_times = self._slots, self._states, self._due_times
        for due_ms, seqs in self._schedule.take_due(now_ms):
            for seq in seqs:
                slot = slots.get(seq)
                if slot is None or due_times[slot] != due_ms or states[slot] not in (LEASED, DELAYED):
                    continue
                self._set_free(slot, seq)

    def take_free(self, limit: int, upto_seq: int) -> list[int]:
        """Up to so many free seqs, lowest first. The caller leases them, moves them or gives them back at once."""
        free, slots, states = self._free, self._slots, self._states
        taken: list[int] = []
        while free and len(taken) < limit and free[0] <= upto_seq:
            seq = heappop(free)
            while free and free[0] == seq:
                heappop(free)  # It was freed, taken back and freed again.
            slot = slots.get(seq)
            if slot is not None and states[slot] == FREE:
                taken.append(seq)
        return taken

    def give_back(self, seqs: Iterable[int]) -> None:
        """What `take_free` gave and nobody wanted."""
        for seq in seqs:
            heappush(self._free, seq)

    # ---- changes

    def lease(self, seqs: Sequence[int], due_ms: int, node: str, connection: int, token: int) -> list[int]:
        """Hand out to a holder; how often each was handed out by now. The tokens go up by one from record to record.

        The seqs are ascending, each once.
        """
        holder = self.holders.take(node, connection, len(seqs))
        if seqs and seqs[0] > self.highest:
            self._lease_fresh(seqs, due_ms, holder, token)
            counts = [1] * len(seqs)
        else:
            counts = self._lease_each(seqs, due_ms, holder, token)
        if connection:
            for seq in seqs:
                self.holders.holds(holder, seq)
        self._plan(due_ms, seqs)
        return counts

    def _lease_fresh(self, seqs: Sequence[int], due_ms: int, holder: int, token: int) -> None:
        """None of these was ever here, and all are above those that were: most of what is handed out."""
        count, unused = len(seqs), self._unused
        if len(unused) < count:
            self._grow(count - len(unused))
        taken = unused[-count:]
        del unused[-count:]
        due_times, tokens, deliveries, holders = self._due_times, self._tokens, self._deliveries, self._holders
        states = self._states
        for slot in taken:
            due_times[slot] = due_ms
            tokens[slot] = token
            deliveries[slot] = 1
            holders[slot] = holder
            states[slot] = LEASED
            token += 1
        self.counts[LEASED] += count
        self._slots.update(zip(seqs, taken, strict=True))
        self.highest = seqs[-1]
        # What is larger than all before it may stand at the end of a heap.
        self._by_seq += seqs
        self._tidy_by_seq()

    def _grow(self, count: int) -> None:
        """Make so many slots."""
        first = len(self._states)
        self._due_times.frombytes(bytes(8 * count))
        self._tokens.frombytes(bytes(8 * count))
        self._deliveries.frombytes(bytes(4 * count))
        self._holders.frombytes(bytes(4 * count))
        self._states += bytes(count)
        self._unused += range(first, first + count)

    def _lease_each(self, seqs: Sequence[int], due_ms: int, holder: int, token: int) -> list[int]:
        slots = self._slots
        counts = []
        for seq in seqs:
            slot = slots.get(seq)
            if slot is None:
                self._add(seq, due_ms, LEASED, holder, token, 1)
                counts.append(1)
            else:
                self._let_go(slot, seq)
                self._due_times[slot] = due_ms
                self._set_state(slot, LEASED)
                self._deliveries[slot] += 1
                self._tokens[slot] = token
                self._holders[slot] = holder
                counts.append(self._deliveries[slot])
            token += 1
        return counts

    def delay(self, seqs: Sequence[int], due_ms: int) -> None:
        """Records nobody had yet are not to be handed out before a time. What has an entry is left out."""
        fresh = [seq for seq in seqs if seq not in self._slots]
        for seq in fresh:
            self._add(seq, due_ms, DELAYED)
        self._plan(due_ms, fresh)

    def release(self, seqs: Iterable[int], due_ms: int, now_ms: int, undelivered: bool = False) -> None:
        """Take from their holders; to be handed out again from `due_ms` on. What is not here is left out.

        `undelivered` takes back that they were handed out.
        """
        delayed = []
        for seq in seqs:
            slot = self._slots.get(seq)
            if slot is None:
                continue
            self._let_go(slot, seq)
            self._due_times[slot] = due_ms
            if undelivered and self._deliveries[slot]:
                self._deliveries[slot] -= 1
            if due_ms > now_ms:
                self._set_state(slot, DELAYED)
                delayed.append(seq)
            else:
                self._set_free(slot, seq)
        self._plan(due_ms, delayed)

    def extend(self, seqs: Iterable[int], due_ms: int) -> None:
        """Let their holders keep them until `due_ms`. What is not here, or nobody's, is left out."""
        extended = []
        for seq in seqs:
            slot = self._slots.get(seq)
            if slot is None or self._holders[slot] == NOBODY:
                continue
            self._due_times[slot] = due_ms
            self._set_state(slot, LEASED)
            self.holders.holds(self._holders[slot], seq)
            extended.append(seq)
        self._plan(due_ms, extended)

    def leave(self, seqs: Iterable[int]) -> None:
        """They are on their way out: nobody's, and not to be handed out."""
        for seq in seqs:
            slot = self._slots.get(seq)
            if slot is None:
                self._add(seq, 0, LEAVING)
            else:
                self._let_go(slot, seq)
                self._set_state(slot, LEAVING)

    def forget(self, seqs: Iterable[int]) -> None:
        """Records that are gone, for whatever reason."""
        slots, states, holders, counts, unused = self._slots, self._states, self._holders, self.counts, self._unused
        holder, dropped, connected = NOBODY, 0, False
        for seq in seqs:
            slot = slots.pop(seq, None)
            if slot is None:
                continue
            counts[states[slot]] -= 1
            unused.append(slot)
            if holders[slot] != holder:
                # Neighbours mostly have the same holder: one step for all of them.
                self._drop(holder, dropped)
                holder, dropped = holders[slot], 0
                connected = self.holders.is_connected(holder)
            dropped += 1
            if connected:
                self.holders.lost(holder, seq)
        self._drop(holder, dropped)

    def _drop(self, holder: int, count: int) -> None:
        if holder != NOBODY and count:
            self.holders.drop(holder, count)

    def forget_below(self, low: int) -> None:
        by_seq = self._by_seq
        while by_seq and by_seq[0] < low:
            self.forget((heappop(by_seq),))

    def _add(
        self, seq: int, due_ms: int, state: int, holder: int = NOBODY, token: int = 0, deliveries: int = 0
    ) -> None:
        if not self._unused:
            self._grow(1)
        slot = self._unused.pop()
        self._due_times[slot] = due_ms
        self._tokens[slot] = token
        self._deliveries[slot] = deliveries
        self._holders[slot] = holder
        self._states[slot] = state
        self.counts[state] += 1
        self._slots[seq] = slot
        if seq > self.highest:
            self.highest = seq
        heappush(self._by_seq, seq)
        self._tidy_by_seq()

    def _tidy_by_seq(self) -> None:
        if len(self._by_seq) > 2 * len(self._slots) + _SLACK:
            self._by_seq = sorted(self._slots)

    def _let_go(self, slot: int, seq: int) -> None:
        """The entry's holder, if it has one, has it no more."""
        holder = self._holders[slot]
        if holder != NOBODY:
            self.holders.lost(holder, seq)
            self.holders.drop(holder)
            self._holders[slot] = NOBODY

    def _set_state(self, slot: int, state: int) -> None:
        states, counts = self._states, self.counts
        counts[states[slot]] -= 1
        counts[state] += 1
        states[slot] = state

    def _set_free(self, slot: int, seq: int) -> None:
        if self._holders[slot] != NOBODY:
            self.holders.lost(self._holders[slot], seq)
        self._set_state(slot, FREE)
        heappush(self._free, seq)
        if len(self._free) > 2 * self.counts[FREE] + _SLACK:
            slots, states = self._slots, self._states
            self._free = [seq for seq in set(self._free) if seq in slots and states[slots[seq]] == FREE]
            heapify(self._free)

    def _plan(self, due_ms: int, seqs: Sequence[int]) -> None:
        if seqs:
            self._schedule.add(due_ms, seqs)
            if self._schedule.count > 2 * len(self._slots) + _SLACK:
                self._plan_anew()

    def _plan_anew(self) -> None:
        self._schedule = Schedule()
        planned: dict[int, list[int]] = {}
        for seq, slot in self._slots.items():
            if self._states[slot] in (LEASED, DELAYED):
                planned.setdefault(self._due_times[slot], []).append(seq)
        for due_ms, seqs in planned.items():
            self._schedule.add(due_ms, seqs)

    # ---- snapshots

    def columns(self) -> LeaseColumns:
        count = len(self._slots)
        seqs = np.fromiter(self._slots, np.uint64, count)
        slots = np.fromiter(self._slots.values(), np.int64, count)
        order = np.argsort(seqs)
        slots = slots[order]
        holders = np.array(self._holders, np.uint32)[slots]
        ids, places = np.unique(holders, return_inverse=True)
        named = bool(len(ids)) and int(ids[0]) == NOBODY
        return LeaseColumns(
            seqs[order].tobytes(),
            np.array(self._due_times, np.uint64)[slots].tobytes(),
            np.array(self._tokens, np.uint64)[slots].tobytes(),
            np.array(self._deliveries, np.uint32)[slots].tobytes(),
            (places + (0 if named else 1)).astype(np.uint32).tobytes(),
            [self.holders.nodes[holder] for holder in ids.tolist() if holder != NOBODY],
        )

    @classmethod
    def of(cls, columns: LeaseColumns) -> LeaseTable:
        """The table whose columns were kept; the first `expire` sorts out what is due."""
        table = cls()
        rows = zip(
            array("Q", columns.seqs),
            array("Q", columns.due_times),
            array("Q", columns.tokens),
            array("I", columns.deliveries),
            array("I", columns.holders),
            strict=True,
        )
        for seq, due_ms, token, deliveries, place in rows:
            holder = table.holders.take(columns.nodes[place - 1], 0, 1) if place else NOBODY
            table._add(seq, due_ms, LEASED if place else DELAYED, holder, token, deliveries)
        table._plan_anew()
        return table


def skipped_of(seqs: Iterable[int], held: set[int]) -> list[int]:
    """What is left of seqs, which may name some twice: one that is held counts where it is named first."""
    left = set(held)
    skipped = []
    for seq in seqs:
        if seq in left:
            left.discard(seq)
        else:
            skipped.append(seq)
    return skipped


def lease_id(token: int) -> str:
    return f"{LEASE_ID_PREFIX}{token:x}"


def parse_lease_id(text: str) -> int:
    """The token of a lease id; 0, which is no lease's, when it is none."""
    try:
        token = int(text[len(LEASE_ID_PREFIX) :][:TOKEN_DIGITS_MAX], 16)
    except ValueError:
        return 0
    return token if token > 0 and lease_id(token) == text else 0
