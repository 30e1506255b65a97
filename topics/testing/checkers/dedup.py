"""Is what has a name done once? A write that is repeated under its key gets the first answer, and adds nothing.

Reads the verb `write` with a `key` in what it asks, `enqueue` the same (its answer has `messages`), and `publish` with
its producer and epoch as `key` (its answer has `written`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from topics.testing.checkers.events import Call, History, Violation
from topics.testing.checkers.spans import spans

ANSWERS = {"write": "seqs", "enqueue": "messages", "publish": "written"}


def check_dedup(history: History) -> Iterator[Violation]:
    named: dict[tuple[str, str, object], list[Call]] = defaultdict(list)
    for call in history.calls:
        if call.verb in ANSWERS and call.ok and call.asked.get("key") is not None:
            named[call.verb, call.place, call.asked["key"]].append(call)
    for (verb, place, key), calls in named.items():
        calls.sort(key=lambda call: call.done or 0)
        synced = history.topic(place).synced
        for first, second in pairwise(calls):
            field = ANSWERS[verb]
            if first.answer[field] == second.answer[field]:
                continue
            kept = any(span.holds(first) and span.holds(second) for span in spans(history, place))
            if kept and (synced or not history.may_have_lost(first, second.done)):
                text = f"{place}: {verb} {key} was answered {first.answer[field]} and then {second.answer[field]}"
                yield Violation("dedup.answer", text)
