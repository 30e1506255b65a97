"""The progress of archives: told by whoever copies a topic elsewhere, and kept in each partition's log.

    ReportArchive   an archive has every record up to `upto_seq`: from here on retention may take those
    DropArchive     nobody goes on with this archive: retention waits for it no longer

A report never goes back: one that is repeated, or comes late, changes nothing and is answered with what is known. It
may not be ahead of the log, nor be about another life of the topic than the one that is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core.commands import DropArchive, ReportArchive
from topics.core.facts import Archived, ArchiveDropped, FloorsMoved, LogFact, encode
from topics.core.log import Log
from topics.core.names import check_archive
from topics.core.outcome import Outcome, StoredFact
from topics.core.protect import needed_from, protects
from topics.core.registry import Topic
from topics.errors import InvalidRequest, Throttled, TopicRecreated
from topics.limits import ARCHIVE_LOCATION_BYTES_MAX, ARCHIVES_MAX
from topics.model import ArchiveDropped as DroppedArchive
from topics.model import ArchiveState, Durability, HoldingState, TopicConfig

if TYPE_CHECKING:
    from topics.core.machine import Machine


def report(machine: Machine, command: ReportArchive, now_ms: int) -> Outcome:
    check_archive(command.archive)
    topic = machine.topic(command.topic)
    log = machine.log(topic, command.partition)
    _check(topic, log, command)
    log.observe(topic.config, now_ms)
    known = log.holds.archives.get(command.archive) if log.has_holders else None
    if known is None and log.has_holders and len(log.holds.archives) >= ARCHIVES_MAX:
        raise Throttled(
            f'topic "{topic.name}" has {ARCHIVES_MAX} archives, as many as it may; drop one that nobody goes on with',
            limit="archives",
            max=ARCHIVES_MAX,
        )
    if known is not None and (command.upto_seq, command.location) == (known.upto_seq, known.location):
        return Outcome(_state(log, command.archive))
    upto_seq = max(command.upto_seq, known.upto_seq if known is not None else 0)
    facts = _floors(topic, log)
    fact = Archived(command.archive, upto_seq, command.location, now_ms)
    log.apply(fact)
    facts += _stored(topic, log, fact)
    log.observe(topic.config, now_ms)
    log.evict(topic.config)
    facts += _floors(topic, log)
    return Outcome(_state(log, command.archive), facts, must_sync=bool(facts), log=log)


def _check(topic: Topic, log: Log, command: ReportArchive) -> None:
    if command.epoch is not None and command.epoch != topic.epoch:
        raise TopicRecreated(
            f'topic "{topic.name}" was deleted and made anew since: its epoch is {topic.epoch}, not {command.epoch}',
            topic=topic.name,
            epoch=topic.epoch,
        )
    if not 0 <= command.upto_seq <= log.head_seq:
        raise InvalidRequest(
            f"upto_seq must be a seq that was written, 0 to {log.head_seq}, not {command.upto_seq}",
            field="upto_seq",
            value=command.upto_seq,
            expected=f"0..{log.head_seq}",
        )
    if len(command.location.encode("utf-8", "replace")) > ARCHIVE_LOCATION_BYTES_MAX:
        expected = f"at most {ARCHIVE_LOCATION_BYTES_MAX} bytes"
        raise InvalidRequest(f"location must be {expected}", field="location", expected=expected)


def drop(machine: Machine, command: DropArchive, now_ms: int) -> Outcome:
    check_archive(command.archive)
    topic = machine.topic(command.topic)
    facts: list[StoredFact] = []
    known = False
    for log_id in topic.log_ids():
        log = machine.logs[log_id]
        if not log.has_holders or command.archive not in log.holds.archives:
            continue
        known = True
        log.observe(topic.config, now_ms)
        # With the last archive gone all is needed again.
        facts += _floors(topic, log)
        fact = ArchiveDropped(command.archive)
        log.apply(fact)
        facts += _stored(topic, log, fact)
    reply = DroppedArchive(topic=topic.name, archive=command.archive, dropped=known)
    return Outcome(reply, facts, must_sync=bool(facts))


def _floors(topic: Topic, log: Log) -> list[StoredFact]:
    """What has been taken by now stays taken, whatever is needed from here on."""
    return _stored(topic, log, FloorsMoved.of(log.take_floors())) if log.floors_unstored else []


def _stored(topic: Topic, log: Log, fact: LogFact) -> list[StoredFact]:
    return [] if topic.config.durability is Durability.EPHEMERAL else [StoredFact(log.log_id, False, [encode(fact)])]


def _state(log: Log, name: str) -> ArchiveState:
    known = log.holds.archives[name]
    return ArchiveState(
        archive=name,
        partition=log.partition,
        upto_seq=known.upto_seq,
        behind=max(0, log.visible_seq - known.upto_seq),
        location=known.location,
        reported_ts=known.at_ms,
    )


def archives(log: Log) -> tuple[ArchiveState, ...]:
    """How far each archive of a log has come, in order of their names."""
    return tuple(_state(log, name) for name in sorted(log.holds.archives)) if log.has_holders else ()


def holding(log: Log, config: TopicConfig) -> HoldingState | None:
    """What retention leaves for whom; None when it waits for nobody and never had to."""
    overrun_count = log.holds.overrun_count if log.has_holders else 0
    if not protects(config) and not overrun_count:
        return None
    return HoldingState(
        needed_from=needed_from(log, config), max_bytes=config.protect_max_bytes, overrun_count=overrun_count
    )
