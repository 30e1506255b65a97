"""Topics of one name, one after the other, when a repair knows the last of them before the WAL tells how it came.

The segments tell of a topic that is there. The WAL may still hold how earlier ones with the same name were made and
dropped, and the fact of a drop says no more than the name. So the later one is set aside while the facts of an earlier
one are applied, and it is there again when that one is gone. One that a drop seems to mean is set aside as well, until
the WAL either makes it or comes to its end.
"""

from __future__ import annotations

from topics.core.facts import TopicCreated, TopicDropped
from topics.core.heap import queue_for
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.registry import Topic
from topics.model import TopicConfig


class Namesakes:
    def __init__(self, machine: Machine, trusted: bool) -> None:
        """`trusted`: the snapshot is whole, so that a topic is there only before its drop."""
        self._machine = machine
        self._trusted = trusted
        self._made: set[int] = set()
        """Epochs of topics that the WAL has made."""
        self._aside: dict[str, Topic] = {}
        """Later than whatever has the name meanwhile. Their logs are there."""

    def create(self, fact: TopicCreated) -> None:
        topics, name = self._machine.topics, fact.topic
        self._made.add(fact.epoch)
        existing = topics.named(name)
        if existing is not None and existing.epoch < fact.epoch:
            self._end(name)
            existing = topics.named(name)
        if existing is None and name in self._aside and self._aside[name].epoch <= fact.epoch:
            existing = self._decide(name, is_there=self._aside[name].epoch == fact.epoch)
        if existing is not None and existing.epoch == fact.epoch:
            shape(self._machine, existing, fact.config)
            return
        if existing is not None:
            self._aside[name] = topics.remove(name)
        self._machine.apply_meta(fact)

    def drop(self, topic: Topic) -> None:
        if self._trusted or topic.epoch in self._made:
            self._end(topic.name)
            return
        for router in self._machine.routers.touching(topic.name):
            self._machine.routers.remove(router)
        self._aside[topic.name] = self._machine.topics.remove(topic.name)

    def finish(self) -> None:
        """There are no more facts: what is aside was dropped, unless an earlier one still has its name."""
        for name in list(self._aside):
            if self._machine.topics.named(name) is not None:
                self._end(name)
            else:
                self._decide(name, is_there=False)

    def _end(self, name: str) -> None:
        """The topic with this name is gone, and the later one is there."""
        self._machine.apply_meta(TopicDropped(name))
        if name in self._aside:
            self._decide(name, is_there=True)

    def _decide(self, name: str, is_there: bool) -> Topic | None:
        topic = self._aside.pop(name)
        self._machine.changed.add(name)
        if is_there:
            self._machine.topics.add(topic)
            return topic
        for log_id in topic.log_ids():
            self._machine.forget(log_id)
        return None


def shape(machine: Machine, topic: Topic, config: TopicConfig) -> None:
    """Give a topic that a repair made from its segments the config that a fact tells.

    Segments name no type, and no partition that has no record: the logs and the state of jobs are made here.
    """
    has_type = topic.config.type
    machine.topics.configure(topic, config)
    machine.changed.add(topic.name)
    for partition, log_id in enumerate(topic.log_ids()):
        log = machine.logs.get(log_id)
        if log is None:
            log = machine.logs[log_id] = Log(log_id, topic.name, partition, topic.epoch, machine.totals)
            log.queue = queue_for(config)
        elif has_type is not config.type:
            log.queue = queue_for(config)
    machine.next_log_id = max(machine.next_log_id, topic.log_ids().stop)
