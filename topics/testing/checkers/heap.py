"""Is a heap a heap? A pop gives what is among the best of all that is ready.

Reads the verbs of `leases.py`: `enqueue` asks for `ids` and `priorities`, with `delays`, and answers `messages`;
`claim` answers grants with the `id` of each message and `attempts`, how many deliveries failed before.

Of a message it is known that it was ready during a pop when its enqueue was answered before the pop was asked for, it
was not to wait, and the first time it was handed out came after the pop, with no failed delivery counted: then no lost
answer can have hidden it either. Where a lease may have ended with the process in between, that says nothing; neither
does a pop while a part of the disk was out of order. A message that died and was brought back is another one. Pops of
which nobody knows the answer may have hidden as many messages as they asked for (`max`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topics.testing.checkers.events import Call, History, Violation

HIDDEN_MS = 10_000
"""How long a request may be under way, or what it got be held, after its client has given up."""


@dataclass(slots=True)
class _Message:
    item: str
    priority: int
    enqueue: Call
    first: Call | None = None
    """The pop that gave it the first time anybody heard of."""
    attempts: int = 0


def check_heap(history: History) -> Iterator[Violation]:
    for place in history.places("enqueue"):
        topic = history.topic(place)
        if not topic.rank_max:
            continue
        messages = _messages(history, place)
        pops = [call for call in history.of(place, "claim") if call.ok]
        for pop in pops:
            if history.was_sick(pop):
                continue
            yield from _ranks(history, place, pop, messages)


def _messages(history: History, place: str) -> dict[int, _Message]:
    found: dict[int, _Message] = {}
    for call in history.of(place, "enqueue"):
        if call.ok:
            fields = (call.asked["ids"], call.asked["priorities"], call.answer["messages"])
            for number, priority, item in zip(*fields, strict=True):
                if not call.asked.get("delays", {}).get(number):
                    found.setdefault(number, _Message(item, priority, call))
    claims = [call for call in history.of(place, "claim") if call.ok]
    for call in sorted(claims, key=lambda call: call.done or 0):
        for grant in call.answer["grants"]:
            message = found.get(grant["id"])
            if message is not None and message.item == grant["item"] and message.first is None:
                message.first, message.attempts = call, grant["attempts"]
    return found


def _ranks(history: History, place: str, pop: Call, messages: dict[int, _Message]) -> Iterator[Violation]:
    topic = history.topic(place)
    sign = 1 if topic.best_is_low else -1
    ready = [message for message in messages.values() if _was_ready(history, pop, message)]
    hidden = sum(other.asked.get("max", 1) * other.copies for other in _unsure(history, pop))
    for grant in pop.answer["grants"]:
        message = messages.get(grant["id"])
        if message is None:
            continue
        better = sum(sign * other.priority < sign * message.priority for other in ready)
        most = topic.rank_max - 1 + hidden
        if message.item == grant["item"] and better > most:
            text = f"{place}: message {grant['id']} of priority {message.priority} came while {better} better ones"
            yield Violation("heap.rank", f"{text} were ready, and at most {most} may be")


def _unsure(history: History, pop: Call) -> list[Call]:
    """Pops that may have had messages during this one although nobody knows."""
    return [
        other
        for other in history.of(pop.place, "claim")
        if other.possible
        and (other.copies > 1 or not other.ok)
        and other.sent < (pop.done or 0)
        and other.done_ms + HIDDEN_MS > pop.sent_ms
    ]


def _was_ready(history: History, pop: Call, message: _Message) -> bool:
    first = message.first
    return (
        message.enqueue.answered_before(pop)
        and first is not None
        and pop.done is not None
        and first.sent > pop.done
        and not message.attempts
        and not history.lease_may_be_gone(message.enqueue.place, message.enqueue, first)
    )
