"""Does everything end in its time? Leases, delays, retries and waits, by a steady clock, when nothing fails any more.

Reads calls whose `asked` says `within_ms`: how long the answer may take, as the client counts time. With `brings` the
answer must hand something out (`grants` of a claim, `records` of a consume), else it must be empty.
"""

from __future__ import annotations

from collections.abc import Iterator

from topics.testing.checkers.events import Call, History, Violation

SLOWEST = 5 / 4
"""A span of time on the server is as long as asked for, within a fifth: it may run slower to close a gap."""
FASTEST = 5 / 6
SLACK_MS = 250
"""What the network, the disk and the timers of the server take."""


def check_liveness(history: History) -> Iterator[Violation]:
    for call in history.calls:
        if "within_ms" in call.asked:
            yield from _judge(call, call.asked["within_ms"])


def _judge(call: Call, within_ms: int) -> Iterator[Violation]:
    what = f"{call.place}: a {call.verb} that {call.asked['for']}"
    took_ms = call.done_ms - call.sent_ms
    most_ms = within_ms * SLOWEST + SLACK_MS
    if not call.ok:
        yield Violation("liveness.never", f"{what} had no answer after {took_ms} ms; {most_ms:.0f} ms are enough")
        return
    if took_ms > most_ms:
        yield Violation("liveness.late", f"{what} took {took_ms} ms; {most_ms:.0f} ms are enough")
    brought = bool(call.answer.get("grants") or call.answer.get("records"))
    if brought != call.asked["brings"]:
        yield Violation("liveness.answer", f"{what} got {'something' if brought else 'nothing'} after {took_ms} ms")
