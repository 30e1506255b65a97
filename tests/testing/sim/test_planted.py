"""Does the simulator find anything? Bugs of the kind that loses data are planted, and must be found soon.

`python -m pytest tests/testing/sim/test_planted.py -m soak -rP` prints how many seeds each took.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.testing.sim.disk_and_clock_plants import (
    boot_id_alone_proves_that_nothing_is_lost,
    jump_of_the_clock_is_believed_at_once,
    time_is_the_highest_that_the_wall_clock_showed,
)
from topics.core import groupsettle, read, retention
from topics.core.dedupe import Dedupe, IdempotencyKey
from topics.core.hole import Hole
from topics.core.leases import LeaseTable
from topics.core.log import Log
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import Topic
from topics.core.spine import Spine
from topics.engine import enqueuing, writing
from topics.engine.engine import Engine
from topics.engine.freshness import Freshness
from topics.engine.publishing import Publishing
from topics.engine.salvage import Salvage
from topics.engine.ticket import Ticket
from topics.engine.turn import Turn
from topics.engine.visibility import Pending, Visibility
from topics.model import Deleted, Dropped, Durability, Published, TopicConfig, Written
from topics.server import sse, wscommands
from topics.server.http import HttpProtocol
from topics.server.intake.gate import Gate
from topics.server.intake.turns import Budget
from topics.testing.fakedisk import FakeFile
from topics.testing.sim import machine
from topics.testing.sim.actors import clerk
from topics.testing.sim.verdict import live
from topics.testing.sim.world import furnished
from topics.wire import arrow
from topics.wire.streamcursor import Positions
from topics.wire.wscommand import Subscribe

SEEDS = 200

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


def part_of_a_batch_is_uncovered(patch: pytest.MonkeyPatch) -> None:
    def show_ready(self: Turn, log: Log) -> None:
        if log.ready_seq > log.visible_seq:
            log.visible_seq = log.ready_seq
            self._on_visible(log)

    patch.setattr(Turn, "show_ready", show_ready)


def batch_is_shown_beside_hidden_ones(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Visibility, "_group_of", lambda self, pending: [pending])


def batch_is_answered_before_it_is_shown(patch: pytest.MonkeyPatch) -> None:
    true = Publishing._store

    def store(self: Publishing, pending: Pending, facts: Sequence[StoredFact]) -> None:
        written = tuple(
            Written(
                topic=part.log.topic,
                partition=part.log.partition,
                first_seq=part.first_seq,
                last_seq=part.last_seq,
                head_seq=part.log.head_seq,
            )
            for part in pending.parts
        )
        for ticket in self._asking.get((pending.batch.producer_id, pending.batch.epoch), ()):
            ticket.resolve(Published(written=written))
        true(self, pending, facts)

    patch.setattr(Publishing, "_store", store)


def memory_is_forgotten_while_the_process_lives(patch: pytest.MonkeyPatch) -> None:
    true = Log.observe

    def observe(self: Log, config: TopicConfig, now_ms: int) -> None:
        true(self, config, now_ms)
        if config.durability is Durability.MEMORY:
            self.evict(msgspec.structs.replace(config, cap_records=3))

    patch.setattr(Log, "observe", observe)


def gap_ends_one_too_early(patch: pytest.MonkeyPatch) -> None:
    true = read._entry

    def entry(log: Log, visible_seq: int, from_seq: int) -> tuple[int, Hole | None]:
        start, gap = true(log, visible_seq, from_seq)
        if gap is not None and gap.gap_to > gap.gap_from:
            gap = replace(gap, gap_to=gap.gap_to - 1)
        return start, gap

    patch.setattr(read, "_entry", entry)


def cap_takes_one_too_many(patch: pytest.MonkeyPatch) -> None:
    true = retention.evict

    def evict(log: Log, config: TopicConfig, over_count: int, over_bytes: int) -> bool:
        return true(log, config, over_count + 1, over_bytes)

    patch.setattr(retention, "evict", evict)


def time_takes_too_early(patch: pytest.MonkeyPatch) -> None:
    true = Log.observe
    patch.setattr(Log, "observe", lambda self, config, now_ms: true(self, config, now_ms + 100))


def time_takes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "observe", lambda self, config, now_ms: None)


def socket_skips_one(patch: pytest.MonkeyPatch) -> None:
    true = wscommands.decode_command

    def decode(message: bytes) -> object:
        found = true(message)
        if not isinstance(found, Subscribe):
            return found
        wanted = (msgspec.structs.replace(each, from_seq=each.from_seq + (each.from_seq > 3)) for each in found.wanted)
        return msgspec.structs.replace(found, wanted=tuple(wanted))

    patch.setattr(wscommands, "decode_command", decode)


def ack_of_a_statement_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    true = groupsettle.store

    def store(topic: Topic, log: Log, facts: Sequence[Any]) -> list[Any]:
        return true(topic, log, [fact for fact in facts if fact.group != clerk.GROUP])

    patch.setattr(groupsettle, "store", store)


def router_goes_back_when_it_starts(patch: pytest.MonkeyPatch) -> None:
    true = machine.recover

    def recover(*given: Any) -> Engine:
        engine = true(*given)
        for log in engine.machine.logs.values():
            for route in log.inflow.routes.values() if log.inflow is not None else ():
                route.cursor = max(0, route.cursor - 1)
        return engine

    patch.setattr(machine, "recover", recover)


def destination_is_read_as_it_is(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Freshness, "_order_of", lambda self, name: ())


def letters_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    true = Freshness.of

    def of(self: Freshness, topic_names: Iterable[str]) -> Ticket | None:
        towards, self._moves.towards = self._moves.towards, {}
        try:
            return true(self, topic_names)
        finally:
            self._moves.towards = towards

    patch.setattr(Freshness, "of", of)


def drop_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    true = Turn.add

    def add(self: Turn, outcome: Outcome, born: Sequence[int] = ()) -> Ticket:
        if isinstance(outcome.reply, Dropped):
            outcome.facts = []
        return true(self, outcome, born)

    patch.setattr(Turn, "add", add)


def arrow_loses_a_row(patch: pytest.MonkeyPatch) -> None:
    true = arrow._table
    patch.setattr(arrow, "_table", lambda spans, shape: true(spans, shape).slice(1))


def pipelined_requests_overtake(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HttpProtocol, "_may_begin", lambda self, exchange: True)


def turns_do_not_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Budget, "spend", lambda self, count: False)


def bodies_come_before_their_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gate, "admit", lambda self, head, verified: True)


def flags_of_what_is_gone_are_not_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writing, "flag_gone", lambda *given: None)


def segments_without_a_snapshot_are_damage(patch: pytest.MonkeyPatch) -> None:
    true = Salvage._snapshot_is_missing

    def is_missing(self: Salvage, recovery: Any) -> bool:
        return true(self, recovery) or (not self._store.snapshots.number and bool(self._remains.segments))

    patch.setattr(Salvage, "_snapshot_is_missing", is_missing)


def leftover_segments_are_damage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Salvage, "_pass_over_leftovers", lambda self: None)


PLANTED: tuple[tuple[Plant, str], ...] = (
    (sync_is_not_made, "log."),
    (answer_before_sync, "log."),
    (fence_is_skipped, "lease.fence"),
    (key_is_forgotten, "dedup.answer"),
    (transaction_is_answered_too_soon, "lease.lost"),
    (stream_skips_one, "stream."),
    (heap_gives_the_worst, "heap.rank"),
    (delete_is_not_stored, "log.back"),
    (part_of_a_batch_is_uncovered, "batch."),
    (batch_is_shown_beside_hidden_ones, "batch."),
    (batch_is_answered_before_it_is_shown, "batch."),
    (memory_is_forgotten_while_the_process_lives, "log.lost: scratch"),
    (gap_ends_one_too_early, "log.missing"),
    (cap_takes_one_too_many, "retention.early"),
    (time_takes_too_early, "retention.early"),
    (time_takes_nothing, "retention.ttl"),
    (socket_skips_one, "stream.missed: caster"),
    (ack_of_a_statement_is_not_stored, "group."),
    (router_goes_back_when_it_starts, "copy.twice"),
    (destination_is_read_as_it_is, "copy.late"),
    (letters_are_not_waited_for, "letter.late"),
    (drop_is_not_stored, "the server cannot start"),
    (arrow_loses_a_row, "log.missing"),
    (boot_id_alone_proves_that_nothing_is_lost, "log.seq"),
    (time_is_the_highest_that_the_wall_clock_showed, "liveness."),
    (jump_of_the_clock_is_believed_at_once, "retention.early"),
    (pipelined_requests_overtake, "pipeline: "),
    (turns_do_not_end, "flood: "),
    (bodies_come_before_their_key, "memory: "),
    (flags_of_what_is_gone_are_not_set, "repair: "),
    (segments_without_a_snapshot_are_damage, "check.healthy"),
    (leftover_segments_are_damage, "check.healthy"),
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
    furnished()
    plant(monkeypatch)
    sys.stdout.write(f"{plant.__name__}: found {rule} after {seeds_until(rule)} seeds\n")
