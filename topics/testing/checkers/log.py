"""Is the log a log? What was answered is there, once, in order, under its seq for ever; what is not there is told.

Verbs: `write` asks for `ids`, `tags`, and may have a `key`; its answer has `seqs`. `delete` asks for `before_seq` and
`tag`. `read` asks for `from_seq`; its answer has `records` (seq, id, tag), `gap` (from, to, reason) or None, `next_seq`
and `head_seq`. A place that forgets, or that is dropped and made again, is another log in each of its `spans`.

What is written behind a batch that is not finished is hidden with it: of a place with `batches` the last look counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from topics.testing.checkers.events import Call, History, Violation
from topics.testing.checkers.spans import Span, spans


@dataclass(frozen=True, slots=True)
class _Row:
    """A record whose write was answered."""

    seq: int
    id: int
    tag: str
    write: Call
    first: Call
    """The first call that may have written it: a write that is repeated may be as old as that."""


def check_log(history: History) -> Iterator[Violation]:
    for place in history.places("write", "read"):
        for span in spans(history, place):
            yield from _Place(history, place, span).check()


class _Place:
    def __init__(self, history: History, place: str, span: Span) -> None:
        self.history = history
        self.place = place
        self.span = span
        self.topic = history.topic(place)
        self.writes = history.of(place, "write")
        self.reads = [call for call in history.of(place, "read") if call.ok and span.holds(call)]
        self.deletes = [call for call in history.of(place, "delete") if call.possible]
        first: dict[int, Call] = {}
        for call in sorted(self.writes, key=lambda call: call.sent):
            for number in call.asked["ids"] if call.possible else ():
                first.setdefault(number, call)
        self.rows = [
            _Row(seq, number, tag, call, first[number])
            for call in self.writes
            if call.ok and span.holds(call)
            for seq, number, tag in zip(call.answer["seqs"], call.asked["ids"], call.asked["tags"], strict=True)
        ]

    def check(self) -> Iterator[Violation]:
        yield from self._one_record_a_seq()
        yield from self._written_by_somebody()
        yield from self._not_twice()
        yield from self._in_order()
        for read in self.reads:
            yield from self._page_is_sound(read)
            yield from self._nothing_is_missing(read)
            yield from self._deleted_is_gone(read)
        yield from self._only_the_end_is_lost()

    def _fail(self, rule: str, text: str) -> Violation:
        return Violation(f"log.{rule}", f"{self.place}: {text}")

    # ---- what a seq is

    def _one_record_a_seq(self) -> Iterator[Violation]:
        known: dict[int, int] = {}
        shown = [(seq, number) for read in self.reads for seq, number, _ in read.answer["records"]]
        for seq, number in [*((row.seq, row.id) for row in self.rows), *shown]:
            if known.setdefault(seq, number) != number:
                yield self._fail("seq", f"seq {seq} was record {known[seq]} and is record {number}")

    def _written_by_somebody(self) -> Iterator[Violation]:
        if self.topic.batches or self.topic.source:
            return
        asked = {number for call in self.writes if self.span.may_have(call) for number in call.asked["ids"]}
        for read in self.reads:
            for seq, number, _ in read.answer["records"]:
                if number not in asked:
                    yield self._fail("invented", f"nobody wrote record {number}, which is at seq {seq}")

    def _not_twice(self) -> Iterator[Violation]:
        if self.topic.batches:
            return
        most: dict[int, int] = defaultdict(int)
        for call in self.writes:
            for number in call.asked["ids"]:
                once = call.asked.get("key") is not None
                most[number] = max(most[number], 1) if once else most[number] + call.copies
        seqs: dict[int, set[int]] = defaultdict(set)
        for read in self.reads:
            for seq, number, _ in read.answer["records"]:
                seqs[number].add(seq)
        # What a power loss took is written again under its key.
        forgot = 0 if self.topic.synced else sum(fault.power for fault in self.history.faults)
        for number, found in seqs.items():
            if number in most and len(found) > most[number] + forgot:
                yield self._fail("twice", f"record {number} is at {sorted(found)}, asked for {most[number]} times")

    def _in_order(self) -> Iterator[Violation]:
        answered = [
            call for call in self.writes if call.ok and self.span.holds(call) and not call.answer.get("deduped")
        ]
        for call in answered:
            seqs = call.answer["seqs"]
            if list(seqs) != list(range(seqs[0], seqs[0] + len(seqs))):
                yield self._fail("order", f"one write got the seqs {seqs}")
        answered.sort(key=lambda call: call.answer["seqs"][0])
        highest_sent: Call | None = None
        for call in answered:
            if highest_sent is not None and call.before(highest_sent):
                seqs = (call.answer["seqs"], highest_sent.answer["seqs"])
                yield self._fail("order", f"a write was over before another began, and their seqs are {seqs}")
            if highest_sent is None or call.sent > highest_sent.sent:
                highest_sent = call

    # ---- what a page is

    def _page_is_sound(self, read: Call) -> Iterator[Violation]:
        from_seq, next_seq = read.asked["from_seq"], read.answer["next_seq"]
        seqs = [seq for seq, _, _ in read.answer["records"]]
        gap = read.answer["gap"]
        if _is_rewound(read):
            if not self.topic.forgets and not self.span.dropped_at:
                yield self._fail("page", f"a page from {from_seq} says that the topic is another one: {gap}")
            from_seq, gap = 0, None
        if seqs != sorted(set(seqs)) or any(not from_seq < seq <= next_seq for seq in seqs):
            yield self._fail("page", f"a page from {from_seq} to {next_seq} has the seqs {seqs}")
        if gap is not None:
            first, last, _ = gap
            if first != from_seq + 1 or last < first or any(first <= seq <= last for seq in seqs):
                yield self._fail("page", f"a page from {from_seq} tells of the gap {gap} and has the seqs {seqs}")

    def _nothing_is_missing(self, read: Call) -> Iterator[Violation]:
        from_seq, next_seq, gap = read.asked["from_seq"], read.answer["next_seq"], read.answer["gap"]
        if _is_rewound(read):
            from_seq, gap = 0, None
        if self.topic.batches and not read.asked.get("final"):
            return
        shown = {seq for seq, _, _ in read.answer["records"]}
        for row in self.rows:
            if row.seq in shown or row.seq <= from_seq or not row.write.answered_before(read):
                continue
            if row.seq > next_seq:
                if row.seq > read.answer["head_seq"]:
                    yield self._fail("head", f"seq {row.seq} was answered, then the head was {read.answer['head_seq']}")
                continue
            if gap is not None and gap[0] <= row.seq <= gap[1]:
                if not self.topic.capped and not self._may_be_lost(row.write, read):
                    yield self._fail("lost", f"record {row.id} at seq {row.seq} was answered and is told lost ({gap})")
            elif not self._may_be_deleted(row, read):
                yield self._fail("missing", f"record {row.id} at seq {row.seq} was answered, and is silently gone")

    def _may_be_lost(self, write: Call, read: Call) -> bool:
        return not self.topic.synced and self.history.may_have_lost(write, read.done)

    def _may_be_deleted(self, row: _Row, read: Call) -> bool:
        return any(
            delete.sent < (read.done or 0) and not delete.before(row.first) and _matches(delete, row)
            for delete in self.deletes
        )

    def _deleted_is_gone(self, read: Call) -> Iterator[Violation]:
        shown = {seq for seq, _, _ in read.answer["records"]}
        for delete in self.deletes:
            if not delete.answered_before(read) or (
                not self.topic.synced and self.history.may_have_lost(delete, read.done)
            ):
                continue
            for row in self.rows:
                if row.seq in shown and row.write.before(delete) and _matches(delete, row):
                    yield self._fail("back", f"record {row.id} at seq {row.seq} was deleted and is there")

    # ---- what a power loss takes

    def _only_the_end_is_lost(self) -> Iterator[Violation]:
        if self.topic.capped or not self.reads:
            return
        shown = {seq for read in self.reads for seq, _, _ in read.answer["records"]}
        gaps = [(read.answer["gap"], read) for read in self.reads if read.answer["gap"] and not _is_rewound(read)]
        for gap, read in gaps:
            lost = [row for row in self.rows if gap[0] <= row.seq <= gap[1]]
            for row in lost:
                deaths = [f.at for f in self.history.faults if f.power and row.write.sent < f.at < (read.done or 0)]
                for later in self.rows:
                    kept = later.seq > gap[1] and later.seq in shown and later.write.done is not None
                    if kept and deaths and (later.write.done or 0) < min(deaths):
                        yield self._fail("suffix", f"seq {row.seq} is lost, and {later.seq}, as old as it, is there")
                        return


def _is_rewound(read: Call) -> bool:
    """Whether the cursor was of another topic of this name: the page begins at the beginning then."""
    gap = read.answer["gap"]
    return gap is not None and gap[2] == "recreated"


def _matches(delete: Call, row: _Row) -> bool:
    before_seq, tag = delete.asked.get("before_seq"), delete.asked.get("tag")
    return (before_seq is None or row.seq < before_seq) and (tag is None or tag == row.tag)
