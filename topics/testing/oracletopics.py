"""The naive model of topics: logs by name and partition, stages, and publishing them. See `oracle.py` for the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from topics.errors import ProducerFenced, StageNotFound, TopicNotFound
from topics.model import TopicConfig
from topics.testing.oracle import Draft, OracleLog, Receipt, payload_bytes


@dataclass(slots=True)
class OracleTopic:
    config: TopicConfig
    logs: list[OracleLog]


@dataclass(slots=True)
class Oracle:
    """Topics by name, stages, and the answers to publishing them."""

    topics: dict[str, OracleTopic] = field(default_factory=dict)
    stages: dict[str, tuple[str, int, list[Draft]]] = field(default_factory=dict)
    published: dict[tuple[str, int], list[Receipt]] = field(default_factory=dict)

    def log(self, topic: str, partition: int = 0) -> OracleLog:
        if topic not in self.topics:
            raise TopicNotFound(f'topic "{topic}" does not exist')
        return self.topics[topic].logs[partition]

    def configure(self, topic: str, config: TopicConfig, now_ms: int) -> None:
        """Create a topic with this config, or change it in all its partitions."""
        found = self.topics.get(topic)
        if found is None:
            self.topics[topic] = OracleTopic(config, [OracleLog(config) for _ in range(config.partitions)])
            return
        found.config = config
        for log in found.logs:
            log.configure(config, now_ms)

    def drop(self, topic: str) -> bool:
        """Forget a topic with all it held; one of that name made later begins at seq 1 again."""
        return self.topics.pop(topic, None) is not None

    def stage(self, stage: str, topic: str, drafts: Sequence[Draft], partition: int = 0) -> int:
        """Put records aside; how many the stage holds now."""
        self.log(topic, partition)
        held = self.stages.setdefault(stage, (topic, partition, []))[2]
        held += drafts
        return len(held)

    def abort(self, stage: str) -> bool:
        return self.stages.pop(stage, None) is not None

    def publish(self, stages: Sequence[str], producer_id: str, epoch: int, now_ms: int) -> list[Receipt]:
        """Write all that the stages hold, in their order, once for each producer and epoch."""
        known = self.published.get((producer_id, epoch))
        if known is not None:
            return [Receipt(part.first_seq, part.last_seq, deduped=True) for part in known]
        if any(producer == producer_id and newer > epoch for producer, newer in self.published):
            raise ProducerFenced("the producer has published a newer epoch")
        missing = [stage for stage in stages if stage not in self.stages]
        if missing:
            raise StageNotFound(f"there are no stages {missing}")
        parts = [self.stages[stage] for stage in stages]
        self._check_room(parts, now_ms)
        answer = [self.log(topic, partition).append(drafts, now_ms) for topic, partition, drafts in parts]
        for stage in stages:
            del self.stages[stage]
        self.published[(producer_id, epoch)] = answer
        return answer

    def _check_room(self, parts: Sequence[tuple[str, int, list[Draft]]], now_ms: int) -> None:
        """All of a batch has room, or none of it is written."""
        together: dict[tuple[str, int], list[Draft]] = {}
        for topic, partition, drafts in parts:
            together.setdefault((topic, partition), []).extend(drafts)
        for (topic, partition), drafts in together.items():
            log = self.log(topic, partition)
            log.expire(now_ms)
            log.check_room(len(drafts), sum(map(payload_bytes, drafts)))
