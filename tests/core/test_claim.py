"""One pass of handing out jobs, as transcripts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.core.damage import mend, spoil
from tests.core.queuerig import QueueRig, counts_of
from tests.core.rig import T0_MS, frozen
from topics.core import deadletter
from topics.core.commands import Ack, Append, Claim, Claimer, Command, Complete, Extend, Nack, Redrive
from topics.core.facts import Claimed, parse_log_fact
from topics.core.machine import Bounds
from topics.core.records import Records
from topics.errors import BatchTooLarge, Damaged, InvalidRequest, LeaseLost, NotAQueue, TopicNotFound, TopicsError


@pytest.fixture
def rig() -> QueueRig:
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=1000)
    return rig


def claim(rig: QueueRig, *claimers: Claimer) -> list[list[dict[str, Any]]]:
    reply = rig.step(Claim("q", claimers)).reply
    assert isinstance(reply, tuple)
    return [[msgspec.json.decode(text) for text in answer.jobs] for answer in reply]


def test_a_job_is_its_record_with_a_lease(rig: QueueRig) -> None:
    rig.write({"data": {"n": [1, ","]}, "tag": 'a"b', "node": "maker", "meta": {"k": "v"}}, {"data": 2}, topic="q")
    ((first, second),) = claim(rig, Claimer("w", 2, 500))
    assert first == {
        "$seq": 1,
        "lease_id": "lease_1",
        "deadline": T0_MS + 500,
        "deliveries": 1,
        "$tag": 'a"b',
        "$ts": T0_MS,
        "$node": "maker",
        "meta": {"k": "v"},
        "data": {"n": [1, ","]},
    }
    assert (second["lease_id"], "$tag" in second, second["data"]) == ("lease_2", False, 2)


def test_jobs_come_out_of_the_tail_and_of_blocks_alike(rig: QueueRig) -> None:
    rig.write(*({"data": number, "tag": f"t{number}"} for number in range(600)), topic="q")
    rig.write({"data": "small", "tag": "last"}, topic="q")
    ((*_, block_job, tail_job),) = claim(rig, Claimer("w", 601))
    assert (block_job["$seq"], block_job["$tag"], block_job["data"]) == (600, "t599", 599)
    assert (tail_job["$seq"], tail_job["$tag"], tail_job["data"]) == (601, "last", "small")


def test_a_pass_is_one_fact_for_all_its_claimers(rig: QueueRig) -> None:
    rig.write_numbers(*range(10), topic="q")
    before = len(rig.facts)
    hands = claim(rig, Claimer("a", 4), Claimer("b", 4, 200), Claimer("c", 1))
    assert [[job["$seq"] for job in hand] for hand in hands] == [[1, 2, 3, 4], [5, 6, 7, 8], [9]]
    (stored,) = rig.facts[before:]
    fact = parse_log_fact(b"".join(stored.body))
    assert isinstance(fact, Claimed)
    assert [(hand.node, hand.seqs, hand.due_ms - T0_MS) for hand in fact.hands] == [
        ("a", [1, 2, 3, 4], 1001),
        ("b", [5, 6, 7, 8], 201),
        ("c", [9], 1001),
    ]
    assert fact.cursor == 10


def test_those_who_wait_for_each_other_share_the_oldest(rig: QueueRig) -> None:
    rig.configure("q", type="queue", claim_jitter_ms=10)
    rig.write_numbers(*range(10), topic="q")
    hands = claim(rig, Claimer("a", 4), Claimer("b", 4), Claimer("c", 1))
    assert [[job["$seq"] for job in hand] for hand in hands] == [[1, 4, 6, 8], [2, 5, 7, 9], [3]]


def test_jobs_are_cut_out_of_blocks_and_tail_whatever_their_seqs_and_tags(rig: QueueRig) -> None:
    """Across a block's border, over deleted ones, where seqs get a digit more, with and without tags."""
    rig.write(*({"data": number} for number in range(5)), topic="q")
    rig.log("q").freeze_tail()
    rig.write(
        *({"data": number, "tag": f"t{number}"} if number % 3 else {"data": number} for number in range(5, 12)),
        topic="q",
    )
    rig.delete("q", match="t7")
    ((*jobs,),) = claim(rig, Claimer("w", 99))
    seen = [(job["$seq"], job["data"], job.get("$tag"), job["deliveries"]) for job in jobs]
    expected = [(n + 1, n, f"t{n}" if n >= 5 and n % 3 else None, 1) for n in range(12) if n != 7]
    assert seen == expected


def test_what_came_back_goes_out_before_what_never_was_and_lowest_first(rig: QueueRig) -> None:
    rig.write_numbers(*range(6), topic="q")
    claim(rig, Claimer("a", 4))
    rig.step(Nack("q", "a", [3]))
    rig.step(Nack("q", "a", [1]))
    ((first, second, third),) = claim(rig, Claimer("b", 3))
    assert [(job["$seq"], job["deliveries"]) for job in (first, second, third)] == [(1, 2), (3, 2), (5, 1)]


def test_the_queue_and_the_claim_say_how_long_within_bounds(rig: QueueRig) -> None:
    rig.write_numbers(*range(4), topic="q")
    assert claim(rig, Claimer("a"))[0][0]["deadline"] == T0_MS + 1000
    assert claim(rig, Claimer("a", 1, 1))[0][0]["deadline"] == T0_MS + 100
    assert claim(rig, Claimer("a", 1, 10**12))[0][0]["deadline"] == T0_MS + 86_400_000


def test_no_claim_gets_more_than_the_setting_allows() -> None:
    rig = QueueRig(Bounds(claim_max=3))
    rig.configure("q", type="queue")
    rig.write_numbers(*range(10), topic="q")
    assert [len(hand) for hand in claim(rig, Claimer("a", 100), Claimer("b", 2))] == [3, 2]
    with pytest.raises(BatchTooLarge, match="seqs must name 1 to 3, not 4"):
        rig.step(Ack("q", "a", [1, 2, 3, 4]))


def test_lease_ids_of_two_queues_differ(rig: QueueRig) -> None:
    rig.configure("other", type="queue", partitions=2)
    ids = []
    for topic, partition in (("q", 0), ("other", 0), ("other", 1)):
        rig.write({"data": 1}, {"data": 2}, topic=topic, partition=partition)
        for number in range(2):
            command = Claim(topic, (Claimer(f"w{number}"),), partition)
            ids += [msgspec.json.decode(job)["lease_id"] for jobs in rig.step(command).reply for job in jobs.jobs]
    assert len(ids) == len(set(ids)) == 6


def test_tokens_of_another_process_are_others(rig: QueueRig) -> None:
    rig.write_numbers(1, topic="q")
    rig.machine.incarnation = 0xABC
    ((job,),) = claim(rig, Claimer("a"))
    assert job["lease_id"] == "lease_abc0000000001"


def test_a_delay_is_kept_to_the_millisecond_and_survives(rig: QueueRig) -> None:
    rig.step(Append("q", Records.of([{"data": 1}]), delay_ms=50))
    rig.step(Append("q", Records.of([{"data": 2}]), not_before_ms=T0_MS + 100))
    rig.step(Append("q", Records.of([{"data": 3}]), not_before_ms=T0_MS - 5))
    assert counts_of(rig.queue_state()) == (1, 0, 0, 2)
    rig = rig.replayed()
    assert counts_of(rig.queue_state()) == (1, 0, 0, 2)
    rig.now_ms += 49
    assert [job["$seq"] for job in claim(rig, Claimer("a", 5))[0]] == [3]
    rig.now_ms += 1
    assert [job["$seq"] for job in claim(rig, Claimer("a", 5))[0]] == [1]
    rig.now_ms += 50
    ((job,),) = claim(rig, Claimer("a", 5))
    assert (job["$seq"], job["deliveries"]) == (2, 1)


def test_a_delay_in_a_log_is_refused_and_creates_nothing(rig: QueueRig) -> None:
    rig.configure("plain")
    for topic, config in (("plain", None), ("new", None), ("new", {"type": "log"})):
        with pytest.raises(NotAQueue, match="cannot be delayed"):
            rig.step(Append(topic, Records.of([{"data": 1}]), delay_ms=5, config=config))
    assert rig.machine.topics.get("new") is None
    rig.step(Append("new", Records.of([{"data": 1}]), delay_ms=5, config={"type": "queue"}))
    assert counts_of(rig.queue_state("new")) == (0, 0, 0, 1)


REFUSED: dict[str, tuple[Command, type[TopicsError], str]] = {
    "claim, no topic": (Claim("none", (Claimer("a"),)), TopicNotFound, '"none" does not exist'),
    "claim, a log": (Claim("plain", (Claimer("a"),)), NotAQueue, 'topic "plain" is a log'),
    "claim, partition": (Claim("q", (Claimer("a"),), 1), InvalidRequest, "partitions 0 to 0"),
    "claim, no node": (Claim("q", (Claimer(""),)), InvalidRequest, "node must be"),
    "claim, long node": (Claim("q", (Claimer("n" * 129),)), InvalidRequest, "1 to 128 bytes"),
    "claim, none": (Claim("q", (Claimer("a", 0),)), InvalidRequest, "max must be 1 or more"),
    "claim, negative time": (Claim("q", (Claimer("a", 1, -1),)), InvalidRequest, "lease_ms"),
    "ack, a log": (Ack("plain", "a", [1]), NotAQueue, "only a topic created with type"),
    "ack, nothing": (Ack("q", "a", []), InvalidRequest, "seqs must name 1 to 1000, not 0"),
    "ack, seq 0": (Ack("q", "a", [0]), InvalidRequest, "a seq is a whole number from 1"),
    "ack, too large a seq": (Ack("q", "a", [2**64]), InvalidRequest, "a seq is a whole number from 1"),
    "ack, too few leases": (Ack("q", "a", [1, 2], ["lease_1"]), InvalidRequest, "one lease for each of 2 seqs, not 1"),
    "nack, negative delay": (Nack("q", "a", [1], delay_ms=-1), InvalidRequest, "delay_ms"),
    "extend, negative time": (Extend("q", "a", [1], -1), InvalidRequest, "lease_ms"),
    "append, negative delay": (Append("q", Records.of([{"data": 1}]), delay_ms=-1), InvalidRequest, "delay_ms"),
    "append, negative time": (Append("q", Records.of([{"data": 1}]), not_before_ms=-1), InvalidRequest, "not_before"),
    "append, never": (Append("q", Records.of([{"data": 1}]), not_before_ms=2**64), InvalidRequest, "that far away"),
    "complete, without results": (Complete("q", "w", [1], []), InvalidRequest, "1 to 64 topics"),
    "complete, another's": (
        Complete("q", "thief", [1], [Append("out", Records.of([{"data": 1}]))]),
        LeaseLost,
        "nothing was done",
    ),
    "complete, a topic twice": (
        Complete("q", "w", [1], [Append("out", Records.of([{"data": n}])) for n in (1, 2)]),
        InvalidRequest,
        "named once",
    ),
    "complete, no such topic": (
        Complete("q", "w", [1], [Append("out", Records.of([{"data": 1}]), create=False)]),
        TopicNotFound,
        "may not be created",
    ),
    "complete, a delay in a log": (
        Complete("q", "w", [1], [Append("plain", Records.of([{"data": 1}]), delay_ms=1)]),
        NotAQueue,
        "cannot be delayed",
    ),
    "redrive, no topic": (Redrive("none"), TopicNotFound, '"none" does not exist'),
    "redrive, to nowhere": (Redrive("plain", destination="none"), TopicNotFound, '"none" does not exist'),
    "redrive, to itself": (Redrive("plain", destination="plain"), InvalidRequest, "where they are"),
    "redrive, nothing": (Redrive("plain", limit=0), InvalidRequest, "limit must be"),
    "redrive, before the beginning": (Redrive("plain", from_seq=-1), InvalidRequest, "from_seq"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_command_says_why_and_changes_nothing(rig: QueueRig, name: str) -> None:
    rig.configure("plain")
    rig.write_numbers(1, 2, topic="q")
    claim(rig, Claimer("w"))
    command, kind, message = REFUSED[name]
    before = frozen(rig.machine)
    with pytest.raises(kind, match=message):
        rig.step(command)
    assert frozen(rig.machine) == before


def test_jobs_delivered_too_often_are_moved_with_their_story() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=100, max_deliveries=2, dead_letter="dead")
    rig.write({"data": 1, "tag": "t", "node": "n", "meta": {"k": "v", "$dead_letter_from": "older"}}, topic="q")
    for _ in range(2):
        assert len(claim(rig, Claimer("a"))[0]) == 1
        rig.now_ms += 101
    assert counts_of(rig.queue_state()) == (1, 0, 0, 0)
    assert claim(rig, Claimer("a")) == [[]]
    assert counts_of(rig.queue_state()) == (0, 0, 1, 0)
    (letter,) = rig.scan("dead")
    assert (letter.data, letter.tag, letter.node) == (1, "t", "n")
    assert letter.meta == {
        "k": "v",
        "$dead_letter_from": "q",
        "$dead_letter_deliveries": "2",
        "$dead_letter_src_seq": "1",
        "$dead_letter_reason": "max_deliveries",
    }
    again = rig.replayed()
    assert counts_of(again.queue_state()) == (0, 0, 1, 0)
    assert again.scan("dead") == [letter]


@pytest.mark.parametrize(
    ("config", "message"),
    [({"cap_records": 1, "discard": "reject"}, "is full"), (None, "auto_create false")],
)
def test_a_job_that_cannot_be_buried_stays_and_is_tried_again(config: dict[str, object] | None, message: str) -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=100, max_deliveries=1, dead_letter="dead", auto_create=config is not None)
    if config is not None:
        rig.configure("dead", **config)
        rig.write({"data": "full"}, topic="dead")
    rig.write_numbers(1, topic="q")
    claim(rig, Claimer("a"))
    rig.now_ms += 101
    assert claim(rig, Claimer("a")) == [[]]
    state = rig.queue_state()
    assert counts_of(state) == (0, 0, 0, 1)
    assert state.dead_letter_error is not None and message in state.dead_letter_error
    assert counts_of(rig.replayed().queue_state()) == (0, 0, 0, 1)
    rig.configure("dead")
    rig.now_ms += 1000
    assert claim(rig, Claimer("a")) == [[]]
    assert counts_of(rig.queue_state()) == (0, 0, 1, 0) and rig.queue_state().dead_letter_error is None
    assert rig.scan("dead")[-1].data == 1


def test_without_a_dead_letter_topic_jobs_come_back_for_ever() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=100, max_deliveries=1)
    rig.write_numbers(1, topic="q")
    for deliveries in range(1, 6):
        ((job,),) = claim(rig, Claimer("a"))
        assert job["deliveries"] == deliveries
        rig.now_ms += 101


def test_large_jobs_are_buried_in_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadletter, "MOVE_BYTES_MAX", 25)
    rig = QueueRig()
    rig.configure("q", type="queue", lease_ms=100, max_deliveries=1, dead_letter="dead")
    rig.write(*({"data": "x" * 10} for _ in range(5)), topic="q")
    claim(rig, Claimer("a", 5))
    rig.now_ms += 101
    dead = []
    for _ in range(3):
        claim(rig, Claimer("a", 5))
        dead.append(rig.queue_state().dead_lettered)
    assert dead == [2, 4, 5]
    assert rig.queue_state().ready == 0


def test_what_is_handed_out_together_is_bounded_in_bytes(rig: QueueRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.core.claim.CLAIM_BYTES_MAX", 1000)
    rig.write(*({"data": "x" * 300} for _ in range(7)), {"data": "y" * 5000}, {"data": 9}, topic="q")

    def handed_out(node: str) -> list[int]:
        ((*jobs,),) = claim(rig, Claimer(node, 99))
        return [job["$seq"] for job in jobs]

    assert handed_out("a") == [1, 2]
    rig.step(Nack("q", "a", [1, 2]))
    assert handed_out("b") == [1, 2], "free ones first"
    assert handed_out("c") == [3, 4]
    rig.step(Nack("q", "b", [2]))
    rig.step(Nack("q", "c", [3, 4]))
    assert handed_out("d") == [2, 3]
    assert handed_out("e") == [4, 5], "free ones and fresh ones"
    assert handed_out("f") == [6, 7]
    assert handed_out("g") == [8], "one that is too large goes alone"
    assert handed_out("h") == [9]
    assert handed_out("i") == []


def test_jobs_that_cannot_be_read_stay_where_they_were(rig: QueueRig) -> None:
    rig.configure("q", type="queue", lease_ms=1000, max_deliveries=2, dead_letter="dead")
    rig.write_numbers(1, 2, 3, 4, topic="q")
    claim(rig, Claimer("a", 2))
    rig.step(Nack("q", "a", [1, 2]))
    claim(rig, Claimer("a"))
    rig.now_ms += 1001
    before = counts_of(rig.queue_state())
    assert before == (4, 0, 0, 0)
    sound = spoil(rig.log("q"))
    for most in (1, 9):
        with pytest.raises(Damaged):
            claim(rig, Claimer("b", most))
    assert counts_of(rig.queue_state()) == before
    mend(rig.log("q"), sound)
    assert [job["$seq"] for (*jobs,) in claim(rig, Claimer("b", 9)) for job in jobs] == [2, 3, 4]
    assert [letter.data for letter in rig.scan("dead")] == [1]
