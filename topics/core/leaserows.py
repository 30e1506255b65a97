"""Leases one by one: a row of columns for each job that has a story of its own (`core/leases.py`)."""

from __future__ import annotations

from array import array


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
        if self._unused:
            slot = self._unused.pop()
            self.due_times[slot] = due_ms
            self.tokens[slot] = token
            self.deliveries[slot] = deliveries
            self.holders[slot] = holder
            self.states[slot] = state
        else:
            slot = len(self.states)
            self.due_times.append(due_ms)
            self.tokens.append(token)
            self.deliveries.append(deliveries)
            self.holders.append(holder)
            self.states.append(state)
        self.slots[seq] = slot
        return slot

    def remove(self, seq: int) -> None:
        self._unused.append(self.slots.pop(seq))
