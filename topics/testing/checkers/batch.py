"""Is a batch whole? All of it or nothing, and all of it from one moment on: at the latest when it is answered.

`publish` asks for `parts`, and `complete` for `results`: places with the ids that each gets. `stage` asks for `stage`
and `ids`, `publish` names `stages` and is answered with `written`: the topic, first and last seq of each part. A
transaction of a heap is an `enqueue` of several `ids`; what became of each is known from `claim` and `letters`. Reads
are those of `log.py`; with `final` in what they ask they are part of the last look at a place, when everything was
healed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topics.testing.checkers.events import Call, History, Violation

Parts = Sequence[tuple[str, Sequence[int]]]


def check_batches(history: History) -> Iterator[Violation]:
    seqs = _seqs(history)
    for call in history.calls:
        if call.verb in ("publish", "complete") and call.possible:
            parts: Parts = call.asked["parts"]
            if history.is_final:
                yield from _whole(history, call, parts)
            yield from _at_once(history, call, parts, seqs)
    yield from _not_before(history)
    if history.is_final:
        for place in history.places("enqueue"):
            yield from _transactions(history, place)


def _seqs(history: History) -> dict[tuple[str, int], int]:
    """Where each record was ever seen, or a publish was told to be."""
    found = {
        (read.place, number): seq
        for read in history.calls
        if read.verb == "read" and read.ok
        for seq, number, _ in read.answer["records"]
    }
    for publish in history.calls:
        if publish.verb == "publish" and publish.ok:
            firsts = {f"{topic}#0": first for topic, first, _ in publish.answer["written"]}
            for place, numbers in publish.asked["parts"]:
                found.update(((place, number), firsts[place] + at) for at, number in enumerate(numbers))
    return found


def _whole(history: History, call: Call, parts: Parts) -> Iterator[Violation]:
    there: list[tuple[str, int]] = []
    missing: list[tuple[str, int]] = []
    for place, ids in parts:
        reads = [read for read in history.of(place, "read") if read.ok and read.asked.get("final")]
        if not reads:
            return
        shown = {number for read in reads for _, number, _ in read.answer["records"]}
        for number in ids:
            (there if number in shown else missing).append((place, number))
    name = f"{call.verb} {call.asked.get('key')}"
    if there and missing:
        yield Violation("batch.part", f"{name}: {there[0]} is there, {missing[0]} is not")
    if call.ok and missing and not there:
        yield Violation("batch.lost", f"{name} was answered, and {missing[0]} is not there")


def _at_once(history: History, call: Call, parts: Parts, seqs: dict[tuple[str, int], int]) -> Iterator[Violation]:
    """A reader that knows one part of it, by a read, a stream or the answer, finds all parts from then on."""
    ids = {(place, number) for place, numbers in parts for number in numbers}
    reads = [read for place, _ in parts for read in history.of(place, "read") if read.ok]
    seen = [
        (read.done, "moment", "a part of a batch was seen")
        for read in reads
        if read.done is not None and any((read.place, row[1]) in ids for row in read.answer["records"])
    ]
    seen += [
        (event.at, "stream", f"{event.watcher} was sent a part of a batch")
        for event in history.heard
        if any((event.place, number) in ids for _, number in event.records)
    ]
    if call.verb == "publish" and call.ok and call.done is not None:
        seen.append((call.done, "answered", "a batch was answered"))
    if not seen:
        return
    seen_at, rule, what = min(seen)
    for read in reads:
        if read.sent <= seen_at or read.asked.get("filtered"):
            continue
        shown = {row[1] for row in read.answer["records"]}
        for place, number in ids:
            seq = seqs.get((place, number), 0)
            if place != read.place or number in shown or seq <= read.asked["from_seq"]:
                continue
            if seq <= read.answer["next_seq"] or seq > read.answer["head_seq"]:
                yield Violation(f"batch.{rule}", f"{place} {seq}: {what}, and then {number} was not there yet")


def _not_before(history: History) -> Iterator[Violation]:
    """What is staged and was never asked to be published is seen by nobody."""
    publishes = [call for call in history.calls if call.verb == "publish" and call.possible]
    asked = {stage for call in publishes for stage in call.asked["stages"]}
    hidden = {
        (call.place, number): call.asked["stage"]
        for call in history.calls
        if call.verb == "stage" and call.asked["stage"] not in asked
        for number in call.asked["ids"]
    }
    for read in history.calls:
        if read.verb == "read" and read.ok:
            for _, number, _ in read.answer["records"]:
                if (read.place, number) in hidden:
                    text = f"{read.place}: record {number} of the stage {hidden[read.place, number]} can be read"
                    yield Violation("batch.hidden", f"{text}, and nobody published it")


def _transactions(history: History, place: str) -> Iterator[Violation]:
    found = {grant["id"] for call in history.of(place, "claim") if call.ok for grant in call.answer["grants"]}
    found |= {number for call in history.of(place, "letters") if call.ok for number in call.answer["ids"]}
    # Of a message that somebody has acked nothing is left to be found; or nobody knows.
    names = {
        grant["item"]: grant["id"] for call in history.of(place, "claim") for grant in call.answer.get("grants", ())
    }
    acks = [call for call in history.of(place, "ack") if call.possible]
    acked = {names[item]: call.ok for call in acks for item in call.asked["items"] if item in names}
    found |= {number for number, known in acked.items() if known}
    for call in history.of(place, "enqueue"):
        ids = set(call.asked["ids"])
        missing = ids - found - acked.keys()
        if call.possible and ids & found and missing:
            yield Violation("batch.part", f"{place}: of one transaction {ids & found} came and {missing} did not")
