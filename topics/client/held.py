"""A job in somebody's hands: the record, its lease, and what has become of it.

held      from the claim on
settled   acked, completed or given back: nothing more is said about it
lost      its lease ran out and somebody else has it, or it was deleted: whatever is said about it now is skipped
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from topics.limits import SECOND_MS
from topics.model import ClaimedJobs, Record, parse_records


class Lease(msgspec.Struct, frozen=True):
    """As it comes with a job."""

    lease_id: str
    deadline: int
    deliveries: int


_leases = msgspec.json.Decoder(list[Lease])


class Held:
    def __init__(self, queue: str, partition: int, record: Record, lease: Lease, lease_ms: int) -> None:
        self.queue = queue
        self.partition = partition
        self.record = record
        self.lease_id = lease.lease_id
        self.deliveries = lease.deliveries
        self.deadline_ms = lease.deadline
        """By the clock of the server."""
        self.lease_ms = lease_ms
        self.expires_s = _in_s(lease_ms)
        """The same moment by the clock of the event loop."""
        self.settled = False
        self.lost = False
        self._watchers: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<Job {self.queue}/{self.seq} delivery {self.deliveries}>"

    @property
    def seq(self) -> int:
        return self.record.seq

    @property
    def over(self) -> bool:
        """Whether there is nothing more to be done with it here."""
        return self.settled or self.lost

    def extended(self, deadline_ms: int) -> None:
        """Its lease counts anew from now on."""
        self.deadline_ms = deadline_ms
        self.expires_s = _in_s(self.lease_ms)

    def settle(self, done: bool = True) -> None:
        """Nothing more is said about it. What was done was not lost, whatever an extend on its way has found."""
        self.settled = True
        self.lost = self.lost and not done
        self._tell()

    def lose(self) -> None:
        if not self.over:
            self.lost = True
            self._tell()

    def on_over(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called once, when it is settled or lost."""
        self._watchers.append(watcher)

    def _tell(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()


def held_of(claimed: ClaimedJobs, lease_ms: int) -> list[Held]:
    """The jobs of a claim."""
    leases = _leases.decode(b"[%b]" % claimed.text)
    return [
        Held(claimed.topic, claimed.partition, record, lease, lease_ms)
        for record, lease in zip(parse_records(claimed.text), leases, strict=True)
    ]


def _in_s(lease_ms: int) -> float:
    return asyncio.get_running_loop().time() + lease_ms / SECOND_MS
