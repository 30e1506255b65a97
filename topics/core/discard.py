"""Deleting dead letters for good: one bounded step, to be repeated until it is done.

A step looks at so many records behind a cursor and deletes those that are dead letters and are asked for. Records that
are no dead letters are passed over, and those that somebody has, or that are on their way back, stay and are counted as
skipped.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from topics.core import live
from topics.core.claim import stored_fact
from topics.core.commands import Discard
from topics.core.copies import block_of
from topics.core.facts import Acked
from topics.core.outcome import Outcome, StoredFact
from topics.core.redrive import check_bounds, find_stretch, is_busy, origin
from topics.limits import REDRIVE_SCANNED_MAX
from topics.model import Durability

if TYPE_CHECKING:
    from topics.core.machine import Machine


class Discarded(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one step; the next one goes on behind `next_from_seq` until `done`."""

    topic: str
    partition: int = 0
    deleted: int
    """Dead letters that are gone, or would be after a dry run."""
    skipped: int
    scanned: int
    next_from_seq: int
    head_seq: int
    done: bool
    dry_run: bool = False


def discard(machine: Machine, command: Discard, now_ms: int) -> Outcome:
    check_bounds(command)
    topic, log, last, source = find_stretch(machine, command, now_ms)
    seqs: list[int] = []
    scanned = skipped = 0
    reached = command.from_seq
    full = False
    for seq in islice(live.live_seqs(log, command.from_seq + 1, last), REDRIVE_SCANNED_MAX):
        if len(seqs) == command.limit:
            full = True
            break
        scanned += 1
        reached = seq
        if origin(block_of(log, seq), seq, command, source) is None:
            continue
        if is_busy(log, seq):
            skipped += 1
        else:
            seqs.append(seq)
    done = not full and scanned < REDRIVE_SCANNED_MAX
    facts: list[StoredFact] = []
    if seqs and not command.dry_run:
        fact = Acked(seqs, called_off=True)
        log.apply(fact)
        facts = stored_fact(topic, log, fact)
    reply = Discarded(
        topic=topic.name,
        partition=log.partition,
        deleted=len(seqs),
        skipped=skipped,
        scanned=scanned,
        next_from_seq=max(last, command.from_seq) if done else reached,
        head_seq=log.visible_seq,
        done=done,
        dry_run=command.dry_run,
    )
    durability = topic.config.durability
    return Outcome(reply, facts, bool(facts) and durability is Durability.FSYNC, log, durability=durability)
