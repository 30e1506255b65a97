"""Publishing a batch over turns: decide, append, finish, each step when the one before is durable.

begin     the decision is in the meta log; whoever asks for the same batch meanwhile joins in
decided   durable: the staged records go into their logs, hidden from readers
appended  durable in every log: readers see all of it from this moment, and the answer is recorded
finished  durable: everybody who asked gets the answer
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from topics.core import batch as batches
from topics.core.batch import Batch
from topics.core.commands import Publish
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.outcome import Outcome
from topics.engine.ticket import Ticket
from topics.engine.turn import Turn
from topics.errors import StageConflict, TopicsError
from topics.model import Published


class Publishing:
    def __init__(
        self, machine: Machine, turn: Turn, now_ms: Callable[[], int], mark_dirty: Callable[[int], None]
    ) -> None:
        self._machine = machine
        self._turn = turn
        self._now_ms = now_ms
        self._mark_dirty = mark_dirty
        self._asking: dict[tuple[str, int], list[Ticket]] = {}
        self._hidden: dict[int, dict[tuple[str, int], int]] = {}
        """Where unfinished batches begin, by log."""
        self._failed: dict[tuple[str, int], TopicsError] = {}
        """Batches that cannot go on before a restart, and why."""

    def begin(self, command: Publish) -> Ticket:
        self._check_durable(command)
        outcome = batches.decide(self._machine, command, self._now_ms())
        batch = outcome.reply
        assert isinstance(batch, Batch)
        ticket = Ticket()
        key = (batch.producer_id, batch.epoch)
        if not outcome.facts:
            if key in self._failed:
                ticket.fail(self._failed[key])
            elif batch.answer is not None and key not in self._asking:
                ticket.resolve(msgspec.structs.replace(batch.answer, deduped=True))
            else:
                self._asking.setdefault(key, []).append(ticket)
            return ticket
        self._asking[key] = [ticket]
        self._add(outcome).on_done(lambda done: self._append(batch, done.error))
        return ticket

    def _check_durable(self, command: Publish) -> None:
        """A decision must not be durable before what it decides about."""
        if (command.producer_id, command.epoch) in self._machine.batches.by_producer:
            return
        for name in command.stages:
            stage = self._machine.batches.stages.get(name)
            if stage is not None and stage.log.synced_seq < stage.log.head_seq:
                raise StageConflict(
                    f'stage "{name}" has records that are not durable yet: publish it when they are answered',
                    stage=name,
                )

    def resume(self) -> None:
        """Go on with what a crash interrupted."""
        for batch in self._machine.batches.unfinished():
            self._asking.setdefault((batch.producer_id, batch.epoch), [])
            self._append(batch, None)

    def asking(self) -> list[Ticket]:
        """Those who wait for a batch."""
        return [ticket for tickets in self._asking.values() for ticket in tickets]

    def _append(self, batch: Batch, error: TopicsError | None) -> None:
        if error is not None:
            self._fail(batch, error)
            return
        facts, begins = batches.append_stages(self._machine, batch, self._now_ms())
        targets = [log for log, _ in begins]
        for log, first_seq in begins:
            self._hidden.setdefault(log.log_id, {})[(batch.producer_id, batch.epoch)] = first_seq
            self._hide(log)
            # After a crash some of the batch is there already; nobody has read anything since.
            log.visible_seq = min(log.visible_seq, first_seq - 1)
        outcome = Outcome(None, facts, must_sync=True)
        self._add(outcome).on_done(lambda done: self._finish(batch, targets, done.error))

    def _finish(self, batch: Batch, targets: list[Log], error: TopicsError | None) -> None:
        if error is not None:
            self._fail(batch, error)
            return
        outcome = batches.finish(self._machine, batch, self._now_ms())
        for log in targets:
            self._hidden[log.log_id].pop((batch.producer_id, batch.epoch))
            self._hide(log)
            log.ready_seq = max(log.ready_seq, self._published_upto(outcome, log))
            log.synced_seq = max(log.synced_seq, self._published_upto(outcome, log))
            self._turn.show_ready(log)
        self._add(outcome).on_done(lambda done: self._answer(batch, done.error))

    def _hide(self, log: Log) -> None:
        """Readers get as far as the first unfinished batch."""
        log.hidden_from = min(self._hidden[log.log_id].values(), default=0)
        if not log.hidden_from:
            del self._hidden[log.log_id]

    def _published_upto(self, outcome: Outcome, log: Log) -> int:
        answer = outcome.reply
        assert isinstance(answer, Published)
        return max(
            (part.last_seq for part in answer.written if (part.topic, part.partition) == (log.topic, log.partition)),
            default=0,
        )

    def _answer(self, batch: Batch, error: TopicsError | None) -> None:
        if error is not None:
            self._fail(batch, error)
            return
        for ticket in self._asking.pop((batch.producer_id, batch.epoch), []):
            ticket.resolve(batch.answer)

    def _fail(self, batch: Batch, error: TopicsError) -> None:
        key = (batch.producer_id, batch.epoch)
        self._failed[key] = error
        for ticket in self._asking.pop(key, []):
            ticket.fail(error)

    def _add(self, outcome: Outcome) -> Ticket:
        for fact in outcome.facts:
            self._mark_dirty(fact.log_id)
        return self._turn.add(outcome)
