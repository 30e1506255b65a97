"""Publishing a batch over turns: decide, append, show and finish, each step when the one before is durable.

begin     the decision is in the meta log; whoever asks for the same batch meanwhile joins in
decided   durable: the staged records go into their logs, hidden from readers
appended  durable in every log: readers see all of it at one moment, together with what it waits for (`visibility.py`).
          The answer is recorded, and everybody who asked gets it: a crash from here on gives the same one again
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from topics.core import batch as batches
from topics.core.batch import Batch
from topics.core.commands import Publish
from topics.core.machine import Machine
from topics.core.outcome import Outcome, StoredFact
from topics.engine.ticket import Ticket
from topics.engine.turn import Turn
from topics.engine.visibility import Pending, Visibility
from topics.errors import StageConflict, TopicsError
from topics.model import Durability


class Publishing:
    def __init__(
        self, machine: Machine, turn: Turn, now_ms: Callable[[], int], mark_dirty: Callable[[int], None]
    ) -> None:
        self._machine = machine
        self._turn = turn
        self._now_ms = now_ms
        self._mark_dirty = mark_dirty
        self._asking: dict[tuple[str, int], list[Ticket]] = {}
        self._visibility = Visibility(turn.show_together)
        self._failed: dict[tuple[str, int], TopicsError] = {}
        """Batches that cannot go on before a restart, and why."""

    def begin(self, command: Publish) -> Ticket:
        self._check_durable(command)
        outcome = batches.decide(self._machine, command, self._now_ms())
        batch = outcome.reply
        assert isinstance(batch, Batch)
        ticket = Ticket()
        key = _key_of(batch)
        if not outcome.facts:
            if key in self._failed:
                ticket.fail(self._failed[key])
            elif batch.answer is not None:
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
        unfinished = self._machine.batches.unfinished()
        for batch in unfinished:
            self._asking.setdefault(_key_of(batch), [])
        # All of them are hidden before the first one is shown.
        for store in [self._place(batch) for batch in unfinished]:
            store()

    def asking(self) -> list[Ticket]:
        """Those who wait for a batch."""
        return [ticket for tickets in self._asking.values() for ticket in tickets]

    def _append(self, batch: Batch, error: TopicsError | None) -> None:
        if error is not None:
            self._fail(batch, error)
            return
        self._place(batch)()

    def _place(self, batch: Batch) -> Callable[[], None]:
        """Put a batch into its logs, hidden. What is returned stores that, and shows the batch when it is durable."""
        facts, begins = batches.append_stages(self._machine, batch, self._now_ms())
        extents = [
            (log, first_seq, max(batches.last_seq_in(self._machine, batch, log), first_seq - 1))
            for log, first_seq in begins
        ]
        pending = self._visibility.hide(batch, extents)
        return lambda: self._store(pending, facts)

    def _store(self, pending: Pending, facts: Sequence[StoredFact]) -> None:
        if not pending.parts:
            self._show(pending)
            return
        waiting = len(pending.parts)

        def stored(ticket: Ticket) -> None:
            nonlocal waiting
            waiting -= 1
            if ticket.error is not None:
                self._fail_pending(pending, ticket.error)
            elif not waiting and pending.error is None:
                self._show(pending)

        for part in pending.parts:
            own = [fact for fact in facts if fact.log_id == part.log.log_id]
            topic = self._machine.topic(part.log.topic)
            # A batch is durable before it is seen, whatever the class of the topic, as far as the topic is stored.
            in_memory = topic.config.durability is Durability.EPHEMERAL
            durability = Durability.EPHEMERAL if in_memory else Durability.FSYNC
            outcome = Outcome(None, own, not in_memory, part.log, part.last_seq, durability)
            self._add(outcome).on_done(stored)

    def _show(self, pending: Pending) -> None:
        shown, failed = self._visibility.settle(pending)
        for one in shown:
            self._add(batches.finish(self._machine, one.batch, self._now_ms()))
        for one in shown:
            for ticket in self._asking.pop(_key_of(one.batch), []):
                ticket.resolve(one.batch.answer)
        self._fail_all(failed)

    def _fail_pending(self, pending: Pending, error: TopicsError) -> None:
        self._fail_all(self._visibility.fail(pending, error))

    def _fail_all(self, failed: Sequence[Pending]) -> None:
        for one in failed:
            assert one.error is not None
            self._fail(one.batch, one.error)

    def _fail(self, batch: Batch, error: TopicsError) -> None:
        key = _key_of(batch)
        self._failed[key] = error
        for ticket in self._asking.pop(key, []):
            ticket.fail(error)

    def _add(self, outcome: Outcome) -> Ticket:
        for fact in outcome.facts:
            self._mark_dirty(fact.log_id)
        return self._turn.add(outcome)


def _key_of(batch: Batch) -> tuple[str, int]:
    return batch.producer_id, batch.epoch
