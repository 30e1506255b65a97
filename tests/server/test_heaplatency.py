from __future__ import annotations

from topics.server.heaplatency import SAMPLE, TOPICS_MAX, HeapLatency
from topics.testing import SimClock


def test_one_call_in_so_many_is_timed_in_milliseconds() -> None:
    clock = SimClock()
    clock.advance(1)
    latency = HeapLatency(clock)
    for _ in range(2 * SAMPLE):
        began_ns = latency.begin("jobs")
        clock.advance(7)
        latency.enqueued("jobs", began_ns)
    ((topic, found),) = latency.enqueue_ms()
    assert (topic, sum(found.counts), found.total) == ("jobs", 2, 14)
    assert found.counts[found.bounds.index(10)] == 2
    assert list(latency.pop_ms()) == []


def test_a_pop_that_finds_nothing_is_not_timed() -> None:
    clock = SimClock()
    clock.advance(1)
    latency = HeapLatency(clock)
    asked: list[int] = []

    def ready(count: int) -> int:
        asked.append(count)
        return count

    latency.popped("jobs", latency.begin_pop("jobs", lambda: ready(1)))
    began = [latency.begin_pop("jobs", lambda: ready(0)) for _ in range(SAMPLE)]
    assert began == [0] * SAMPLE and asked == [1, 0], "only those that are timed look"
    latency.popped("jobs", began[0])
    assert sum(sum(found.counts) for _, found in latency.pop_ms()) == 1


def test_heaps_used_in_turn_are_all_timed() -> None:
    clock = SimClock()
    clock.advance(1)
    latency = HeapLatency(clock)
    for _ in range(3 * SAMPLE):
        for topic in ("a", "b"):
            latency.enqueued(topic, latency.begin(topic))
            latency.popped(topic, latency.begin_pop(topic, lambda: 1))
    for found in (latency.enqueue_ms(), latency.pop_ms()):
        assert {topic: sum(histogram.counts) for topic, histogram in found} == {"a": 3, "b": 3}


def test_calls_for_heaps_that_do_not_exist_take_no_place() -> None:
    clock = SimClock()
    clock.advance(1)
    latency = HeapLatency(clock)
    for number in range(TOPICS_MAX + 1):
        latency.begin(f"nothing{number}")
    latency.enqueued("jobs", latency.begin("jobs"))
    assert [topic for topic, _ in latency.enqueue_ms()] == ["jobs"]


def test_topics_are_bounded() -> None:
    latency = HeapLatency(SimClock())
    for number in range(TOPICS_MAX + 5):
        latency.enqueued(f"t{number}", 1)
    assert len(list(latency.enqueue_ms())) == TOPICS_MAX
