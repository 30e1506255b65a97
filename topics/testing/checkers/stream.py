"""Does a stream miss or repeat anything for a watcher that honours ids? Each record and each gap once, in order.

Reads `heard`, and `write`, `delete` as `log.py` does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topics.testing.checkers.events import Call, Heard, History, Violation


def check_streams(history: History) -> Iterator[Violation]:
    heard: dict[tuple[str, str], list[Heard]] = defaultdict(list)
    for event in history.heard:
        heard[event.watcher, event.place].append(event)
    for (watcher, place), events in heard.items():
        yield from _stream(history, f"{watcher} at {place}", place, events)


def _stream(history: History, name: str, place: str, events: list[Heard]) -> Iterator[Violation]:
    writes = sorted(history.of(place, "write"), key=lambda call: call.sent)
    first_calls: dict[int, Call] = {}
    for call in writes:
        for number in call.asked["ids"] if call.possible else ():
            first_calls.setdefault(number, call)
    rows = {
        seq: (number, first_calls[number])
        for call in writes
        if call.ok
        for seq, number in zip(call.answer["seqs"], call.asked["ids"], strict=True)
    }
    deletes = [call for call in history.of(place, "delete") if call.possible]
    cursor = 0
    for event in events:
        seqs = [seq for seq, _ in event.records]
        first, last = (event.from_seq + 1, event.to_seq) if event.gap is None else event.gap
        if (
            first <= cursor
            or last < first
            or seqs != sorted(set(seqs))
            or any(not first <= seq <= last for seq in seqs)
        ):
            text = f"{name}: at {cursor} came {first} to {last} with the seqs {seqs}"
            yield Violation("stream.order", text)
        for seq, number in event.records:
            if seq in rows and rows[seq][0] != number:
                yield Violation("stream.record", f"{name}: seq {seq} is record {rows[seq][0]} and came as {number}")
        told = set(seqs) if event.gap is None else set(range(first, last + 1))
        for seq in range(cursor + 1, last + 1):
            if seq in rows and seq not in told and not _deleted(rows[seq][1], seq, event, deletes):
                yield Violation("stream.missed", f"{name}: seq {seq} was passed over on the way to {last}")
        cursor = max(cursor, last)
    if history.is_final:
        behind = [seq for seq, (_, call) in rows.items() if seq > cursor and not _deletable(call, deletes)]
        if behind:
            yield Violation("stream.behind", f"{name}: ended at {cursor} and never heard of {min(behind)}")


def _deleted(write: Call, seq: int, event: Heard, deletes: list[Call]) -> bool:
    return any(
        delete.sent < event.at
        and not delete.before(write)
        and (delete.asked.get("before_seq") is None or seq < delete.asked["before_seq"])
        for delete in deletes
    )


def _deletable(write: Call, deletes: list[Call]) -> bool:
    return any(not delete.before(write) for delete in deletes)
