"""Is what a client knows of found by those who read behind it? Copies of what was answered, letters of what has died.

Reads `write`, `claim`, `nack` and `read` as the other checkers do. A `claim` that asks for `max` and gets fewer has
found all that were ready, and sent those to their letters that were delivered as often as they may be. A `nack` with
`at_once` gives jobs back without a delay. A read may be answered with what is there when it has waited for `FRESH_MS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topics.testing.checkers.events import Call, History, Violation

FRESH_MS: Final = 250
"""What the server promises to wait for what is on its way."""
DRAIN_MS: Final = 1000
"""A server that is asked to end answers with what is there; it may have been asked so long before its end."""


def check_fresh(history: History) -> Iterator[Violation]:
    for place, topic in history.topics.items():
        if topic.source:
            yield from _copies(history, place)
        if topic.letters:
            yield from _letters(history, place)


def _copies(history: History, place: str) -> Iterator[Violation]:
    topic = history.topic(place)
    seqs: dict[int, int] = {}
    for read in history.of(place, "read"):
        for seq, number, _ in read.answer.get("records", ()):
            seqs[number] = min(seq, seqs.get(number, seq))
    reads = [read for read in history.of(place, "read") if _is_prompt(history, read)]
    is_safe = topic.synced and history.topic(topic.source).synced
    for write in history.of(topic.source, "write"):
        if not write.ok or (not is_safe and history.power_lost(write.sent, None)):
            continue
        tagged = zip(write.asked["ids"], write.asked["tags"], strict=True)
        copied = [number for number, tag in tagged if topic.source_tag in ("", tag) and number in seqs]
        for read in reads:
            late = [number for number in copied if seqs[number] > read.answer["head_seq"]]
            if late and write.answered_before(read):
                text = f"record {late[0]} of {topic.source} was answered, and a read behind that ended before it"
                yield Violation("copy.late", f"{place}: {text}, at {read.answer['head_seq']}")
                break


def _letters(history: History, place: str) -> Iterator[Violation]:
    topic = history.topic(place)
    grants = {
        (grant["item"], grant["lease"]): grant
        for claim in history.of(place, "claim")
        for grant in claim.answer.get("grants", ())
    }
    claims = [claim for claim in history.of(place, "claim") if claim.ok and "max" in claim.asked]
    swept = [claim for claim in claims if len(claim.answer["grants"]) < claim.asked["max"]]
    reads = [
        read
        for read in history.of(topic.letters, "read")
        if _is_prompt(history, read)
        and not read.asked["from_seq"]
        and read.answer["next_seq"] >= read.answer["head_seq"]
    ]
    for nack in history.of(place, "nack"):
        if not nack.ok or not nack.asked.get("at_once"):
            continue
        dead = {
            grants[held]["id"]
            for held in zip(nack.asked["items"], nack.asked["leases"], strict=True)
            if held[0] not in nack.answer["skipped"] and grants[held]["attempts"] >= topic.deliveries_max
        }
        for claim in (claim for claim in swept if nack.answered_before(claim)):
            for read in (read for read in reads if claim.answered_before(read)):
                missing = dead - {number for _, number, _ in read.answer["records"]}
                if missing and not _is_disturbed(history, place, nack, read):
                    text = f"job {min(missing)} of {place} had died before a read of its letters, and was not there"
                    yield Violation("letter.late", f"{topic.letters}: {text}")
                    return


def _is_disturbed(history: History, place: str, since: Call, until: Call) -> bool:
    """Whether a job may not have died between two calls: the process died, the clock jumped, letters went back."""
    end = until.done or 0
    died = any(since.sent < fault.at < end for fault in history.faults)
    redrives = [call for call in history.of(place, "redrive") if call.possible and call.sent < end]
    went_back = any(call.copies > 1 or call.done is None or call.done > since.sent for call in redrives)
    return died or went_back or history.has_jumped(since, until)


def _is_prompt(history: History, read: Call) -> bool:
    """Whether a server in order answered a read within the time that it may wait, and was not about to end."""
    ended = any(fault.stopped and 0 <= fault.at_ms - read.done_ms <= DRAIN_MS for fault in history.faults)
    return read.ok and read.done_ms - read.sent_ms < FRESH_MS and not history.was_sick(read) and not ended
