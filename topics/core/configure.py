"""A topic's config, put whole or changed in part; a topic that does not exist is made with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import config as configs
from topics.core import deadletter, volatile
from topics.core.facts import FloorsMoved, HeadMoved, TopicConfigured, encode
from topics.core.names import check_topic
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID, Topic
from topics.model import Configured, Durability, TopicConfig

if TYPE_CHECKING:
    from topics.core.commands import Configure
    from topics.core.machine import Machine


def configure(machine: Machine, command: Configure, now_ms: int) -> Outcome:
    check_topic(command.topic)
    topic = machine.topics.get(command.topic)
    if topic is None:
        config = configs.build(command.topic, command.fields)
        topic, facts = machine.create_whole(command.topic, config, now_ms)
        return Outcome(Configured(topic=topic.name, created=True, config=config), facts, must_sync=True)
    if command.if_missing:
        configs.build(command.topic, command.fields)
        return Outcome(Configured(topic=topic.name, created=False, config=topic.config))
    change = configs.merge if command.merge else configs.replace
    config = change(topic.name, topic.config, command.fields)
    # A change of something else does not ask for a topic that somebody deleted.
    asked = not command.merge or "dead_letter" in command.fields
    letters = deadletter.missing(machine, config) if asked else None
    if config == topic.config and letters is None:
        return Outcome(Configured(topic=topic.name, created=False, config=config))
    if letters is not None:
        machine.check_topic_count()
    facts = [] if config == topic.config else _change(machine, topic, config, now_ms)
    facts += machine.create_letters(config, letters, now_ms)
    return Outcome(Configured(topic=topic.name, created=False, config=config), facts, must_sync=True)


def _change(machine: Machine, topic: Topic, config: TopicConfig, now_ms: int) -> list[StoredFact]:
    """Put a config in force; what the old TTL took stays gone, and the new caps act at once."""
    before = topic.config
    logs = [machine.logs[log_id] for log_id in topic.log_ids()]
    machine.topics.check_alias(topic.name, config)
    volatile.check_change(topic.name, logs, before, config)
    facts = [StoredFact(META_LOG_ID, False, [encode(TopicConfigured(topic.name, config, now_ms))])]
    topic.updated_ms = now_ms
    machine.topics.configure(topic, config)
    machine.changed.add(topic.name)
    was_stored = before.durability is not Durability.EPHEMERAL
    is_stored = config.durability is not Durability.EPHEMERAL
    for log in logs:
        log.observe(before, now_ms)
        log.observe(config, now_ms)
        log.evict(config)
        if was_stored is not is_stored:
            volatile.change(log, is_stored)
        if not was_stored and not is_stored:
            continue
        if not was_stored and log.next_seq > 1:
            facts.append(StoredFact(log.log_id, False, [encode(HeadMoved(log.next_seq))]))
        if log.floors_unstored:
            facts.append(StoredFact(log.log_id, False, [encode(FloorsMoved.of(log.take_floors()))]))
    return facts
