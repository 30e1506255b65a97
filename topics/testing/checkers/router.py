"""Does a router copy? Everything of its source, in order, once, and nothing else.

Reads `write` and `read` of the place and of its source, as `log.py` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from topics.testing.checkers.events import Call, History, Violation


def check_routers(history: History) -> Iterator[Violation]:
    for place, topic in history.topics.items():
        if topic.source:
            yield from _copies(history, place, topic.source, topic.source_tag)


def _rows(history: History, place: str, final: bool = False, only: str = "") -> dict[int, int]:
    """Ids by seq, as all reads together have shown them; `only` those with a tag."""
    found: dict[int, int] = {}
    for read in history.of(place, "read"):
        if read.ok and (not final or read.asked.get("final")):
            found |= {seq: number for seq, number, tag in read.answer["records"] if not only or tag == only}
    return found


def _copies(history: History, place: str, source: str, only: str) -> Iterator[Violation]:
    copies, originals = _rows(history, place), _rows(history, source)
    writes = [call for call in history.of(source, "write") if call.possible]
    asked = {
        number
        for call in writes
        for number, tag in zip(call.asked["ids"], call.asked["tags"], strict=True)
        if not only or tag == only
    }
    for seq, number in copies.items():
        if number not in asked:
            yield Violation(
                "copy.invented", f"{place}: record {number} at seq {seq} was never written to {source}, or not for it"
            )
    places: dict[int, set[int]] = {}
    for seq, number in originals.items():
        places.setdefault(number, set()).add(seq)
    for call in writes:
        for number, seq in zip(call.asked["ids"], call.answer.get("seqs", ()), strict=False):
            places.setdefault(number, set()).add(seq)
    # Copies that a power loss took come again, behind those that were there: only what is left in the end has an order.
    forgot = not history.topic(place).synced and history.power_lost(0, None)
    order = [number for _, number in sorted((_rows(history, place, final=True) if forgot else copies).items())]
    yield from _once(history, place, source, order, places)
    single = _single(history, source)
    at = [(number, min(places[number])) for number in order if number in single and len(places.get(number, ())) == 1]
    for (one, first), (other, second) in pairwise(at):
        if second < first:
            text = f"{place}: {one} comes before {other}, which are at {first} and {second} of {source}"
            yield Violation("copy.order", text)
    if history.is_final:
        final = set(_rows(history, place, final=True).values())
        deletes = [call for call in history.of(place, "delete") if call.possible]
        for number in _rows(history, source, final=True, only=only).values():
            if number not in final and not deletes:
                yield Violation("copy.missing", f"{place}: record {number} of {source} never came")


def _single(history: History, source: str) -> set[int]:
    """Records that the source can have had under one seq only."""
    calls: dict[int, list[Call]] = {}
    for call in history.of(source, "write"):
        for number in call.asked["ids"] if call.possible else ():
            calls.setdefault(number, []).append(call)
    synced = history.topic(source).synced
    found: set[int] = set()
    for number, writes in calls.items():
        named = all(call.asked.get("key") is not None for call in writes)
        forgot = not synced and any(history.may_have_lost(call, None) for call in writes)
        if sum(call.copies for call in writes) == 1 or (named and not forgot):
            found.add(number)
    return found


def _once(
    history: History, place: str, source: str, order: list[int], places: dict[int, set[int]]
) -> Iterator[Violation]:
    seen: dict[int, int] = {}
    for number in order:
        seen[number] = seen.get(number, 0) + 1
    writes = [call for call in history.of(source, "write") if call.possible]
    for number, count in seen.items():
        calls = [call for call in writes if number in call.asked["ids"]]
        # A source that forgets may have had a record twice, and nobody has seen the first one.
        forgets = not history.topic(source).synced and any(history.may_have_lost(call, None) for call in calls)
        named = any(call.asked.get("key") is not None for call in calls)
        most = max(1, len(places.get(number, ())), 1 if named else sum(call.copies for call in calls))
        if count > (most + len(history.faults) if forgets else most):
            yield Violation("copy.twice", f"{place}: record {number} is there {count} times, {most} times in {source}")
