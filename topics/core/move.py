"""Moving records from one log to others in one commit: a job to its dead letters, a job for its results.

Logs are written and lost one by one, so a commit over several is made of facts, each in its own log, in an order that a
crash can cut anywhere:

    decided    in the source, naming what leaves and holding what comes: from here on the move happens
    appended   in each target, the records with their final seqs, naming the move
    finished   in the source: what was to leave is deleted

Each is stored only when the one before is durable. A crash before `decided` leaves everything as it was; a crash after
it is made good by recovery, which appends where the move is not known yet (`received`) and then finishes. So nothing
is ever in neither place, and nothing comes twice. What leaves is nobody's and not to be had from `decided` on, and
still there for readers until `finished`.

A source numbers its moves. A target keeps, for each source, the number of the last move it received: moves of one
source reach a target in the order of their numbers, and a move has one part for each target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from topics.core import block as blocks
from topics.core.batch import records_of
from topics.core.delay import NO_DELAY, Delay
from topics.core.facts import Appended, MoveDecided, MoveFinished, MoveId, MovePart, encode
from topics.core.groupfacts import SeqRange
from topics.core.log import Log
from topics.core.outcome import BegunMove, Outcome, StoredFact
from topics.core.records import Records
from topics.model import Durability, TopicConfig, TopicType, Written

if TYPE_CHECKING:
    from topics.core.machine import Machine


@dataclass(slots=True)
class Landing:
    """One part of a move in its target."""

    outcome: Outcome
    born: Sequence[int] = field(default_factory=tuple)
    """Logs that came to be for it."""


def part(
    machine: Machine,
    topic: str,
    partition: int,
    target: Log | None,
    records: Records,
    now_ms: int,
    config: TopicConfig | None = None,
    delay: Delay = NO_DELAY,
) -> MovePart:
    """Records for another log; it need not be there yet."""
    if target is not None and target.log_id in machine.unborn:
        # A crash may take its creation and leave the move: then it is made again, as it is now, and by its name.
        config, target = machine.topic(target.topic).config, None
    body = b"".join(records.encode(1, now_ms).block_buffers())
    log_id = 0 if target is None else target.log_id
    return MovePart(topic, partition, log_id, body, delay.not_before_ms, config, delay.waits)


def decide(
    machine: Machine,
    source: Log,
    seqs: list[int],
    parts: list[MovePart],
    dead_letter: bool = False,
    group: str = "",
    ranges: Sequence[SeqRange] = (),
) -> BegunMove:
    """The first step. The caller has checked that the targets take what they are to get.

    With `group`, nothing leaves the source: the ranges are copied, and done for that group when they have come.
    """
    fact = MoveDecided(source.transit.next_number, seqs, parts, dead_letter, group, list(ranges))
    source.apply(fact)
    stored = machine.topic(source.topic).config.durability is not Durability.EPHEMERAL
    facts = [StoredFact(source.log_id, False, [encode(stored_form(machine, fact))])] if stored else []
    return BegunMove(source, fact, facts)


def stored_form(machine: Machine, fact: MoveDecided) -> MoveDecided:
    """What is stored of a move: nothing of records that go to an ephemeral topic, which a crash would take anyway."""
    parts = [
        msgspec.structs.replace(part, records=b"", unstored=part.count(), waits=b"")
        if part.records and _is_ephemeral(machine, part)
        else part
        for part in fact.parts
    ]
    return fact if parts == fact.parts else msgspec.structs.replace(fact, parts=parts)


def _is_ephemeral(machine: Machine, part: MovePart) -> bool:
    topic = machine.topics.get(part.topic)
    config = part.config if topic is None else topic.config
    return config is not None and config.durability is Durability.EPHEMERAL


def land(machine: Machine, source: Log, fact: MoveDecided, now_ms: int) -> list[Landing]:
    """The second step: the records into their logs, as far as they are not there yet."""
    return [_land_part(machine, MoveId(source.log_id, fact.number), part, now_ms) for part in fact.parts]


def _land_part(machine: Machine, move: MoveId, part: MovePart, now_ms: int) -> Landing:
    born_from = machine.next_log_id
    facts: list[StoredFact] = []
    nothing = Written(topic=part.topic, partition=part.partition, first_seq=0, last_seq=0, head_seq=0)
    if not part.records:
        return Landing(Outcome(nothing))
    if part.log_id:
        target = machine.logs.get(part.log_id)
    else:
        topic = machine.topics.get(part.topic)
        if topic is None:
            topic, created = machine.create(part.topic, part.config or TopicConfig(), now_ms)
            facts.append(created)
        target = machine.log(topic, part.partition % topic.config.partitions)
    if target is None:
        # The topic was deleted after the move was decided: what it would have got went with it.
        return Landing(Outcome(nothing))
    if target.transit.has(move):
        return Landing(Outcome(nothing))
    config = machine.topic(target.topic).config
    records = records_of(blocks.parse(part.records), 0)
    encoded = records.encode(target.next_seq, max(now_ms, target.last_ts))
    delay = Delay(part.not_before_ms, part.waits) if config.type is not TopicType.LOG else NO_DELAY
    floors = target.append(encoded, config)
    fact = Appended(encoded, target.granted_ceiling, floors, None, 0, delay.not_before_ms, move, delay.waits)
    target.remember(fact)
    written = Written(
        topic=part.topic,
        partition=target.partition,
        first_seq=encoded.first_seq,
        last_seq=encoded.last_seq,
        head_seq=encoded.last_seq,
    )
    stored = config.durability is not Durability.EPHEMERAL
    if stored:
        facts.append(StoredFact(target.log_id, True, fact.buffers()))
    outcome = Outcome(written, facts, bool(facts), target, encoded.last_seq, Durability.FSYNC)
    return Landing(outcome, range(born_from, machine.next_log_id))


def finish(machine: Machine, source: Log, number: int) -> Outcome:
    """The last step: what was to leave is gone."""
    fact = MoveFinished(number)
    source.apply(fact)
    stored = machine.topic(source.topic).config.durability is not Durability.EPHEMERAL
    return Outcome(None, [StoredFact(source.log_id, False, [encode(fact)])] if stored else [], log=source)
