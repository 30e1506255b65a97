"""Enqueueing: one message, or a batch over partitions and heaps that is all or nothing.

What goes into one partition is one command and one fact. A batch for several is staged for each of them and published
as one (`core/batch.py`): a crash leaves all of it or nothing. While that is under way, its producers' keys are taken.

A message or batch that is sent again while the first one is being stored waits for it and then gets the first answer.
When the first one fails, the repeated one is enqueued instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from topics.core.commands import Abort, Command, Publish, Stage
from topics.core.dedupe import ProducerKey
from topics.core.enqueue import (
    Sorted,
    answers,
    check_messages,
    check_size,
    other_partition,
    partition_for,
    producer_key,
    sort_out,
)
from topics.core.heapcommands import Enqueue
from topics.core.heapplace import find_topic
from topics.core.heaprecord import records_of
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.outcome import Outcome
from topics.core.registry import Topic
from topics.core.transaction import check_transaction, remembered_ids, stage_of
from topics.core.ulid import parse_message_id
from topics.core.waits import waits_of
from topics.engine.moving import Add
from topics.engine.ticket import Ticket
from topics.errors import InvalidRequest, TopicNotFound, TopicsError
from topics.heapmodel import Enqueued, EnqueuedBatch, NewMessage
from topics.model import Durability

Submit = Callable[[Command], Ticket]
PRODUCER = "heap-batches"
"""Under which batches are published, each in an epoch of its own."""


class _Group(NamedTuple):
    """Messages of a batch that go to one partition: their places in the batch."""

    topic: Topic
    partition: int
    places: list[int]


class _Batch(NamedTuple):
    messages: Sequence[NewMessage]
    topics: Sequence[str]
    """The topic of each message."""
    found: Sorted
    groups: list[_Group]
    transaction: str


class Enqueuing:
    def __init__(self, machine: Machine, add: Add, submit: Submit, now_ms: Callable[[], int]) -> None:
        self._machine = machine
        self._add = add
        self._submit = submit
        self._now_ms = now_ms
        self._number = 0
        self._taken: dict[tuple[int, ProducerKey], Ticket] = {}
        """Keys of messages that are being staged, with the first log of their heap, and the ticket of their batch."""
        self._under_way: dict[str, Ticket] = {}
        """Transactions that are being staged, and their tickets."""

    def enqueue(self, topic: str, message: NewMessage) -> Ticket:
        found = find_topic(self._machine, topic)
        if self._taken and (first := self._taking(found, (message,))) is not None:
            return _after(first, lambda: self.enqueue(topic, message))
        self._number += 1
        partition = partition_for(found, message, other_partition(found, (message,), str(self._number)))
        return self._submit(Enqueue(topic, (message,), partition, is_alone=True))

    def enqueue_batch(self, messages: Sequence[tuple[str, NewMessage]], transaction_id: str) -> Ticket:
        check_transaction(transaction_id)
        check_size([message for _, message in messages])
        self._number += 1
        transaction = transaction_id or f"{self._machine.incarnation:x}-{self._number:x}"
        if (first := self._under_way.get(transaction)) is not None:
            return _after(first, lambda: self.enqueue_batch(messages, transaction_id))
        by_topic: dict[str, list[int]] = {}
        for place, (topic, _) in enumerate(messages):
            by_topic.setdefault(topic, []).append(place)
        for name in [name for name in by_topic if self._machine.topics.name_of(name) != name]:
            known = self._machine.topics.name_of(name)
            by_topic[known] = sorted([*by_topic.get(known, ()), *by_topic.pop(name)])
        topics, drafts = [name for name, _ in messages], [message for _, message in messages]
        batch = _Batch(drafts, topics, Sorted([], {}, {}), [], transaction)
        for name, places in by_topic.items():
            found = find_topic(self._machine, name)
            if self._taken and (first := self._taking(found, [batch.messages[place] for place in places])) is not None:
                return _after(first, lambda: self.enqueue_batch(messages, transaction_id))
            self._add_topic(batch, found, places, transaction_id)
        if transaction_id and (answer := self._remembered(batch)) is not None:
            return self._answered(batch, answer)
        if len(batch.groups) == 1:
            return self._enqueue_group(batch, transaction_id)
        for group in batch.groups:
            check_messages(group.topic, [batch.messages[place] for place in group.places])
        batch = self._without_known(batch)
        if not batch.groups:
            answer = EnqueuedBatch(messages=answers(batch.found, {}), transaction_id=transaction)
            return self._answered(batch, answer)
        if len(batch.groups) == 1:
            return self._enqueue_group(batch, transaction_id)
        return self._stage(batch)

    # ---- sorting out

    def _add_topic(self, batch: _Batch, topic: Topic, places: list[int], transaction_id: str) -> None:
        own = [batch.messages[place] for place in places]
        other = other_partition(topic, own, transaction_id or str(self._number))
        groups: dict[int, list[int]] = {}
        if topic.config.partitions == 1:
            groups[0] = places
        else:
            for place, message in zip(places, own, strict=True):
                groups.setdefault(partition_for(topic, message, other), []).append(place)
        batch.groups.extend(_Group(topic, partition, chosen) for partition, chosen in sorted(groups.items()))

    def _taking(self, topic: Topic, messages: Sequence[NewMessage]) -> Ticket | None:
        """The ticket of a batch under way that has one of these messages."""
        keys = [key for message in messages if (key := producer_key(message)) is not None]
        return next((first for key in keys if (first := self._taken.get((topic.first_log_id, key)))), None)

    def _without_known(self, batch: _Batch) -> _Batch:
        """Leave out what was enqueued before."""
        now_ms = self._now_ms()
        groups = []
        known: dict[int, Enqueued] = {}
        twins: dict[int, int] = {}
        by_topic: dict[str, list[_Group]] = {}
        for group in batch.groups:
            by_topic.setdefault(group.topic.name, []).append(group)
        for own in by_topic.values():
            places = sorted(place for group in own for place in group.places)
            found = sort_out(self._machine, own[0].topic, [batch.messages[place] for place in places], now_ms)
            fresh = {places[at] for at in found.fresh}
            known |= {places[at]: answer for at, answer in found.known.items()}
            twins |= {places[at]: places[twin] for at, twin in found.twins.items()}
            for group in own:
                chosen = [place for place in group.places if place in fresh]
                if chosen:
                    groups.append(_Group(group.topic, group.partition, chosen))
        return batch._replace(found=Sorted([], known, twins), groups=groups)

    def _remembered(self, batch: _Batch) -> EnqueuedBatch | None:
        """The first answer to a transaction; None when it is new."""
        now_ms = self._now_ms()
        told: dict[int, Enqueued] = {}
        is_known = False
        for topic, partition, places in batch.groups:
            log = self._machine.log(topic, partition)
            ids = remembered_ids(self._machine, log, batch.transaction, now_ms)
            is_known = is_known or bool(ids)
            found = sort_out(self._machine, topic, [batch.messages[place] for place in places], now_ms)
            # What was enqueued before the transaction is not among its own, and has an answer of its own.
            before = {at: answer for at, answer in found.known.items() if answer.message_id not in ids}
            own = [at for at in range(len(places)) if at not in before and at not in found.twins]
            if ids and len(ids) != len(own):
                raise InvalidRequest(
                    f'transaction "{batch.transaction}" was another batch: it put {len(ids)} messages into partition '
                    f'{partition} of topic "{topic.name}", not {len(own)}',
                    field="transaction_id",
                    expected="a transaction id that is used for one batch",
                )
            for at, text in zip(own, ids, strict=False):
                told[places[at]] = Enqueued(message_id=text, partition=partition, duplicate=True)
            told |= {places[at]: answer for at, answer in before.items()}
            told |= {places[at]: told[places[twin]] for at, twin in found.twins.items() if places[twin] in told}
        if not is_known:
            return None
        if len(told) < len(batch.messages):
            raise InvalidRequest(
                f'transaction "{batch.transaction}" was another batch',
                field="transaction_id",
                expected="one batch each",
            )
        messages = tuple(told[place] for place in sorted(told))
        return EnqueuedBatch(messages=messages, transaction_id=batch.transaction)

    # ---- storing

    def _enqueue_group(self, batch: _Batch, transaction_id: str) -> Ticket:
        """Into one partition. Nobody asks again for a batch that has no name, so it is not remembered."""
        (group,) = batch.groups
        own = [batch.messages[place] for place in group.places]
        stored = self._submit(Enqueue(group.topic.name, own, group.partition, transaction_id))
        ticket = Ticket()

        def done(stored: Ticket) -> None:
            if stored.error is not None:
                ticket.fail(stored.error)
                return
            assert isinstance(stored.reply, EnqueuedBatch)
            messages = stored.reply.messages
            if len(messages) < len(batch.messages):
                told = dict(zip(group.places, messages, strict=True)) | batch.found.known
                for place, twin in batch.found.twins.items():
                    told[place] = msgspec.structs.replace(told[twin], duplicate=True)
                messages = tuple(told[place] for place in sorted(told))
            self._answer(batch, EnqueuedBatch(messages=messages, transaction_id=batch.transaction), ticket)

        stored.on_done(done)
        return ticket

    def _stage(self, batch: _Batch) -> Ticket:
        """Stage each group; when all are durable, publish them."""
        keys = {
            (group.topic.first_log_id, key)
            for group in batch.groups
            for place in group.places
            if (key := producer_key(batch.messages[place])) is not None
        }
        stages: list[str] = []
        tickets: list[Ticket] = []
        try:
            for at, group in enumerate(batch.groups):
                own = [batch.messages[place] for place in group.places]
                stages.append(stage_of(batch.transaction, f"{self._machine.incarnation:x}.{self._number:x}.{at}"))
                waits = waits_of([-message.delay_ms for message in own])
                tickets.append(
                    self._submit(Stage(stages[-1], group.topic.name, records_of(own), group.partition, waits=waits))
                )
        except TopicsError:
            if tickets:
                self._submit(Abort(tuple(stages[: len(tickets)])))
            raise
        ticket = Ticket()
        self._taken.update(dict.fromkeys(keys, ticket))
        self._under_way[batch.transaction] = ticket
        ticket.on_done(lambda done: self._finished(batch.transaction, keys))
        waiting = len(tickets)

        def staged(part: Ticket) -> None:
            nonlocal waiting
            waiting -= 1
            if part.error is not None:
                ticket.fail(part.error)
            elif not waiting and not ticket.done:
                self._publish(batch, stages, ticket)

        for part in tickets:
            part.on_done(staged)
        return ticket

    def _publish(self, batch: _Batch, stages: list[str], ticket: Ticket) -> None:
        epoch = 1 + self._machine.batches.newest_epoch.get(PRODUCER, 0)
        try:
            published = self._submit(Publish(tuple(stages), PRODUCER, epoch))
        except TopicsError as error:
            ticket.fail(error)
            return

        def done(published: Ticket) -> None:
            if published.error is not None:
                ticket.fail(published.error)
                return
            ids: dict[int, tuple[str, int]] = {}
            for group in batch.groups:
                if self._machine.topics.get(group.topic.name) is not group.topic:
                    ticket.fail(TopicNotFound(f'topic "{group.topic.name}" was deleted', topic=group.topic.name))
                    return
                log = self._machine.log(group.topic, group.partition)
                texts = remembered_ids(self._machine, log, batch.transaction, self._now_ms())
                ids |= {place: (text, group.partition) for place, text in zip(group.places, texts, strict=True)}
            answer = EnqueuedBatch(messages=answers(batch.found, ids), transaction_id=batch.transaction)
            self._answer(batch, answer, ticket)

        published.on_done(done)

    def _finished(self, transaction: str, keys: set[tuple[int, ProducerKey]]) -> None:
        for key in keys:
            del self._taken[key]
        del self._under_way[transaction]

    # ---- answering

    def _answered(self, batch: _Batch, answer: EnqueuedBatch) -> Ticket:
        ticket = Ticket()
        self._answer(batch, answer, ticket)
        return ticket

    def _answer(self, batch: _Batch, answer: EnqueuedBatch, ticket: Ticket) -> None:
        """Resolve a ticket as soon as all messages that were known before are as safe as their class requires."""
        unsafe: dict[int, tuple[Log, int, Durability]] = {}
        for place, told in enumerate(answer.messages):
            if not told.duplicate:
                continue
            found = parse_message_id(told.message_id)
            topic = self._machine.topics.named(batch.topics[place])
            if found is None or topic is None or found.partition >= topic.config.partitions:
                continue
            log = self._machine.log(topic, found.partition)
            if found.seq > max(log.ready_seq, unsafe.get(log.log_id, (log, 0))[1]):
                unsafe[log.log_id] = log, found.seq, topic.config.durability
        waiting = len(unsafe)

        def stored(first: Ticket) -> None:
            nonlocal waiting
            waiting -= 1
            if first.error is not None:
                ticket.fail(first.error)
            elif not waiting:
                ticket.resolve(answer)

        for log, seq, durability in unsafe.values():
            self._add(Outcome(None, log=log, seq=seq, durability=durability)).on_done(stored)
        if not unsafe:
            ticket.resolve(answer)


def _after(first: Ticket, ask: Callable[[], Ticket]) -> Ticket:
    """Ask when another ticket is done, whatever came of it."""
    ticket = Ticket()

    def answered(asked: Ticket) -> None:
        if asked.error is not None:
            ticket.fail(asked.error)
        else:
            ticket.resolve(asked.reply)

    def again(done: Ticket) -> None:
        try:
            ask().on_done(answered)
        except TopicsError as error:
            ticket.fail(error)

    first.on_done(again)
    return ticket
