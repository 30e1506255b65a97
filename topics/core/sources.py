"""Changing what tables a topic gets records from: one command, one fact with all that holds from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import source
from topics.core.catalogview import find_table
from topics.core.commands import ChangeSources
from topics.core.facts import SourcesChanged, encode
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID
from topics.core.source import Operation, PayloadMode, Source, Sources
from topics.errors import InvalidRequest
from topics.tablemodel import TableConfig

if TYPE_CHECKING:
    from topics.core.machine import Machine


def change(machine: Machine, command: ChangeSources, now_ms: int) -> Outcome:
    """The reply is the topic's sources as they are now."""
    topic = machine.topic(command.topic)
    sources: Sources = topic.sources
    if command.dropped is not None:
        sources = source.without(topic.name, sources, command.dropped, command.operations)
    for each in command.added:
        _check(each, find_table(machine, each.table).config)
    new = source.begun(sources, command.added, command.start, now_ms, machine.next_epoch)
    sources = source.added(topic.name, sources, new)
    if sources == topic.sources:
        return Outcome(sources)
    fact = SourcesChanged(topic.name, sources)
    apply(machine, fact)
    return Outcome(sources, [StoredFact(META_LOG_ID, False, [encode(fact)])], must_sync=True)


def apply(machine: Machine, fact: SourcesChanged) -> None:
    topic = machine.topics.get(fact.topic)
    assert topic is not None
    machine.topics.feed(topic, fact.sources)
    machine.changed.add(fact.topic)
    machine.next_epoch = max(machine.next_epoch, *(each.number + 1 for each in fact.sources), 0)


def _check(each: Source, table: TableConfig) -> None:
    if table.format.is_files and each.operation is not Operation.INSERT:
        raise InvalidRequest(
            f'table "{each.table}" is {table.format} files, which only get rows: there is no {each.operation.upper()}',
            field="operation",
            expected="ON INSERT",
        )
    if not table.key and each.payload is PayloadMode.KEY:
        raise InvalidRequest(
            f"table \"{each.table}\" has no key: a record can hold all of a row, WITH (payload = 'full'), or register "
            "the table with KEY (…)",
            field="payload",
            expected="full",
        )
