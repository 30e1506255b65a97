from __future__ import annotations

from typing import Any

import pytest

from tests.core.heaprig import HEAP, HeapPair, place_of, ref_of
from topics.core import heapletters
from topics.core.commands import Append, Claim, Claimer
from topics.core.heapcommands import DeleteDead, Enqueue, NackMessages, Pop, Popper, ReplayDead
from topics.core.records import Records
from topics.errors import InvalidRequest
from topics.heapmodel import EVERY_LETTER, DeadFilter, DeadMessage, DeadPage, DeadStep, NewMessage
from topics.model import Durability

DLQ = "h.dlq"


def letters(pair: HeapPair, chosen: DeadFilter = EVERY_LETTER, cursor: str = "", limit: int = 100) -> DeadPage:
    return heapletters.page(pair.rig.machine, HEAP, chosen, cursor, limit, pair.now_ms)


def bury(*priorities: int, **config: Any) -> HeapPair:
    """A heap whose messages have all died."""
    pair = HeapPair(**({"partitions": 3, "max_retries": 0} | config))
    for at, priority in enumerate(priorities):
        pair.wait(10)
        pair.enqueue(priority, partition=at)
        ((message,),) = pair.pop(("c", 1))
        pair.nack(message)
    return pair


def test_a_dead_letter_tells_what_it_was_and_how_it_died() -> None:
    pair = HeapPair(partitions=2, max_retries=1)
    ((place),) = [pair.enqueue(7, partition=1)]
    for reason in ("first", "second"):
        (popped,) = pair.step(Pop(HEAP, [Popper("c")]))
        pair.step(NackMessages(HEAP, [ref_of(popped.messages[0])], 0, reason))
    (letter,) = letters(pair).messages
    assert letter.message_id == pair.ids[place[0]] and letter.partition == 1
    assert (letter.payload, letter.priority, letter.attempts, letter.max_retries) == (b"7", 7, 2, 1)
    assert letter.reason == heapletters.MAX_RETRIES
    assert [(failure.reason, failure.consumer) for failure in letter.history] == [("first", "c"), ("second", "c")]
    (record,) = pair.rig.scan(DLQ)
    assert record.meta is not None
    assert record.meta["$dead_letter_from"] == HEAP and record.meta["$dead_letter_deliveries"] == "2"


def test_a_lease_that_ran_out_is_in_the_history() -> None:
    pair = HeapPair(max_retries=0, lease_ms=100)
    pair.enqueue(1)
    pair.pop(("slow", 1))
    pair.wait(101)
    pair.pop(("other", 1))
    (letter,) = letters(pair).messages
    assert [(failure.reason, failure.consumer) for failure in letter.history] == [("timeout", "slow")]


def test_the_history_is_bounded_and_its_words_are() -> None:
    pair = HeapPair(max_retries=20)
    pair.enqueue(1)
    for number in range(21):
        (popped,) = pair.step(Pop(HEAP, [Popper("c")]))
        pair.step(NackMessages(HEAP, [ref_of(popped.messages[0])], 0, f"{number:03}" * 400))
    (letter,) = letters(pair).messages
    assert [failure.reason[:3] for failure in letter.history] == [f"{number:03}" for number in range(13, 21)]
    assert {len(failure.reason) for failure in letter.history} == {512}


def test_a_changed_priority_goes_along() -> None:
    pair = HeapPair(max_retries=0)
    (place,) = pair.enqueue(5)
    pair.reprioritize(place, -2)
    pair.nack(pair.pop(("c", 1))[0][0])
    assert letters(pair).messages[0].priority == -2
    pair.step(ReplayDead(HEAP))
    (popped,) = pair.step(Pop(HEAP, [Popper("c")]))
    assert popped.messages[0].priority == -2


def test_the_topic_of_dead_letters_is_made_for_them() -> None:
    pair = bury(1, dead_letter_ttl_ms=5000)
    config = pair.rig.machine.topic(DLQ).config
    assert (config.ttl_ms, config.durability, config.partitions) == (5000, Durability.FSYNC, 1)
    pair.wait(5001)
    assert letters(pair).messages == ()
    assert bury(1, retention_ms=7000).rig.machine.topic(DLQ).config.ttl_ms == 7000


def test_a_dead_letter_goes_back_to_where_it_was_as_a_new_message() -> None:
    pair = bury(3, 1, 2)
    step = pair.step(ReplayDead(HEAP))
    assert step == DeadStep(topic=HEAP, done_count=3)
    assert pair.rig.log(DLQ).count == 0
    (popped,) = pair.step(Pop(HEAP, [Popper("c", 9)]))
    shown = [(message.priority, message.partition, message.attempts) for message in popped.messages]
    assert shown == [(1, 1, 0), (2, 2, 0), (3, 0, 0)]
    assert all(record.meta == {"$priority": str(record.data[0] - 48), "$encoding": "base64"}
               for partition in range(3) for record in pair.rig.scan(HEAP, partition))  # fmt: skip


def test_steps_are_bounded_and_go_on_at_the_cursor() -> None:
    pair = bury(*range(7))
    seen, cursor = [], ""
    for _ in range(4):
        page = letters(pair, cursor=cursor, limit=2)
        seen += [letter.priority for letter in page.messages]
        cursor = page.next_cursor
    assert seen == list(range(7)) and cursor == ""
    first = pair.step(ReplayDead(HEAP, limit=3))
    assert first.done_count == 3 and first.next_cursor
    assert pair.step(ReplayDead(HEAP, cursor=first.next_cursor)).done_count == 4
    assert pair.rig.log(DLQ).count == 0


@pytest.mark.parametrize(
    ("chosen", "priorities"),
    [
        (DeadFilter(reason="max_retries"), [0, 1, 2, 3]),
        (DeadFilter(reason="max_*"), [0, 1, 2, 3]),
        (DeadFilter(reason="max"), []),
        (DeadFilter(priority_min=1, priority_max=2), [1, 2]),
        (DeadFilter(priority_min=4), []),
    ],
)
def test_letters_are_chosen(chosen: DeadFilter, priorities: list[int]) -> None:
    pair = bury(0, 1, 2, 3)
    assert [letter.priority for letter in letters(pair, chosen).messages] == priorities
    assert pair.step(DeleteDead(HEAP, chosen)).done_count == len(priorities)
    assert pair.rig.log(DLQ).count == 4 - len(priorities)


def test_a_step_looks_at_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heapletters, "REDRIVE_SCANNED_MAX", 3)
    pair = bury(0, 1, 2, 3, 4, 5, 6)
    chosen = DeadFilter(priority_min=4, priority_max=4)
    seen, cursors = [], [""]
    for _ in range(3):
        page = letters(pair, chosen, cursors[-1], 3)
        seen.append([letter.priority for letter in page.messages])
        cursors.append(page.next_cursor)
    assert (seen, cursors) == ([[], [4], []], ["", "0.3", "0.6", ""])


@pytest.mark.parametrize("limit", [0, -1, heapletters.REDRIVE_SCANNED_MAX + 1])
def test_limits_that_are_none(limit: int) -> None:
    pair = bury(1)
    for ask in (lambda: letters(pair, limit=limit), lambda: pair.step(ReplayDead(HEAP, limit=limit))):
        with pytest.raises(InvalidRequest, match="limit must be a whole number from 1") as refused:
            ask()
        assert refused.value.detail["field"] == "limit"
    assert len(letters(pair).messages) == 1


def test_large_letters_go_back_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heapletters, "MOVE_BYTES_MAX", 25)
    pair = HeapPair(max_retries=0)
    for _ in range(5):
        pair.step(Enqueue(HEAP, [NewMessage(payload=b"x" * 10)], 0))
        (popped,) = pair.step(Pop(HEAP, [Popper("c")]))
        pair.step(NackMessages(HEAP, [ref_of(popped.messages[0])]))
    done, cursor = [], ""
    while not done or cursor:
        step = pair.step(ReplayDead(HEAP, cursor=cursor))
        done.append(step.done_count)
        cursor = step.next_cursor
    assert done == [2, 2, 1]
    assert pair.rig.log(DLQ).count == 0 and pair.rig.stats().ready_messages == 5


def test_letters_that_somebody_has_are_left_alone() -> None:
    """The topic of dead letters may be a queue, whose jobs are worked on."""
    pair = HeapPair(max_retries=0)
    pair.rig.drop(DLQ)
    pair.rig.configure(DLQ, type="queue")
    for priority in (1, 2):
        pair.enqueue(priority)
        pair.nack(pair.pop(("c", 1))[0][0])
    pair.rig.step(Claim(DLQ, (Claimer("w"),)))
    assert pair.step(ReplayDead(HEAP)) == DeadStep(topic=HEAP, done_count=1, skipped_count=1)
    assert pair.step(DeleteDead(HEAP)).done_count == 0
    assert [letter.priority for letter in letters(pair).messages] == [1]
    assert [message.priority for message in pair.step_pop("c", 9)] == [2]


def test_letters_for_which_there_is_no_room_stay() -> None:
    pair = bury(1, 2, 3, partitions=2, cap_records=1)
    pair.enqueue(9, partition=0)
    step = pair.step(ReplayDead(HEAP))
    assert (step.done_count, step.skipped_count) == (1, 2)
    assert [letter.priority for letter in letters(pair).messages] == [1, 3]
    assert pair.rig.log(HEAP, 0).count == 1 and pair.rig.log(HEAP, 1).count == 1


def test_where_nothing_ever_died_there_is_nothing_to_do() -> None:
    pair = HeapPair()
    assert letters(pair).messages == ()
    assert pair.step(DeleteDead(HEAP)) == pair.step(ReplayDead(HEAP)) == DeadStep(topic=HEAP, done_count=0)


def test_letters_are_chosen_by_time_and_by_id() -> None:
    pair = bury(0, 1, 2, 3)
    every = letters(pair).messages
    times = DeadFilter(died_from_ms=every[1].died_ms, died_before_ms=every[3].died_ms)
    assert letters(pair, times).messages == every[1:3]
    ids = DeadFilter(message_ids=(every[3].message_id, every[0].message_id))
    assert letters(pair, ids).messages == (every[0], every[3])
    assert pair.step(ReplayDead(HEAP, ids)).done_count == 2
    assert letters(pair).messages == every[1:3]


def test_what_is_no_dead_letter_of_this_heap_is_left_alone() -> None:
    pair = bury(1)
    strange: list[dict[str, Any]] = [
        {"data": 1},
        {"data": 2, "meta": {"$dead_letter_from": "elsewhere", "$dead_letter_message_id": "0" * 26}},
        {"data": 3, "meta": {"$dead_letter_from": HEAP}},
    ]
    pair.rig.step(Append(DLQ, Records.of(strange)))
    assert len(letters(pair).messages) == 1
    assert pair.step(DeleteDead(HEAP)).done_count == 1
    assert pair.rig.log(DLQ).count == 3


def test_letters_that_are_not_taken_leave_their_messages_resting() -> None:
    pair = HeapPair(max_retries=0)
    pair.rig.configure(DLQ, cap_records=1, discard="reject")
    pair.rig.step(Append(DLQ, Records.of([{"data": 1}])))
    pair.enqueue(1)
    (popped,) = pair.step(Pop(HEAP, [Popper("c")]))
    answer = pair.step(NackMessages(HEAP, [ref_of(popped.messages[0])]))
    assert (answer.nacked, answer.dead_lettered) == (1, 0)
    assert "full" in (pair.rig.heap().dead_letter_error or "")
    assert pair.rig.stats().delayed_messages == 1
    pair.wait(300_000)
    assert pair.step(Pop(HEAP, [Popper("c")]))[0].messages == (), "it is not delivered once too often"
    pair.rig.configure(DLQ, merge=True, cap_records=9)
    pair.wait(300_000)
    pair.step(Pop(HEAP, [Popper("c")]))
    assert len(letters(pair).messages) == 1 and pair.rig.heap().dead_letter_error is None


def test_when_nothing_dies_any_more_what_was_to_die_is_ready() -> None:
    pair = HeapPair(max_retries=0, lease_ms=100)
    pair.enqueue(1)
    pair.pop(("c", 1))
    pair.wait(101)
    assert pair.rig.stats().in_flight_messages == 1
    pair.rig.configure(HEAP, merge=True, dead_letter=None)
    pair.step(Pop(HEAP, [Popper("c")]))
    (popped,) = pair.step(Pop(HEAP, [Popper("c")]))
    assert [message.attempts for message in popped.messages] == [1]


@pytest.mark.parametrize("cursor", ["x", "1", "1.x", "-1.0"])
def test_what_is_no_cursor(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="no cursor"):
        letters(bury(1), cursor=cursor)


def test_an_id_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no message id"):
        letters(bury(1), DeadFilter(message_ids=("7",)))


def test_a_letter_knows_its_place() -> None:
    pair = bury(4)
    (letter,) = letters(pair).messages
    assert isinstance(letter, DeadMessage) and place_of(letter.message_id) == (0, 1)
    assert (letter.dlq_topic, letter.dlq_partition, letter.dlq_seq) == (DLQ, 0, 1)
