from __future__ import annotations

from topics.server.traffic import SAMPLE, Traffic


def test_every_request_counts_and_one_in_so_many_is_timed() -> None:
    route = Traffic().of("GET", "/v0/topics")
    timed = [route.arrived() for _ in range(3 * SAMPLE)]
    assert route.requests == 3 * SAMPLE
    assert timed == [True, *[False] * (SAMPLE - 1)] * 3


def test_a_duration_is_counted_in_microseconds() -> None:
    route = Traffic().of("GET", "/v0/topics")
    route.answered(250_000)
    route.answered(251_000)
    assert route.duration_us.total == 501
    assert route.duration_us.counts[:3] == [0, 1, 1]


def test_a_route_has_its_counters_once() -> None:
    traffic = Traffic()
    assert traffic.of("GET", "/a") is traffic.of("GET", "/a")
    assert traffic.of("PUT", "/a") is not traffic.of("GET", "/a")


def test_errors_are_counted_by_what_they_are() -> None:
    traffic = Traffic()
    for status, code in [(404, "topic_not_found"), (429, "throttled"), (404, "topic_not_found")]:
        traffic.refused(status, code)
    assert traffic.errors == {(404, "topic_not_found"): 2, (429, "throttled"): 1}


def test_requests_that_come_together_are_timed_as_if_they_came_alone() -> None:
    one, many = Traffic().of("GET", "/a"), Traffic().of("GET", "/a")
    for count in (1, 2, 13, 1, 40, 16, 5, 0, 33):
        assert many.arrived_together(count) == sum(one.arrived() for _ in range(count))
        assert many.requests == one.requests
