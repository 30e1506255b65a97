"""Topics whose records are there and whose creation is not: made again, and said so.

A topic's creation is a fact of the meta log. When it cannot be read, the sections of its segments still name it, or a
later fact configures it; otherwise it gets a name made of the number of its log, which an operator can copy from.
"""

from __future__ import annotations

from collections.abc import Collection

from topics.core.facts import TopicCreated, TopicDropped
from topics.core.log import Log
from topics.core.machine import Machine
from topics.engine.findings import Findings, Kind
from topics.errors import Damaged
from topics.model import TopicConfig, TopicType
from topics.storage.segmentfile import SectionKey


class LostTopics:
    def __init__(self, machine: Machine, keys: Collection[SectionKey], found: Findings, now_ms: int) -> None:
        """`keys` are those of all sections that can be read."""
        self.configured: dict[str, TopicConfig] = {}
        """Topics that a fact configures and none creates."""
        self._machine = machine
        self._keys = keys
        self._found = found
        self._now_ms = now_ms

    def of_section(self, log_id: int, key: SectionKey | None) -> Log | None:
        """The log of a section that nothing else knows; None when its topic is known to have gone."""
        if key is None:
            key = next((other for other in self._keys if other.log_id == log_id), None)
        if key is None:
            return self.restore(made_up_name(log_id), log_id)
        if not key.epoch:
            self._found.notes.append(
                f"log {log_id} holds a stage for topic {key.topic} that nobody can publish any more"
            )
            return None
        existing = self._machine.topics.get(key.topic)
        if existing is not None and existing.epoch >= key.epoch:
            return None
        if existing is not None:
            self._machine.apply_meta(TopicDropped(existing.name))
        return self.restore(key.topic, log_id, key.partition, key.epoch)

    def restore(
        self, name: str, log_id: int, partition: int = 0, epoch: int = 0, kind: TopicType = TopicType.LOG
    ) -> Log:
        """Make the topic of a log again; its config is the default one of its kind unless a fact configures it."""
        machine = self._machine
        siblings = [key.partition for key in self._keys if (key.topic, key.epoch) == (name, epoch)]
        config = self.configured.pop(name, None) or TopicConfig(type=kind, partitions=1 + max([partition, *siblings]))
        machine.apply_meta(TopicCreated(name, epoch or machine.next_epoch, log_id - partition, config, self._now_ms))
        damage = Damaged(f"the creation of topic {name} is lost, its records (log {log_id}) are not", topic=name)
        self._found.add(Kind.TOPIC, damage, "made again, with the default config unless a later fact configures it")
        return machine.logs[log_id]


def made_up_name(log_id: int) -> str:
    return f"recovered-{log_id}"
