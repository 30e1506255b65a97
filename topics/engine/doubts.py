"""What a repair cannot know of the state that it saves, by topic and seqs: users may meet it again.

Lost facts and images that are older than the newest one leave the records, which are flagged in their segments, and
take away what was known beside them. Each doubt is about one log or topic, so that whoever reads the report knows what
to look at.
"""

from __future__ import annotations

from collections.abc import Iterable

from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.registry import Topic
from topics.engine.findings import Doubt, MayBeBack


class Doubts:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._records: dict[int, list[tuple[int, int]]] = {}
        self._progress: set[int] = set()
        self._answers: set[int] = set()
        self._topics: set[str] = set()

    def of_records(self, log: Log, first_seq: int, last_seq: int) -> None:
        """Some of these may have been deleted, done, or expired."""
        self._records.setdefault(log.log_id, []).append((first_seq, last_seq))

    def of_progress(self, log: Log) -> None:
        """Its image is of an earlier moment."""
        self._progress.add(log.log_id)
        self._answers.add(log.log_id)

    def of_facts(self, log: Log) -> None:
        """Facts are lost which may have ended anything."""
        self.of_records(log, log.low, log.head_seq)
        self._progress.add(log.log_id)

    def of_answers(self, log: Log) -> None:
        """Answers to writes with a key are lost."""
        self._answers.add(log.log_id)

    def of_topics(self, topics: Iterable[Topic]) -> None:
        """Their config may be an earlier one, and they may have been dropped."""
        self._topics.update(topic.name for topic in topics)

    def told(self) -> list[MayBeBack]:
        """By topic and partition, each doubt once; of ranges, what touches is one."""
        found = []
        for topic in sorted(self._machine.topics, key=lambda topic: topic.name):
            if topic.name in self._topics:
                found.append(MayBeBack(topic.name, 0, Doubt.TOPIC, 0, 0))
            for log_id in topic.log_ids():
                found += self._of_log(self._machine.logs[log_id])
        return found

    def _of_log(self, log: Log) -> list[MayBeBack]:
        low, head_seq = log.earliest_seq(), log.head_seq
        ranges = [(max(first, low), min(last, head_seq)) for first, last in self._records.get(log.log_id, ())]
        told = [(Doubt.RECORDS, first, last) for first, last in _joined(ranges) if first <= last]
        if log.log_id in self._progress:
            told.append((Doubt.PROGRESS, low, head_seq))
        if log.log_id in self._answers:
            told.append((Doubt.ANSWERS, low, head_seq))
        return [MayBeBack(log.topic, log.partition, *doubt) for doubt in told]


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
