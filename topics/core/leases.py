"""The lease table: what was handed out of a log, to whom, until when, and how often.

Only records that were ever touched have an entry. A record that waits for its first delivery has none: the owner of
the table finds it with a cursor over the log. An entry has a due time, a holder, a token and a count of deliveries,
and is in one of four states:

    LEASED    somebody holds it, until `due_ms`
    DELAYED   nobody may have it before `due_ms`: it was written or given back with a delay
    FREE      to be handed out again, lowest seq first: its lease ran out, or it was given back
    LEAVING   being moved to another log, see `core/move.py`

Time alone makes LEASED and DELAYED FREE, in `expire`: lazily, from one schedule of due times, without a timer an entry.
A lease that ran out still names its holder, who may complete or extend it until somebody else gets it. So the state is
what the columns say at a time, kept beside them to be counted: no fact and no image holds it.

`due_ms` is the first millisecond at which a record may be handed out again; a lease's deadline is the one before.

First leases of records that follow on each other are one object for all of them, a run (`core/leaseruns.py`); every
other entry is a row (`core/leaserows.py`). A record comes out of its run when something happens to it alone.

Two heaps find entries: by due time (`Schedule`), where a run is with its first seq, and by seq among the free ones.
Entries that change leave dead items in the heaps, which are passed over when met; a heap that is mostly dead is made
anew, so that it costs what its live part costs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from topics.core.holders import NOBODY, Holders
from topics.core.leasecolumns import LeaseColumns, columns_of, rows_of
from topics.core.leasepage import seqs_behind
from topics.core.leaserows import LeaseRows
from topics.core.leaseruns import LeaseRun, LeaseRuns
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


class LeaseTable:
    __slots__ = ("_free", "_lowest", "_rows", "_runs", "_schedule", "counts", "highest", "holders")

    def __init__(self) -> None:
        self.holders = Holders()
        self.counts = [0, 0, 0, 0]
        """Entries by state."""
        self.highest = 0
        """No entry was ever above this seq."""
        self._lowest = 1
        """No entry is below this seq."""
        self._rows = LeaseRows()
        self._runs = LeaseRuns()
        self._free: list[int] = []
        self._schedule = Schedule()

    # ---- looking

    def __len__(self) -> int:
        return len(self._rows.slots) + self._runs.job_count

    def __contains__(self, seq: int) -> bool:
        return seq in self._rows.slots or self._runs.at(seq) is not None

    def get(self, seq: int) -> Lease | None:
        rows = self._rows
        slot = rows.slots.get(seq)
        if slot is None:
            run = self._runs.at(seq)
            if run is None:
                return None
            return Lease(seq, LEASED, run.due_ms, self.holders.nodes[run.holder], run.token_of(seq), 1)
        node = self.holders.nodes[rows.holders[slot]]
        return Lease(seq, rows.states[slot], rows.due_times[slot], node, rows.tokens[slot], rows.deliveries[slot])

    def __iter__(self) -> Iterator[Lease]:
        """All entries, ascending by seq."""
        seqs = [seq for run in self._runs for seq in range(run.first_seq, run.last_seq + 1)]
        return (lease for seq in sorted([*self._rows.slots, *seqs]) if (lease := self.get(seq)) is not None)

    def page(self, after: int, limit: int, state: int) -> tuple[list[int], int | None]:
        """Up to so many seqs of entries in a state, behind a seq, and where to go on; None when that is all."""
        wanted = state, state == LEASED
        return seqs_behind(self._rows, self._runs, max(after, self._lowest - 1), self.highest, limit, wanted)

    def deliveries(self, seq: int) -> int:
        lease = self.get(seq)
        return 0 if lease is None else lease.deliveries

    def conditions(self, seqs: Iterable[int]) -> tuple[list[int], list[int]]:
        """The state of each of these, and how often it was handed out; one without an entry is free."""
        leases = [self.get(seq) for seq in seqs]
        states = [FREE if lease is None else lease.state for lease in leases]
        return states, [0 if lease is None else lease.deliveries for lease in leases]

    def split(self, node: str, seqs: Sequence[int], tokens: Sequence[int] | None) -> tuple[list[int], list[int]]:
        """The seqs that `node` may complete, each once and ascending, and the others, as they were named.

        They are its own when it was the last to get them, with this very token if tokens are given.
        """
        first = seqs[0]
        run = self._runs.at(first)
        count = len(seqs)
        if run is not None and first + count - 1 <= run.last_seq:
            # What was claimed together is mostly acked together.
            asked = list(range(first, first + count))
            token = run.token_of(first)
            if seqs == asked and (tokens is None or tokens == list(range(token, token + count))):
                return (asked, []) if self.holders.nodes[run.holder] == node else ([], asked)
        return self._split_each(node, seqs, tokens)

    def _split_each(self, node: str, seqs: Sequence[int], tokens: Sequence[int] | None) -> tuple[list[int], list[int]]:
        rows, nodes = self._rows, self.holders.nodes
        held: list[int] = []
        skipped = []
        for at, seq in enumerate(seqs):
            slot = rows.slots.get(seq)
            if slot is not None:
                holder, token = rows.holders[slot], rows.tokens[slot]
            elif (run := self._runs.at(seq)) is not None:
                holder, token = run.holder, run.token_of(seq)
            else:
                skipped.append(seq)
                continue
            own = nodes[holder] == node and (tokens is None or tokens[at] == token)
            (held if own else skipped).append(seq)
        once = set(held)
        if len(once) < len(held):
            return sorted(once), skipped_of(seqs, once)
        return sorted(held), skipped

    def is_free(self, seq: int) -> bool:
        slot = self._rows.slots.get(seq)
        return slot is not None and self._rows.states[slot] == FREE

    def is_waiting(self, seq: int) -> bool:
        """Whether nobody has this: no entry, or a free or delayed one."""
        slot = self._rows.slots.get(seq)
        return self._runs.at(seq) is None if slot is None else self._rows.states[slot] in (FREE, DELAYED)

    @property
    def may_give_free(self) -> bool:
        """Whether `take_free` may give something."""
        return bool(self._free)

    def next_due_ms(self) -> int | None:
        """When `expire` may have something to do."""
        return self._schedule.next_ms()

    # ---- time

    def expire(self, now_ms: int) -> None:
        """Free what is due by now."""
        due_first = self._schedule.next_ms()
        if due_first is None or due_first > now_ms:
            return
        rows = self._rows
        for due_ms, seqs in self._schedule.take_due(now_ms):
            for seq in seqs:
                slot = rows.slots.get(seq)
                if slot is None:
                    run = self._runs.at(seq)
                    if run is not None and run.due_ms == due_ms:
                        self._free_run(run)
                elif rows.due_times[slot] == due_ms and rows.states[slot] in (LEASED, DELAYED):
                    self._set_free(slot, seq)

    def _free_run(self, run: LeaseRun) -> None:
        self._runs.cut(run, run.first_seq, run.last_seq)
        self._rows.add_run(run, FREE)
        count = run.last_seq - run.first_seq + 1
        self.counts[LEASED] -= count
        self.counts[FREE] += count
        for seq in range(run.first_seq, run.last_seq + 1):
            heappush(self._free, seq)
        self._tidy_free()

    def take_free(self, limit: int, upto_seq: int) -> list[int]:
        """Up to so many free seqs, lowest first. The caller leases them, moves them or gives them back at once."""
        free, slots, states = self._free, self._rows.slots, self._rows.states
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
        if not seqs:
            return []
        holder = self.holders.take(node, connection, len(seqs))
        if connection or not (seqs[0] > self.highest or not any(seq in self for seq in seqs)):
            return self._lease_each(seqs, due_ms, holder, token)
        self.counts[LEASED] += len(seqs)
        at = 0
        while at < len(seqs):
            end = _stretch_end(seqs, at)
            self._put_run(LeaseRun(seqs[at], seqs[end - 1], due_ms, holder, token + at))
            at = end
        return [1] * len(seqs)

    def _lease_each(self, seqs: Sequence[int], due_ms: int, holder: int, token: int) -> list[int]:
        rows = self._rows
        counts = []
        for seq in seqs:
            slot = self._row(seq)
            if slot is None:
                slot = self._add(seq, due_ms, LEASED, holder, token, 1)
            else:
                self._let_go(slot, seq)
                rows.due_times[slot] = due_ms
                self._set_state(slot, LEASED)
                rows.deliveries[slot] += 1
                rows.tokens[slot] = token
                rows.holders[slot] = holder
            self.holders.holds(holder, seq)
            counts.append(rows.deliveries[slot])
            token += 1
        self._plan(due_ms, seqs)
        return counts

    def delay(self, seqs: Sequence[int], due_ms: int) -> None:
        """Records nobody had yet are not to be handed out before a time. What has an entry is left out."""
        fresh = [seq for seq in seqs if seq not in self]
        for seq in fresh:
            self._add(seq, due_ms, DELAYED)
        self._plan(due_ms, fresh)

    def release(self, seqs: Iterable[int], due_ms: int, now_ms: int, undelivered: bool = False) -> None:
        """Take from their holders; to be handed out again from `due_ms` on. What is not here is left out.

        `undelivered` takes back that they were handed out.
        """
        rows = self._rows
        delayed = []
        for seq in seqs:
            slot = self._row(seq)
            if slot is None:
                continue
            self._let_go(slot, seq)
            rows.due_times[slot] = due_ms
            if undelivered and rows.deliveries[slot]:
                rows.deliveries[slot] -= 1
            if due_ms > now_ms:
                self._set_state(slot, DELAYED)
                delayed.append(seq)
            else:
                self._set_free(slot, seq)
        self._plan(due_ms, delayed)

    def extend(self, seqs: Iterable[int], due_ms: int) -> None:
        """Let their holders keep them until `due_ms`. What is not here, or nobody's, is left out."""
        rows = self._rows
        extended = []
        for run, first, last in self._parts(seqs):
            if run is not None:
                self._cut(run, first, last)
                self._put_run(LeaseRun(first, last, due_ms, run.holder, run.token_of(first)))
                continue
            slot = rows.slots.get(first)
            if slot is not None and rows.holders[slot] != NOBODY:
                rows.due_times[slot] = due_ms
                self._set_state(slot, LEASED)
                self.holders.holds(rows.holders[slot], first)
                extended.append(first)
        self._plan(due_ms, extended)

    def leave(self, seqs: Iterable[int]) -> None:
        """They are on their way out: nobody's, and not to be handed out."""
        for seq in seqs:
            slot = self._row(seq)
            if slot is None:
                self._add(seq, 0, LEAVING)
            else:
                self._let_go(slot, seq)
                self._set_state(slot, LEAVING)

    def forget(self, seqs: Iterable[int]) -> None:
        """Records that are gone, for whatever reason."""
        rows, counts = self._rows, self.counts
        for run, first, last in self._parts(seqs):
            if run is not None:
                count = last - first + 1
                self._cut(run, first, last)
                counts[LEASED] -= count
                self.holders.drop(run.holder, count)
                continue
            slot = rows.slots.get(first)
            if slot is not None:
                counts[rows.states[slot]] -= 1
                self._let_go(slot, first)
                rows.remove(first)

    def forget_below(self, low: int) -> None:
        """A floor has moved past these. The cost is that of what it passed, or that of all there is if that is less."""
        if low <= self._lowest:
            return
        slots, passed = self._rows.slots, range(self._lowest, low)
        rows = passed if len(passed) < len(slots) else [seq for seq in slots if seq < low]
        runs = self._runs.between(self._lowest, low)
        self._lowest = low
        self.forget([seq for seq in rows if seq in slots])
        for run in runs:
            self.forget(range(run.first_seq, min(run.last_seq, low - 1) + 1))

    # ---- runs

    def _parts(self, named: Iterable[int]) -> Iterator[tuple[LeaseRun | None, int, int]]:
        """The seqs as stretches of a run, each from its first to its last, and those that are in none one by one."""
        seqs = sorted(named)
        at, runs = 0, self._runs
        while at < len(seqs):
            first = seqs[at]
            run = runs.at(first)
            count = 1
            if run is not None:
                # They ascend, so that all between two of them that are as far apart as their places are there, too.
                count = min(run.last_seq - first + 1, len(seqs) - at)
                while seqs[at + count - 1] != first + count - 1:
                    count -= 1
            yield run, first, first + count - 1
            at += count

    def _put_run(self, run: LeaseRun) -> None:
        self._runs.add(run)
        self._plan(run.due_ms, (run.first_seq,))
        if run.last_seq > self.highest:
            self.highest = run.last_seq
        if run.first_seq < self._lowest:
            self._lowest = run.first_seq

    def _cut(self, run: LeaseRun, first_seq: int, last_seq: int) -> None:
        """Take a part out of a run, for something else to become of it."""
        behind = self._runs.cut(run, first_seq, last_seq)
        if behind is not None:
            self._plan(behind.due_ms, (behind.first_seq,))

    def _row(self, seq: int) -> int | None:
        """The slot of an entry, which is taken out of its run if it is in one."""
        slot = self._rows.slots.get(seq)
        if slot is None and (run := self._runs.at(seq)) is not None:
            self._cut(run, seq, seq)
            slot = self._rows.add(seq, run.due_ms, LEASED, run.holder, run.token_of(seq), 1)
        return slot

    # ---- rows

    def _add(self, seq: int, due_ms: int, state: int, holder: int = NOBODY, token: int = 0, deliveries: int = 0) -> int:
        slot = self._rows.add(seq, due_ms, state, holder, token, deliveries)
        self.counts[state] += 1
        if seq > self.highest:
            self.highest = seq
        if seq < self._lowest:
            self._lowest = seq
        return slot

    def _let_go(self, slot: int, seq: int) -> None:
        """The entry's holder, if it has one, has it no more."""
        holder = self._rows.holders[slot]
        if holder != NOBODY:
            self.holders.lost(holder, seq)
            self.holders.drop(holder)
            self._rows.holders[slot] = NOBODY

    def _set_state(self, slot: int, state: int) -> None:
        states, counts = self._rows.states, self.counts
        counts[states[slot]] -= 1
        counts[state] += 1
        states[slot] = state

    def _set_free(self, slot: int, seq: int) -> None:
        rows = self._rows
        if rows.holders[slot] != NOBODY:
            self.holders.lost(rows.holders[slot], seq)
        self._set_state(slot, FREE)
        heappush(self._free, seq)
        self._tidy_free()

    # ---- heaps

    def _tidy_free(self) -> None:
        if len(self._free) > 2 * self.counts[FREE] + _SLACK:
            slots, states = self._rows.slots, self._rows.states
            self._free = [seq for seq in set(self._free) if seq in slots and states[slots[seq]] == FREE]
            heapify(self._free)

    def _plan(self, due_ms: int, seqs: Sequence[int]) -> None:
        if seqs:
            self._schedule.add(due_ms, seqs)
            if self._schedule.count > 2 * (len(self._rows.slots) + self._runs.count) + _SLACK:
                self._plan_anew()

    def _plan_anew(self) -> None:
        rows = self._rows
        self._schedule = Schedule()
        planned: dict[int, list[int]] = {}
        for run in self._runs:
            planned.setdefault(run.due_ms, []).append(run.first_seq)
        for seq, slot in rows.slots.items():
            if rows.states[slot] in (LEASED, DELAYED):
                planned.setdefault(rows.due_times[slot], []).append(seq)
        for due_ms, seqs in planned.items():
            self._schedule.add(due_ms, seqs)

    # ---- snapshots

    def columns(self) -> LeaseColumns:
        return columns_of(self._rows, self._runs, self.holders)

    @classmethod
    def of(cls, columns: LeaseColumns) -> LeaseTable:
        """The table whose columns were kept; the first `expire` sorts out what is due."""
        table = cls()
        run: LeaseRun | None = None
        for seq, due_ms, token, deliveries, node in rows_of(columns):
            holder = table.holders.take(node, 0, 1) if node else NOBODY
            if holder == NOBODY or deliveries != 1:
                table._add(seq, due_ms, LEASED if node else DELAYED, holder, token, deliveries)
                table._plan(due_ms, (seq,))
                continue
            table.counts[LEASED] += 1
            follows = run is not None and (run.last_seq, run.due_ms, run.holder) == (seq - 1, due_ms, holder)
            if run is not None and follows and run.token_of(seq) == token:
                table._runs.grow(run)
                table.highest = seq
            else:
                run = LeaseRun(seq, seq, due_ms, holder, token)
                table._put_run(run)
        return table


def _stretch_end(seqs: Sequence[int], at: int) -> int:
    """Where the seqs that follow on each other from place `at` on end."""
    if seqs[-1] - seqs[at] == len(seqs) - 1 - at:
        return len(seqs)
    end = at + 1
    while seqs[end] == seqs[end - 1] + 1:
        end += 1
    return end


def skipped_of(seqs: Iterable[int], held: Container[int]) -> list[int]:
    """The seqs that are not held. One that is held is not skipped, however often it is named."""
    return [seq for seq in seqs if seq not in held]


def lease_id(token: int) -> str:
    return f"{LEASE_ID_PREFIX}{token:x}"


def parse_lease_id(text: str) -> int:
    """The token of a lease id; 0, which is no lease's, when it is none."""
    try:
        token = int(text[len(LEASE_ID_PREFIX) :][:TOKEN_DIGITS_MAX], 16)
    except ValueError:
        return 0
    return token if token > 0 and lease_id(token) == text else 0
