"""The topics that exist, by name and alias, and in order of their names.

An alias is another name for a topic. It stands wherever a name can, and is nobody else's name or alias.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from topics.core.auditchain import INTERNAL_TOPICS
from topics.core.source import Sources
from topics.errors import NameTaken
from topics.model import Durability, TopicConfig, TopicType

META_LOG_ID = 0


@dataclass(slots=True)
class Topic:
    """One topic of that name. A later one with the same name has a higher epoch and other logs."""

    name: str
    config: TopicConfig
    """Changed by the registry only, which counts."""
    epoch: int
    first_log_id: int
    created_ms: int
    last_read_ts: int | None = None
    sources: Sources = ()
    """The tables whose changes become records here."""
    updated_ms: int = 0
    """When the config was last changed; 0 for never."""

    def log_ids(self) -> range:
        return range(self.first_log_id, self.first_log_id + self.config.partitions)


class Registry:
    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._names: list[str] = []
        """In order. Internal topics have no place among them: no list shows them, and no wildcard means them."""
        self._aliases: dict[str, str] = {}
        """By alias, the name of the topic."""
        self._configs: dict[TopicConfig, tuple[TopicConfig, int]] = {}
        """Each config that a topic has, and how many have it."""
        self._fed: set[str] = set()
        """Names of the topics that get changes of tables."""
        self.by_type: Counter[TopicType] = Counter()
        self.by_class: Counter[Durability] = Counter()

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def get(self, name: str) -> Topic | None:
        """The topic with this name or alias."""
        found = self._topics.get(name)
        if found is None and name in self._aliases:
            return self._topics.get(self._aliases[name])
        return found

    def named(self, name: str) -> Topic | None:
        """The topic with this name, whatever has it as an alias."""
        return self._topics.get(name)

    def name_of(self, name: str) -> str:
        """The name of the topic with this name or alias; the same when there is none."""
        found = self.get(name)
        return name if found is None else found.name

    def check_alias(self, name: str, config: TopicConfig) -> None:
        """Refuse a config whose alias stands for another topic than the one of this name."""
        alias = config.alias
        other = None if alias is None else self.get(alias)
        if other is not None and other.name != name:
            raise NameTaken(
                f'topic "{name}" cannot have the alias "{alias}": it stands for topic "{other.name}"',
                alias=alias,
                topic=other.name,
            )

    def add(self, topic: Topic) -> None:
        assert topic.name not in self._topics
        self._topics[topic.name] = topic
        topic.config = self._shared(topic.config)
        if topic.name not in INTERNAL_TOPICS:
            if self._names and topic.name < self._names[-1]:
                insort(self._names, topic.name)
            else:
                self._names.append(topic.name)
        self._name(topic)
        self._count(topic, 1)
        self.feed(topic, topic.sources)

    def remove(self, name: str) -> Topic:
        if name not in INTERNAL_TOPICS:
            del self._names[bisect_left(self._names, name)]
        topic = self._topics.pop(name)
        self._fed.discard(name)
        self._unname(topic)
        self._count(topic, -1)
        self._unshare(topic.config)
        return topic

    def configure(self, topic: Topic, config: TopicConfig) -> None:
        self._count(topic, -1)
        self._unname(topic)
        self._unshare(topic.config)
        topic.config = self._shared(config)
        self._name(topic)
        self._count(topic, 1)

    def _shared(self, config: TopicConfig) -> TopicConfig:
        """The one object for all topics with this config: most topics have the same as many others."""
        found, count = self._configs.get(config, (config, 0))
        self._configs[found] = found, count + 1
        return found

    def _unshare(self, config: TopicConfig) -> None:
        found, count = self._configs[config]
        if count > 1:
            self._configs[found] = found, count - 1
        else:
            del self._configs[found]

    def feed(self, topic: Topic, sources: Sources) -> None:
        """Changes of these tables become records of a topic."""
        topic.sources = sources
        if sources:
            self._fed.add(topic.name)
        else:
            self._fed.discard(topic.name)

    def fed(self) -> list[Topic]:
        """The topics that get changes of tables, in order of their names."""
        return [self._topics[name] for name in sorted(self._fed)]

    def _name(self, topic: Topic) -> None:
        # What a repair has put together may name one twice: the first has it.
        if topic.config.alias is not None and self.get(topic.config.alias) is None:
            self._aliases[topic.config.alias] = topic.name

    def _unname(self, topic: Topic) -> None:
        if topic.config.alias is not None and self._aliases.get(topic.config.alias) == topic.name:
            del self._aliases[topic.config.alias]

    def _count(self, topic: Topic, change: int) -> None:
        if topic.name in INTERNAL_TOPICS:
            return
        self.by_type[topic.config.type] += change
        self.by_class[topic.config.durability] += change

    def page(self, after: str, prefix: str, limit: int) -> list[Topic]:
        """Up to `limit` topics behind the name `after` that begin with `prefix`, in order of their names."""
        at = bisect_left(self._names, max(prefix, after + "\0" if after else ""))
        found = []
        for name in self._names[at : at + limit]:
            if not name.startswith(prefix):
                break
            found.append(self._topics[name])
        return found
