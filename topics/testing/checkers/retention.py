"""Is what a cap or a TTL takes exactly what it may take? Not one record too early, none that should be gone is shown.

Reads the verbs of `log.py`. A cap counts records, so of a page it is known how many must be behind a gap; writes that
are under way, or of which nobody knows the outcome, may have taken as many more as they have records. A TTL is held
against the clock on the wall until that jumps. From then on it is held against the steady clock of the clients, which
the time of the server follows within a fifth while the process lives. `times` of a read are the stamps of its records.
"""

from __future__ import annotations

from collections.abc import Iterator

from topics.testing.checkers.events import Call, History, Violation
from topics.testing.checkers.liveness import FASTEST, SLACK_MS, SLOWEST

RESTART_MS = 3000
"""How long after a death a server is up again, at the latest. While it is down, its time may stand still."""
UNDER_WAY_MS = 10_000
"""How long a request may be under way after its client has given up."""


def check_retention(history: History) -> Iterator[Violation]:
    for place in history.places("read"):
        topic = history.topic(place)
        if not topic.cap and not topic.ttl_ms:
            continue
        writes = history.of(place, "write")
        for read in history.of(place, "read"):
            if read.ok and topic.cap:
                yield from _cap(place, topic.cap, read, writes)
            if read.ok and topic.ttl_ms:
                yield from _ttl(history, place, topic.ttl_ms, read, writes)


def _cap(place: str, cap: int, read: Call, writes: list[Call]) -> Iterator[Violation]:
    count, gap, head_seq = len(read.answer["records"]), read.answer["gap"], read.answer["head_seq"]
    if count > cap:
        yield Violation("retention.cap", f"{place}: {count} records are there, and {cap} are kept")
    if gap is None or gap[2] != "cap":
        return
    more = sum(len(write.asked["ids"]) * write.copies for write in writes if _is_under_way(write, read))
    if gap[1] > head_seq + more - cap:
        text = f"{place}: {gap} is told lost to a cap of {cap}, and the head is {head_seq}"
        yield Violation("retention.early", f"{text} with at most {more} under way")


def _is_under_way(write: Call, read: Call) -> bool:
    if not write.possible or write.sent > (read.done or 0):
        return False
    if write.ok and write.copies == 1:
        return (write.done or 0) > read.sent
    return write.done_ms + UNDER_WAY_MS > read.sent_ms


def _ttl(history: History, place: str, ttl_ms: int, read: Call, writes: list[Call]) -> Iterator[Violation]:
    if history.jumped_before(read):
        yield from _ttl_steady(history, place, ttl_ms, read, writes)
        return
    if not history.has_jumped(read, read):
        for (seq, number, _), stamped_ms in zip(read.answer["records"], read.answer["times"], strict=True):
            if stamped_ms + ttl_ms < read.wall_ms:
                late_ms = read.wall_ms - stamped_ms
                text = f"{place}: record {number} at seq {seq} is there {late_ms} ms after it was written"
                yield Violation("retention.ttl", f"{text}, and {ttl_ms} ms are kept")
    gap = read.answer["gap"]
    if gap is None:
        return
    for write in writes:
        if not write.ok or write.answer.get("deduped") or write.copies > 1 or history.has_jumped(write, write):
            continue
        for seq in write.answer["seqs"]:
            if gap[0] <= seq <= gap[1] and write.answered_before(read) and read.latest_ms <= write.wall_ms + ttl_ms:
                text = f"{place}: seq {seq} is told lost {read.latest_ms - write.wall_ms} ms after it was written"
                yield Violation("retention.early", f"{text}, and {ttl_ms} ms are kept")


def _ttl_steady(history: History, place: str, ttl_ms: int, read: Call, writes: list[Call]) -> Iterator[Violation]:
    """The same by the steady clock: what the wall clock shows has jumped."""
    shown = {number for _, number, _ in read.answer["records"]}
    up_ms = max((fault.at_ms + RESTART_MS for fault in history.faults if fault.at < (read.done or 0)), default=0)
    gap = read.answer["gap"]
    for write in writes:
        if not write.ok or write.answer.get("deduped") or write.copies > 1 or not write.answered_before(read):
            continue
        since_ms = read.sent_ms - max(write.done_ms, up_ms)
        late = shown.intersection(write.asked["ids"])
        if late and since_ms > ttl_ms * SLOWEST + SLACK_MS:
            text = f"{place}: records {sorted(late)} are there more than {since_ms} ms after they were written"
            yield Violation("retention.ttl", f"{text}, and {ttl_ms} ms are kept")
        age_ms = read.done_ms - write.sent_ms
        lived = not any(write.sent < fault.at < (read.done or 0) for fault in history.faults)
        if gap is not None and lived and age_ms < ttl_ms * FASTEST - 1:
            for seq in write.answer["seqs"]:
                if gap[0] <= seq <= gap[1]:
                    text = f"{place}: seq {seq} is told lost {age_ms} ms after it was written"
                    yield Violation("retention.early", f"{text}, and {ttl_ms} ms are kept")
