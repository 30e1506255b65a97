"""Producers that are forgotten by command: the only way in which a fence goes (see `core/fence.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING

from topics.core.batch import Batches
from topics.core.commands import ForgetProducer
from topics.core.dedupe import Dedupe
from topics.core.facts import ProducerForgotten, encode
from topics.core.fence import state_of
from topics.core.names import shorten
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID, Topic
from topics.errors import InvalidRequest, StageConflict
from topics.limits import PRODUCER_ID_BYTES_MAX
from topics.model import Durability
from topics.producermodel import ForgottenProducer, ProducerPage, ProducerState

if TYPE_CHECKING:
    from topics.core.machine import Machine


def forget(machine: Machine, command: ForgetProducer, now_ms: int) -> Outcome:
    """Drop what is remembered of a producer; no error when nothing is."""
    if not 1 <= len(command.producer_id.encode("utf-8", "replace")) <= PRODUCER_ID_BYTES_MAX:
        expected = f"1 to {PRODUCER_ID_BYTES_MAX} bytes"
        raise InvalidRequest(f"producer_id must have {expected}", field="producer_id", expected=expected)
    fact = ProducerForgotten(command.producer_id, now_ms)
    facts: list[StoredFact] = []
    if command.topic is None:
        known = _forget_batches(machine, fact, facts)
    else:
        known = _forget_writes(machine, machine.topic(command.topic), fact, facts)
    reply = ForgottenProducer(producer_id=command.producer_id, forgotten=known, topic=command.topic)
    return Outcome(reply, facts, must_sync=bool(facts))


def _forget_batches(machine: Machine, fact: ProducerForgotten, facts: list[StoredFact]) -> bool:
    batches = machine.batches
    if fact.producer_id not in batches.newest_epoch:
        return False
    if any(batch.producer_id == fact.producer_id for batch in batches.unfinished()):
        raise StageConflict(
            f'a batch of producer "{shorten(fact.producer_id)}" is being published; try again when it is answered',
            producer_id=fact.producer_id,
        )
    batches.apply(machine, fact)
    facts.append(StoredFact(META_LOG_ID, False, [encode(fact)]))
    return True


def _forget_writes(machine: Machine, topic: Topic, fact: ProducerForgotten, facts: list[StoredFact]) -> bool:
    known = False
    for log_id in topic.log_ids():
        log = machine.logs[log_id]
        if not log.remembers or not log.dedupe.knows(fact.producer_id):
            continue
        known = True
        log.apply(fact)
        if topic.config.durability is not Durability.EPHEMERAL:
            facts.append(StoredFact(log.log_id, False, [encode(fact)]))
    return known


def page_of(
    machine: Machine, topic_name: str | None, prefix: str, after: str, limit: int, suffix: str = ""
) -> ProducerPage:
    """Producers that are remembered, in order of their ids: of batches, or of writes into one topic."""
    if topic_name is None:
        names, state = set(machine.batches.newest_epoch), partial(_publisher, machine.batches)
    else:
        topic = machine.topic(topic_name)
        tables = [machine.logs[log_id].dedupe for log_id in topic.log_ids() if machine.logs[log_id].remembers]
        names, state = {name for table in tables for name in table.producers()}, partial(_writer, tables)
    found = nsmallest(
        limit + 1, (name for name in names if name > after and name.startswith(prefix) and name.endswith(suffix))
    )
    return ProducerPage(
        producers=tuple(map(state, found[:limit])), next_after=found[limit - 1] if len(found) > limit else ""
    )


def _publisher(batches: Batches, name: str) -> ProducerState:
    epoch = batches.newest_epoch[name]
    return state_of(name, epoch, None, batches.by_producer[name, epoch].decided_ms)


def _writer(tables: Sequence[Dedupe], name: str) -> ProducerState:
    """A producer in the partition where it is in its newest epoch, and of those where it wrote last."""
    states = [state for table in tables if (state := table.producer(name)) is not None]
    return max(states, key=lambda state: (state.epoch, state.last_used_ts))
