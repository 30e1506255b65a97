"""Whose each log is, as far as it is known without a segment: by the images that are left, and by what the WAL makes.

A log's number belongs to one partition of one topic, or to one stage, for ever. A segment that says otherwise is of
another directory, all of it, also what it says of logs that nobody else knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from topics.core.facts import MetaFact, StageOpened, TopicCreated, parse_meta_fact
from topics.core.machine import Machine
from topics.core.registry import META_LOG_ID
from topics.engine.job import section_key
from topics.engine.remains import Remnant
from topics.errors import Damaged
from topics.storage.frame import UNREADABLE
from topics.storage.segmentfile import SectionKey
from topics.storage.walrecovery import WalRecovery


class Owners:
    def __init__(self, machine: Machine, recovery: WalRecovery) -> None:
        self._keys = {key.log_id: key for key in _made(recovery)}
        self._keys |= {log_id: section_key(log) for log_id, log in machine.logs.items()}

    def check(self, remnant: Remnant, salt: int | None) -> None:
        """Raise `Damaged` when a segment is of another directory. `salt` is what an image says of it, if one does."""
        if salt is not None and remnant.salt not in (None, salt):
            raise _stranger(remnant, "it is not the file that a snapshot names", None)
        for section_no, (log_id, key) in remnant.sections.items():
            owner = self._keys.get(log_id)
            if key is not None and owner not in (None, key):
                raise _stranger(
                    remnant, f"its section {section_no} is of {_words(key)}, and log {log_id} is {_words(owner)}", owner
                )


def _made(recovery: WalRecovery) -> Iterator[SectionKey]:
    for log_id, _, _, body in recovery.replay():
        if log_id == META_LOG_ID:
            with suppress(*UNREADABLE):  # The replay that applies the facts says which it does not understand.
                yield from _made_by(parse_meta_fact(body))


def _made_by(fact: MetaFact) -> Iterator[SectionKey]:
    if isinstance(fact, TopicCreated):
        for partition in range(fact.config.partitions):
            yield SectionKey(fact.first_log_id + partition, fact.topic, partition, fact.epoch)
    elif isinstance(fact, StageOpened):
        yield SectionKey(fact.log_id, fact.topic, fact.partition, 0)


def _stranger(remnant: Remnant, why: str, owner: SectionKey | None) -> Damaged:
    return Damaged(
        f"{remnant.path} offset 0: {why}: the file is of another directory",
        file=remnant.path,
        offset=0,
        topic=None if owner is None else owner.topic,
    )


def _words(key: SectionKey) -> str:
    of = f"topic {key.topic}" if key.epoch else f"a stage for topic {key.topic}"
    return f"{of} (epoch {key.epoch}, partition {key.partition})"
