from __future__ import annotations

from topics.server.heaplatency import SAMPLE, TOPICS_MAX, HeapLatency
from topics.testing import SimClock


def test_one_call_in_so_many_is_timed_in_milliseconds() -> None:
    clock = SimClock()
    clock.advance(1)
    latency = HeapLatency(clock)
    for _ in range(2 * SAMPLE):
        began_ns = latency.begin()
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

    began = [latency.begin_pop(lambda: ready(0)) for _ in range(SAMPLE)]
    assert began == [0] * SAMPLE and asked == [0], "only those that are timed look"
    latency.popped("jobs", began[0])
    assert list(latency.pop_ms()) == []
    assert latency.begin_pop(lambda: ready(3))


def test_topics_are_bounded() -> None:
    latency = HeapLatency(SimClock())
    for number in range(TOPICS_MAX + 5):
        latency.enqueued(f"t{number}", 1)
    assert len(list(latency.enqueue_ms())) == TOPICS_MAX
