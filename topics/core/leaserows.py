"""Leases one by one: a row of columns for each job that has a story of its own (`core/leases.py`)."""

from __future__ import annotations

from array import array

from topics.core.leaseruns import LeaseRun


class LeaseRows:
    """Columns by slot, and the slot of each seq. A slot that is free again is used again."""

    __slots__ = ("_unused", "deliveries", "due_times", "holders", "slots", "states", "tokens")

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        self.due_times = array("Q")
        self.tokens = array("Q")
        self.deliveries = array("I")
        self.holders = array("I")
        self.states = bytearray()
        self._unused: list[int] = []

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, seq: int, due_ms: int, state: int, holder: int, token: int, deliveries: int) -> int:
        """The slot of the new row."""
        if not self._unused:
            self._grow(1)
        slot = self._unused.pop()
        self.due_times[slot] = due_ms
        self.tokens[slot] = token
        self.deliveries[slot] = deliveries
        self.holders[slot] = holder
        self.states[slot] = state
        self.slots[seq] = slot
        return slot

    def add_run(self, run: LeaseRun, state: int) -> None:
        """A row for each record of a run."""
        count = run.last_seq - run.first_seq + 1
        if len(self._unused) < count:
            self._grow(count - len(self._unused))
        slots = self._unused[-count:]
        del self._unused[-count:]
        due_times, tokens, deliveries = self.due_times, self.tokens, self.deliveries
        holders, states = self.holders, self.states
        due_ms, token, holder = run.due_ms, run.token, run.holder
        for slot in slots:
            due_times[slot] = due_ms
            tokens[slot] = token
            deliveries[slot] = 1
            holders[slot] = holder
            states[slot] = state
            token += 1
        self.slots.update(zip(range(run.first_seq, run.last_seq + 1), slots, strict=True))

    def _grow(self, count: int) -> None:
        """Make so many slots."""
        first = len(self.states)
        self.due_times.frombytes(bytes(8 * count))
        self.tokens.frombytes(bytes(8 * count))
        self.deliveries.frombytes(bytes(4 * count))
        self.holders.frombytes(bytes(4 * count))
        self.states += bytes(count)
        self._unused += range(first, first + count)

    def remove(self, seq: int) -> None:
        self._unused.append(self.slots.pop(seq))
