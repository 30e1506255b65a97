"""Dead letters of a group: copies of records that it was handed as often as the topic allows, see `core/deadletter.py`.

A queue's dead letter leaves the queue. A group's stays in the topic, where other groups have positions of their own: it
is a move of which nothing leaves the source but the group's claim to it. From the decision to the end of the move the
range is nobody's; then it counts as acked. Only topics of type `log` have such letters: in a queue, the limit is one of
jobs.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from topics.core import deadletter, live, move
from topics.core.copies import Meta
from topics.core.group import Group
from topics.core.groupfacts import AnyGroupFact, GroupFreed, SeqRange
from topics.core.groupranges import Range
from topics.core.log import Log
from topics.core.outcome import BegunMove
from topics.core.registry import Topic
from topics.errors import TopicsError
from topics.limits import DEAD_LETTER_RETRY_MS, DEAD_LETTERS_PER_PASS_MAX
from topics.model import TopicType

if TYPE_CHECKING:
    from topics.core.machine import Machine

GROUP = f"{deadletter.PREFIX}group"


def is_exhausted(topic: Topic, found: Range) -> bool:
    config = topic.config
    may_bury = config.type is TopicType.LOG and config.dead_letter is not None
    return may_bury and 0 < config.max_deliveries <= found.deliveries


def bury(
    machine: Machine,
    topic: Topic,
    log: Log,
    group: Group,
    exhausted: list[Range],
    facts: list[AnyGroupFact],
    now_ms: int,
) -> list[BegunMove]:
    """Copy what is exhausted to the dead-letter topic, as much as may move together. What it does not take rests."""
    if not exhausted:
        return []
    deliveries = {found.first: found.deliveries for found in exhausted}
    seqs: list[int] = []
    by_seq: dict[int, int] = {}
    for found in exhausted:
        for seq in islice(live.live_seqs(log, found.first, found.last), DEAD_LETTERS_PER_PASS_MAX - len(seqs)):
            seqs.append(seq)
            by_seq[seq] = deliveries[found.first]

    def stamp(seq: int, meta: Meta) -> Meta:
        return meta | deadletter.stamps(topic.name, seq, by_seq[seq], deadletter.MAX_DELIVERIES) | {GROUP: group.name}

    try:
        part, seqs = deadletter.letters(machine, topic, log, seqs, stamp, now_ms)
    except TopicsError as error:
        group.dead_letter_error = f"{error}"
        fact = GroupFreed(group.name, now_ms + DEAD_LETTER_RETRY_MS, [(found.first, found.last) for found in exhausted])
        log.groups.apply(fact, log, now_ms)
        facts.append(fact)
        return []
    group.dead_letter_error = None
    return [move.decide(machine, log, [], [part], group=group.name, ranges=_ranges(exhausted, seqs[-1]))]


def _ranges(exhausted: list[Range], last_seq: int) -> list[SeqRange]:
    """What leaves: all of it up to the last record that does."""
    return [(found.first, min(found.last, last_seq)) for found in exhausted if found.first <= last_seq]
