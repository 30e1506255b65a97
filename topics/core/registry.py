"""The topics that exist, by name and in order of their names."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

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

    def log_ids(self) -> range:
        return range(self.first_log_id, self.first_log_id + self.config.partitions)


class Registry:
    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self._names: list[str] = []
        self.by_type: Counter[TopicType] = Counter()
        self.by_class: Counter[Durability] = Counter()

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def get(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def add(self, topic: Topic) -> None:
        assert topic.name not in self._topics
        self._topics[topic.name] = topic
        insort(self._names, topic.name)
        self._count(topic, 1)

    def remove(self, name: str) -> Topic:
        del self._names[bisect_left(self._names, name)]
        topic = self._topics.pop(name)
        self._count(topic, -1)
        return topic

    def configure(self, topic: Topic, config: TopicConfig) -> None:
        self._count(topic, -1)
        topic.config = config
        self._count(topic, 1)

    def _count(self, topic: Topic, change: int) -> None:
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
