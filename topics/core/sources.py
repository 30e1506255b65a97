"""Changing what tables a topic gets records from: one command, one fact with all that holds from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import source
from topics.core.commands import ChangeSources
from topics.core.facts import SourcesChanged, encode
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID
from topics.core.source import Sources

if TYPE_CHECKING:
    from topics.core.machine import Machine


def change(machine: Machine, command: ChangeSources) -> Outcome:
    """The reply is the topic's sources as they are now."""
    topic = machine.topic(command.topic)
    sources: Sources = topic.sources
    if command.dropped is not None:
        sources = source.without(topic.name, sources, command.dropped, command.operations)
    sources = source.added(topic.name, sources, command.added)
    if sources == topic.sources:
        return Outcome(sources)
    fact = SourcesChanged(topic.name, sources)
    apply(machine, fact)
    return Outcome(sources, [StoredFact(META_LOG_ID, False, [encode(fact)])], must_sync=True)


def apply(machine: Machine, fact: SourcesChanged) -> None:
    topic = machine.topics.get(fact.topic)
    assert topic is not None
    topic.sources = fact.sources
    machine.changed.add(fact.topic)
