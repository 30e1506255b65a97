"""The dead letters of a heap: messages that failed too often or were sent there, in a topic of their own.

They are dead letters as those of queues are (`core/deadletter.py`), with three stamps more: the id that the message
had, its partition, and how its last deliveries failed. So a letter can be found by the id that everybody knows, and
goes back to where it came from.

Looking through them goes in bounded steps: a *cursor* says where the next one begins.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from topics.core import live, move, room
from topics.core.claim import stored_fact
from topics.core.copies import Meta, copies
from topics.core.deadletter import DELIVERIES, FROM, PREFIX, REASON, letters, stamps, unstamped
from topics.core.facts import Acked, MovePart, Released
from topics.core.heapcommands import DeleteDead, ReplayDead
from topics.core.heapplace import Part, find_topic, message_id_of, parse_id
from topics.core.heaprecord import PRIORITY, read
from topics.core.log import Log
from topics.core.outcome import BegunMove, Outcome, StoredFact
from topics.core.read import cursor_at
from topics.core.redrive import is_busy
from topics.core.registry import Topic
from topics.core.ulid import parse_message_id
from topics.errors import Conflict, InvalidRequest, TopicsError
from topics.heapmodel import DeadFilter, DeadMessage, DeadPage, DeadStep, Failure
from topics.limits import DEAD_LETTER_RETRY_MS, MOVE_BYTES_MAX, REDRIVE_SCANNED_MAX
from topics.model import Durability

if TYPE_CHECKING:
    from topics.core.machine import Machine

MESSAGE_ID = f"{PREFIX}message_id"
PARTITION = f"{PREFIX}partition"
HISTORY = f"{PREFIX}history"

MAX_RETRIES = "max_retries"
"""The reason of a message that failed too often."""
MOVED = "moved"
"""The reason of one that was sent there without a reason."""

_history_decoder = msgspec.json.Decoder(tuple[Failure, ...])


# ---- dying


def bury(
    machine: Machine, topic: Topic, part: Part, seqs: list[int], reason: str, facts: list[StoredFact], now_ms: int
) -> list[BegunMove]:
    """Decide that messages, as many as may move together, go to the dead letters.

    Those that cannot rest a while: they are neither lost nor delivered once too often.
    """
    if not seqs:
        return []
    heap = part.heap
    moves: list[BegunMove] = []
    try:
        moves.append(decide(machine, topic, part, seqs, reason, now_ms))
        heap.dead_letter_error = None
        seqs = moves[0].fact.seqs
    except TopicsError as error:
        heap.dead_letter_error = f"{error}"
        fact = Released(seqs, now_ms + DEAD_LETTER_RETRY_MS)
        heap.apply(fact, now_ms)
        facts += stored_fact(topic, part.log, fact)
    for seq in seqs:
        heap.exhausted.pop(seq, None)
    return moves


def decide(machine: Machine, topic: Topic, part: Part, seqs: list[int], reason: str, now_ms: int) -> BegunMove:
    """Raises, and changes nothing, when the dead-letter topic does not take them."""
    log, heap = part

    def stamp(seq: int, meta: Meta) -> Meta:
        stamped = meta | stamps(topic.name, seq, heap.leases.deliveries(seq), reason)
        stamped |= {MESSAGE_ID: message_id_of(log, seq), PARTITION: str(log.partition)}
        if seq in heap.changed:
            stamped[PRIORITY] = str(heap.changed[seq])
        if seq in heap.history:
            stamped[HISTORY] = msgspec.json.encode(heap.history[seq]).decode()
        return stamped

    letter, seqs = letters(machine, topic, log, seqs, stamp, now_ms)
    return move.decide(machine, log, seqs, [letter], dead_letter=True)


# ---- looking


class _Letter(NamedTuple):
    seq: int
    message: DeadMessage


class _Stretch(NamedTuple):
    """What one bounded look found, all of it in one partition of the dead-letter topic."""

    log: Log | None
    letters: list[_Letter]
    next_cursor: str


def page(machine: Machine, name: str, chosen: DeadFilter, cursor: str, limit: int, now_ms: int) -> DeadPage:
    """Dead letters of a heap, oldest first; perhaps none, and more behind the cursor."""
    topic = find_topic(machine, name)
    found = _look(machine, topic, chosen, cursor, limit, now_ms)
    return DeadPage(
        topic=topic.name,
        dlq_topic=topic.config.dead_letter or "",
        messages=tuple(letter.message for letter in found.letters),
        next_cursor=found.next_cursor,
    )


def count(machine: Machine, topic: Topic) -> int:
    """Records of the dead-letter topic, which other heaps may use as well."""
    found = None if topic.config.dead_letter is None else machine.topics.get(topic.config.dead_letter)
    return 0 if found is None else sum(machine.logs[log_id].count for log_id in found.log_ids())


def _look(machine: Machine, topic: Topic, chosen: DeadFilter, cursor: str, limit: int, now_ms: int) -> _Stretch:
    partition, from_seq = _parse_cursor(cursor)
    if not 1 <= limit <= REDRIVE_SCANNED_MAX:
        expected = f"a whole number from 1 to {REDRIVE_SCANNED_MAX}"
        raise InvalidRequest(f"limit must be {expected}, not {limit}", field="limit", expected=expected)
    ids = frozenset(chosen.message_ids)
    oldest_ms = min((parse_id(text).ts for text in ids), default=0)
    place = None if topic.config.dead_letter is None else machine.topics.get(topic.config.dead_letter)
    if place is None or partition >= place.config.partitions:
        return _Stretch(None, [], "")
    log = machine.log(place, partition)
    log.observe(place.config, now_ms)
    if oldest_ms and not from_seq:
        # A letter is younger than its message.
        from_seq = cursor_at(log, oldest_ms)
    found: list[_Letter] = []
    scanned = 0
    reached = from_seq
    for seq in islice(live.live_seqs(log, from_seq + 1, log.visible_seq), REDRIVE_SCANNED_MAX):
        if len(found) == limit:
            return _Stretch(log, found, f"{partition}.{reached}")
        scanned += 1
        reached = seq
        letter = dead_message(topic, log, seq)
        if letter is not None and _is_meant(letter, chosen, ids):
            found.append(_Letter(seq, letter))
    if scanned == REDRIVE_SCANNED_MAX:
        return _Stretch(log, found, f"{partition}.{reached}")
    return _Stretch(log, found, f"{partition + 1}.0" if partition + 1 < place.config.partitions else "")


def _parse_cursor(cursor: str) -> tuple[int, int]:
    partition, _, seq = (cursor or "0.0").partition(".")
    if not (partition.isdecimal() and seq.isdecimal()):
        raise InvalidRequest(
            f'"{cursor[:40]}" is no cursor', field="cursor", expected="next_cursor of an answer, or nothing"
        )
    return int(partition), int(seq)


def dead_message(topic: Topic, log: Log, seq: int) -> DeadMessage | None:
    """A record of the dead-letter topic as what it was; None when it is no dead letter of this heap."""
    record = read(log, seq)
    meta = record.meta
    own_id = parse_message_id(meta.get(MESSAGE_ID, ""))
    if meta.get(FROM) != topic.name or own_id is None:
        return None
    retries = record.max_retries
    return DeadMessage(
        message_id=meta[MESSAGE_ID],
        topic=topic.name,
        partition=own_id.partition,
        dlq_topic=log.topic,
        dlq_partition=log.partition,
        dlq_seq=seq,
        payload=record.payload,
        priority=record.priority,
        enqueued_ms=own_id.ts,
        died_ms=record.ts,
        attempts=int(meta.get(DELIVERIES, "0")),
        max_retries=topic.config.max_retries if retries is None else retries,
        reason=meta.get(REASON, ""),
        history=_history(meta.get(HISTORY)),
        producer_id=record.producer_id,
        epoch=record.epoch,
        sequence=record.sequence,
        is_json=record.is_json,
        meta=record.own_meta,
    )


def _history(text: str | None) -> tuple[Failure, ...]:
    return () if text is None else _history_decoder.decode(text)


def _is_meant(letter: DeadMessage, chosen: DeadFilter, ids: frozenset[str]) -> bool:
    if ids and letter.message_id not in ids:
        return False
    if chosen.reason is not None:
        whole = chosen.reason.removesuffix("*")
        if not letter.reason.startswith(whole) or (whole == chosen.reason and letter.reason != whole):
            return False
    return (
        (chosen.died_from_ms is None or letter.died_ms >= chosen.died_from_ms)
        and (chosen.died_before_ms is None or letter.died_ms < chosen.died_before_ms)
        and (chosen.priority_min is None or letter.priority >= chosen.priority_min)
        and (chosen.priority_max is None or letter.priority <= chosen.priority_max)
    )


# ---- back, or away


def replay(machine: Machine, command: ReplayDead, now_ms: int) -> Outcome:
    """One step: the letters it meets go back into their heap, each into the partition it came from."""
    topic = find_topic(machine, command.topic)
    found = _look(machine, topic, command.chosen, command.cursor, command.limit, now_ms)
    by_partition: dict[int, list[int]] = {}
    moved_bytes = skipped = 0
    next_cursor = found.next_cursor
    reached = _parse_cursor(command.cursor)[1]
    for seq, letter in found.letters:
        assert found.log is not None
        moved_bytes += len(letter.payload)
        if by_partition and moved_bytes > MOVE_BYTES_MAX:
            next_cursor = f"{found.log.partition}.{reached}"
            break
        reached = seq
        if is_busy(found.log, seq):
            skipped += 1
        else:
            by_partition.setdefault(letter.partition % topic.config.partitions, []).append(seq)
    parts: list[MovePart] = []
    seqs: list[int] = []
    for partition, own in by_partition.items():
        target = machine.log(topic, partition)
        assert found.log is not None
        records = copies(found.log, own, lambda _, meta: unstamped(meta))
        try:
            room.check_caps(topic.name, topic.config, target, records)
        except TopicsError:
            skipped += len(own)
            continue
        parts.append(move.part(machine, topic.name, partition, target, records, now_ms))
        seqs += own
    moves = [move.decide(machine, found.log, sorted(seqs), parts)] if parts and found.log is not None else []
    reply = DeadStep(topic=topic.name, done_count=len(seqs), skipped_count=skipped, next_cursor=next_cursor)
    return Outcome(reply, log=found.log, durability=topic.config.durability, moves=moves)


def delete(machine: Machine, command: DeleteDead, now_ms: int) -> Outcome:
    """One step: the letters it meets are deleted."""
    topic = find_topic(machine, command.topic)
    found = _look(machine, topic, command.chosen, command.cursor, command.limit, now_ms)
    log = found.log
    facts: list[StoredFact] = []
    seqs: list[int] = []
    durability = topic.config.durability
    if log is not None:
        place = machine.topic(log.topic)
        durability = place.config.durability
        seqs = [seq for seq, _ in found.letters if not is_busy(log, seq)]
        if seqs:
            fact = Acked(seqs, called_off=True)
            log.apply(fact)
            facts = stored_fact(place, log, fact)
    skipped = len(found.letters) - len(seqs)
    reply = DeadStep(topic=topic.name, done_count=len(seqs), skipped_count=skipped, next_cursor=found.next_cursor)
    return Outcome(reply, facts, bool(facts) and durability is Durability.FSYNC, log, durability=durability)


def check_has_letters(topic: Topic) -> str:
    """The dead-letter topic of a heap that is to get something."""
    if topic.config.dead_letter is None:
        raise Conflict(
            f'topic "{topic.name}" has no dead letters: its dead_letter is null. Give it a name first', topic=topic.name
        )
    return topic.config.dead_letter
