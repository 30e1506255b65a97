"""The topic of dead letters is there from the moment its queue or heap is, and is made again when it is needed."""

from __future__ import annotations

import pytest

from tests.core.queuerig import QueueRig
from topics.core.commands import Append, Claim, Claimer
from topics.core.heapcommands import MakeHeap
from topics.core.machine import Bounds
from topics.core.records import Records
from topics.errors import InvalidRequest, Throttled
from topics.model import Durability, TopicType

ONE = Records.of([{"data": 1}])


def names(rig: QueueRig) -> list[str]:
    return sorted(topic.name for topic in rig.machine.topics)


def test_dead_letter_topic_is_made_with_its_queue() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", dead_letter="dead")
    assert names(rig) == names(rig.replayed()) == ["dead", "q"]
    made = rig.machine.topic("dead").config
    assert made.type is TopicType.LOG and made.dead_letter is None


def test_dead_letter_topic_is_made_with_its_heap() -> None:
    rig = QueueRig()
    rig.step(MakeHeap("h", {"retention_ms": 5000}))
    assert names(rig) == names(rig.replayed()) == ["h", "h.dlq"]
    made = rig.machine.topic("h.dlq").config
    assert (made.ttl_ms, made.durability, made.type) == (5000, Durability.FSYNC, TopicType.LOG)


def test_dead_letter_topic_is_made_by_the_config_of_a_write() -> None:
    rig = QueueRig()
    outcome = rig.step(Append("q", ONE, config={"type": "queue", "dead_letter": "dead"}))
    assert outcome.reply.created and names(rig) == names(rig.replayed()) == ["dead", "q"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("merge", [False, True])
def test_change_of_the_config_makes_it(merge: bool) -> None:
    rig = QueueRig()
    rig.configure("q", type="queue")
    rig.configure("q", merge=merge, dead_letter="dead")
    assert names(rig) == names(rig.replayed()) == ["dead", "q"]


def test_config_that_is_put_again_makes_a_deleted_one_again() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", dead_letter="dead")
    rig.drop("dead")
    rig.configure("q", merge=True, lease_ms=1000)
    assert names(rig) == ["q"], "nobody asked for it"
    rig.configure("q", type="queue", dead_letter="dead", lease_ms=1000)
    assert names(rig) == names(rig.replayed()) == ["dead", "q"]


def test_dead_letter_makes_a_deleted_topic_again() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", dead_letter="dead", max_deliveries=1, lease_ms=1000)
    rig.drop("dead")
    rig.write({"data": 1}, topic="q")
    for _ in range(2):
        rig.step(Claim("q", (Claimer("w"),)))
        rig.now_ms += 2000
    assert names(rig) == names(rig.replayed()) == ["dead", "q"] and rig.log("dead").count == 1


def test_topic_that_is_there_is_left_as_it_is() -> None:
    rig = QueueRig()
    rig.configure("dead", type="queue", alias="grave")
    before = rig.machine.topic("dead").config
    rig.configure("q", type="queue", dead_letter="dead")
    rig.configure("r", type="queue", dead_letter="grave")
    assert names(rig) == ["dead", "q", "r"] and rig.machine.topic("dead").config == before


def test_queues_may_be_the_dead_letters_of_each_other() -> None:
    rig = QueueRig()
    rig.configure("a", type="queue", dead_letter="b")
    rig.drop("b")
    rig.configure("b", type="queue", dead_letter="a")
    assert names(rig) == ["a", "b"]


def test_queue_that_may_create_nothing_makes_none() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue", dead_letter="dead", auto_create=False)
    assert names(rig) == ["q"]


def test_no_room_for_both_refuses_the_queue() -> None:
    rig = QueueRig(Bounds(topics_max=2))
    rig.configure("other")
    with pytest.raises(Throttled, match="2 more are needed"):
        rig.configure("q", type="queue", dead_letter="dead")
    assert names(rig) == names(rig.replayed()) == ["other"]
    rig.configure("q", type="queue")
    with pytest.raises(Throttled):
        rig.configure("q", merge=True, dead_letter="dead", lease_ms=7000)
    assert rig.machine.topic("q").config.lease_ms != 7000


def test_alias_of_the_queue_itself_is_refused() -> None:
    rig = QueueRig()
    with pytest.raises(InvalidRequest, match="alias of topic"):
        rig.configure("q", type="queue", dead_letter="other", alias="other")
    assert names(rig) == []
