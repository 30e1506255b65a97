"""Is a topic that was dropped and made again another one? Whoever reads it can tell, and it never goes back.

Reads `drop`, whose answer says whether something was `dropped`, and the `epoch` and `head_seq` that each `read` of the
place answers. A topic that was empty may never have come to exist when the power is lost. What is in one is for
`log.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from topics.testing.checkers.events import History, Violation


def check_recreation(history: History) -> Iterator[Violation]:
    for place in history.places("drop"):
        drops = [call for call in history.of(place, "drop") if call.ok and call.copies == 1 and call.answer["dropped"]]
        reads = [call for call in history.of(place, "read") if call.ok]
        reads.sort(key=lambda call: call.done or 0)
        for at, later in enumerate(reads):
            for earlier in reads[:at]:
                unborn = not earlier.answer["head_seq"] and history.power_lost(earlier.sent, later.done)
                if unborn or not earlier.answered_before(later):
                    continue
                before, after = earlier.answer["epoch"], later.answer["epoch"]
                dropped = any(earlier.answered_before(drop) and drop.answered_before(later) for drop in drops)
                if after < before + dropped:
                    text = f"{place}: its epoch was {before} and then {after}"
                    yield Violation("recreation.epoch", f"{text}, and it was dropped in between" if dropped else text)
                    return
