"""Does the simulator find anything? Bugs of the kind that loses data are planted, and must be found soon.

`python -m pytest tests/testing/sim/test_planted.py -m soak -rP` prints how many seeds each took.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from topics.core.dedupe import Dedupe, IdempotencyKey
from topics.core.leases import LeaseTable
from topics.core.outcome import Outcome
from topics.core.spine import Spine
from topics.engine import enqueuing
from topics.engine.ticket import Ticket
from topics.engine.turn import Turn
from topics.model import Deleted
from topics.server import sse
from topics.testing.fakedisk import FakeFile
from topics.testing.sim.verdict import live
from topics.wire.streamcursor import Positions

SEEDS = 300

Plant = Callable[[pytest.MonkeyPatch], None]


def sync_is_not_made(patch: pytest.MonkeyPatch) -> None:
    true = FakeFile.sync
    patch.setattr(FakeFile, "sync", lambda self: None if self.path.endswith(".wal") else true(self))


def answer_before_sync(patch: pytest.MonkeyPatch) -> None:
    true = Turn._wait_for

    def wait_for(self: Turn, numbers: Any, ticket: Ticket) -> None:
        ticket.needs_sync = ticket.visible_at_sync = False
        true(self, numbers, ticket)

    patch.setattr(Turn, "_wait_for", wait_for)


def fence_is_skipped(patch: pytest.MonkeyPatch) -> None:
    def split(self: LeaseTable, node: str, seqs: Sequence[int], tokens: object) -> tuple[list[int], list[int]]:
        held = sorted({seq for seq in seqs if self.get(seq) is not None and not self.is_waiting(seq)})
        return held, [seq for seq in seqs if seq not in held]

    patch.setattr(LeaseTable, "split", split)


def key_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    true = Dedupe.lookup

    def lookup(self: Dedupe, key: Any, now_ms: int, window_ms: int) -> Any:
        return None if isinstance(key, IdempotencyKey) else true(self, key, now_ms, window_ms)

    patch.setattr(Dedupe, "lookup", lookup)


def transaction_is_answered_too_soon(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(enqueuing, "is_being_stored", lambda *given: False)


def stream_skips_one(patch: pytest.MonkeyPatch) -> None:
    true = sse.decode_stream_cursor

    def decode(text: str, field: str) -> object:
        found = true(text, field)
        assert isinstance(found, Positions)
        return Positions({key: seq + (seq > 3) for key, seq in found.seqs.items()}, found.epochs)

    patch.setattr(sse, "decode_stream_cursor", decode)


def heap_gives_the_worst(patch: pytest.MonkeyPatch) -> None:
    def take(self: Spine) -> Any:
        shown = [candidate for candidates in self._shown.values() for candidate in candidates]
        if not shown:
            return None
        worst = max(shown)
        self._shown[worst.partition].remove(worst)
        return worst

    patch.setattr(Spine, "take", take)


def delete_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    true = Turn.add

    def add(self: Turn, outcome: Outcome, born: Sequence[int] = ()) -> Ticket:
        if isinstance(outcome.reply, Deleted):
            outcome.facts = []
        return true(self, outcome, born)

    patch.setattr(Turn, "add", add)


PLANTED: tuple[tuple[Plant, str], ...] = (
    (sync_is_not_made, "log."),
    (answer_before_sync, "log."),
    (fence_is_skipped, "lease.fence"),
    (key_is_forgotten, "dedup.answer"),
    (transaction_is_answered_too_soon, "lease.lost"),
    (stream_skips_one, "stream."),
    (heap_gives_the_worst, "heap.rank"),
    (delete_is_not_stored, "log.back"),
)


def seeds_until(rule: str) -> int:
    """How many seeds it takes until a promise of this kind is broken."""
    for seed in range(1, SEEDS + 1):
        found = live(seed).violations
        if any(rule in violation for violation in found):
            return seed
    raise AssertionError(f"{SEEDS} seeds, and no {rule} was seen")


@pytest.mark.soak
@pytest.mark.parametrize(("plant", "rule"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_a_planted_bug_is_found(plant: Plant, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    sys.stdout.write(f"{plant.__name__}: found {rule} after {seeds_until(rule)} seeds\n")
