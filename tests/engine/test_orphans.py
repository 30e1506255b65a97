from __future__ import annotations

import pytest

from tests.engine.queuerig import QueueRig, Worker
from topics.core.commands import Claimer, Drop
from topics.engine.line import Stream
from topics.engine.orphans import GRACE_MS, Orphans
from topics.errors import NotAQueue, TopicNotFound, TopicsError
from topics.model import TopicType


def stream(told: list[TopicsError]) -> Stream:
    return Stream("q", 0, 1, Claimer("w"), lambda jobs: None, told.append)


def test_streams_wait_until_a_topic_of_that_name_is_made() -> None:
    orphans, told = Orphans(), list[TopicsError]()
    orphans.add("q", [stream(told)], 1000)
    orphans.made("other", TopicType.LOG)
    assert (told, orphans.next_deadline_ms()) == ([], 1000 + GRACE_MS)
    orphans.made("q", TopicType.LOG)
    assert [type(error) for error in told] == [NotAQueue]
    assert orphans.next_deadline_ms() is None


def test_or_until_the_time_is_over_each_for_itself() -> None:
    orphans, told = Orphans(), list[TopicsError]()
    orphans.add("q", [stream(told)], 1000)
    orphans.add("r", [stream(told)], 1001)
    orphans.tick(1000 + GRACE_MS)
    assert [type(error) for error in told] == [TopicNotFound]
    assert orphans.next_deadline_ms() == 1001 + GRACE_MS
    orphans.tick(1001 + GRACE_MS)
    assert len(told) == 2


def test_a_stream_that_was_closed_is_told_nothing() -> None:
    orphans, told = Orphans(), list[TopicsError]()
    closed, left = stream(told), stream(told)
    closed.is_open = False
    orphans.add("q", [closed], 1000)
    assert orphans.next_deadline_ms() is None
    orphans.add("q", [left], 1000)
    left.is_open = False
    orphans.made("q", TopicType.QUEUE)
    assert told == []


def test_a_name_that_is_deleted_twice_keeps_all_who_wait() -> None:
    orphans, told = Orphans(), list[TopicsError]()
    orphans.add("q", [stream(told)], 1000)
    orphans.add("q", [stream(told)], 1100)
    orphans.tick(1000 + GRACE_MS)
    assert told == []
    orphans.made("q", TopicType.QUEUE)
    assert [type(error) for error in told] == [TopicNotFound] * 2


@pytest.mark.parametrize(("kind", "error"), [("log", NotAQueue), ("queue", TopicNotFound)])
def test_a_stream_is_told_what_became_of_its_queue(kind: str, error: type[Exception]) -> None:
    rig = QueueRig()
    rig.queue()
    rig.write("q", 1)
    worker, closed = Worker(rig, "a", 1), Worker(rig, "b", 1)
    rig.work()
    rig.driver.do(Drop("q"))
    closed.stream.close()
    rig.configure("other")
    assert worker.error is None
    rig.configure("q", type=kind)
    assert type(worker.error) is error and closed.error is None
    worker.stream.close()
    rig.tick(GRACE_MS)
    assert type(worker.error) is error and worker.got == [1]
