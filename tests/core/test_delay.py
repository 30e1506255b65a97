from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.queuerig import QueueRig
from topics.core.commands import Ack, Append, Claim, Claimer, Complete
from topics.core.dedupe import IdempotencyKey
from topics.core.delay import NO_DELAY, Delay, check_delay, delay_of
from topics.core.records import Records
from topics.core.waits import WAIT_MS_LIMIT, waits_of
from topics.errors import InvalidRequest, NotAQueue
from topics.limits import U64_MAX
from topics.model import ClaimedJobs, TopicConfig, TopicType

NOW_MS = 1_700_000_000_000
MOMENTS = st.one_of(st.just(0), st.integers(NOW_MS - 50, NOW_MS + 50))
DELAYS = st.integers(0, 50)


def append(count: int = 1, **said: Any) -> Append:
    return Append("q", Records.of([{"data": place} for place in range(count)]), **said)


def test_a_write_that_says_nothing_is_not_delayed() -> None:
    for said in ({}, {"not_before_ms": NOW_MS}, {"not_before_ms": 5}, {"waits": b""}):
        assert delay_of(append(**said), NOW_MS) is NO_DELAY
    assert not any(NO_DELAY)


@given(DELAYS, MOMENTS, st.lists(st.one_of(MOMENTS, DELAYS.map(lambda delay: -delay)), min_size=1, max_size=5))
def test_the_latest_that_is_named_counts(delay_ms: int, not_before_ms: int, waits: list[int]) -> None:
    found = delay_of(append(len(waits), delay_ms=delay_ms, not_before_ms=not_before_ms, waits=waits_of(waits)), NOW_MS)
    for_all = max(NOW_MS + delay_ms, not_before_ms)
    named = [max(for_all, NOW_MS - wait if wait < 0 else wait) for wait in waits]
    times = [time if time > NOW_MS else 0 for time in named]
    if any(waits):
        assert found == Delay(0, waits_of(times))
    else:
        assert found == Delay(for_all if for_all > NOW_MS else 0)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"delay_ms": -1}, "delay_ms"),
        ({"not_before_ms": -1}, "not_before"),
        ({"not_before_ms": U64_MAX + 1}, "not_before"),
        ({"delay_ms": U64_MAX}, "not_before"),
        ({"not_before_ms": WAIT_MS_LIMIT + 1, "waits": waits_of([-5])}, "not_before"),
    ],
)
def test_what_is_no_time_is_refused(said: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        delay_of(append(**said), NOW_MS)
    assert caught.value.detail["field"] == field


def test_only_jobs_are_delayed() -> None:
    check_delay("q", TopicConfig(type=TopicType.QUEUE), True)
    check_delay("log", TopicConfig(), False)
    with pytest.raises(NotAQueue, match='"log" is a log'):
        check_delay("log", TopicConfig(), True)


# ---- in a queue


def claimed(rig: QueueRig, topic: str = "q") -> list[int]:
    reply = rig.step(Claim(topic, (Claimer("w", 9),))).reply
    assert isinstance(reply, tuple) and isinstance(reply[0], ClaimedJobs)
    return reply[0].seqs


def waiting() -> QueueRig:
    """Four jobs of one write, of which one does not wait."""
    rig = QueueRig()
    rig.configure("q", type="queue")
    rig.step(append(4, delay_ms=2, waits=waits_of([-10, 0, rig.now_ms + 5, rig.now_ms - 1])))
    return rig


def test_each_job_of_a_write_comes_at_its_own_time() -> None:
    rig = waiting()
    assert rig.queue_state().delayed == 4
    seen = []
    for _ in range(12):
        seen.append(claimed(rig))
        rig.now_ms += 1
    assert [(after_ms, seqs) for after_ms, seqs in enumerate(seen) if seqs] == [(2, [2, 4]), (5, [3]), (10, [1])]


def test_a_replay_waits_as_long() -> None:
    rig = waiting()
    again = rig.replayed()
    assert again.rows() == rig.rows() != []
    rig.now_ms = again.now_ms = rig.now_ms + 5
    assert claimed(again) == claimed(rig) == [2, 3, 4]


def test_results_of_a_job_may_wait_each_its_own_time() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue")
    rig.configure("next", type="queue")
    rig.configure("log")
    rig.step(append())
    assert claimed(rig) == [1]
    results = [Append("next", Records.of([{"data": 1}, {"data": 2}]), waits=waits_of([-7, 0]))]
    with pytest.raises(NotAQueue):
        rig.step(Complete("q", "w", [1], [Append("log", Records.of([{"data": 1}]), waits=waits_of([-7]))]))
    rig.step(Complete("q", "w", [1], results))
    again = rig.replayed()
    for each in (rig, again):
        assert claimed(each, "next") == [2]
        each.now_ms += 6
        assert claimed(each, "next") == []
        each.now_ms += 1
        assert claimed(each, "next") == [1]
    assert rig.step(Ack("next", "w", [1, 2])).reply.acked == 2  # type: ignore[attr-defined]


def test_a_repeated_write_does_not_wait_again() -> None:
    rig = QueueRig()
    rig.configure("q", type="queue")
    command = append(waits=waits_of([-3]), dedupe_key=IdempotencyKey("once"))
    rig.step(command)
    rig.now_ms += 3
    rig.step(command)
    assert claimed(rig) == [1]
