from __future__ import annotations

import pytest

from topics.server.httpoptions import HttpOptions
from topics.server.message import Reply, Request
from topics.server.principal import EVERYBODY
from topics.server.requesthead import RequestHead
from topics.server.track import (
    PLAIN_BYTES_MAX,
    PLAIN_BYTES_MIN,
    PLAIN_END,
    PLAIN_START,
    STARTS_MAX,
    Track,
    around_length,
    no_track,
)

HEAD = b"POST /v0/topics/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nX-Y: z\r\n\r\n"


class Nobody:
    def answer_plain(self, template: bytes, seq: bytes) -> bool:
        raise AssertionError

    def leave_track(self, head: RequestHead, body: bytes, received_ns: int) -> tuple[Request, Reply]:
        raise AssertionError


def request_head() -> RequestHead:
    return RequestHead("POST", b"/v0/topics/a", "1.1", {"host": "here", "content-length": "9"}, True, HttpOptions())


def track(due: list[Track] | None = None) -> Track:
    parts = around_length(HEAD % 9)
    assert parts is not None
    return Track(parts, request_head(), "a", EVERYBODY, [].append if due is None else due.append)


def request(body_bytes: int) -> bytes:
    return HEAD % body_bytes + PLAIN_START + b"1" * (body_bytes - PLAIN_BYTES_MIN + 1) + PLAIN_END


def test_a_plain_write_of_any_length_begins_as_its_length_says() -> None:
    starts = track().starts
    for body_bytes in range(PLAIN_BYTES_MIN, PLAIN_BYTES_MAX + 1):
        sent = request(body_bytes)
        assert sent.startswith(starts[len(sent)])
        assert len(starts[len(sent)]) == len(HEAD % body_bytes) + len(PLAIN_START)
    assert len(starts) <= STARTS_MAX


def test_a_length_that_is_not_the_requests_does_not_fit() -> None:
    starts = track().starts
    for body_bytes in range(PLAIN_BYTES_MIN, PLAIN_BYTES_MAX + 1):
        for sent in (request(body_bytes) + b" ", request(body_bytes)[:-1]):
            assert not sent.startswith(starts[len(sent)])


@pytest.mark.parametrize("size", [0, 1, 50, len(HEAD % 9), 10**9, len(request(PLAIN_BYTES_MAX)) + 1])
def test_nothing_begins_like_a_length_that_no_plain_write_has(size: int) -> None:
    assert track().starts[size] == b"\r"


def test_what_was_taken_leaves_once_and_in_order() -> None:
    due: list[Track] = []
    lane = track(due)
    ann, bob = Nobody(), Nobody()
    lane.take(ann, HEAD % 27 + PLAIN_START + b'"ab"' + PLAIN_END)
    lane.take(bob, HEAD % 24 + PLAIN_START + b"1" + PLAIN_END)
    assert due == [lane]
    assert lane.leave() == ([ann, bob], [b'"ab"', b"1"])
    assert lane.leave() == ([], [])
    lane.take(bob, HEAD % 24 + PLAIN_START + b"1" + PLAIN_END)
    assert due == [lane, lane]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"CONTENT-LENGTH: 9\r\n",
        b"Content-Length:9\r\n",
        b"Content-Length: 09\r\n",
        b"Content-Length: 0\r\n",
        b"Content-Length: 9 \r\n",
        b"Content-Length: 9\r\nX: y\r\nContent-Length: 9\r\n",
    ],
)
def test_only_a_length_that_is_there_once_and_as_most_write_it_is_found(line: bytes) -> None:
    assert around_length(b"POST / HTTP/1.1\r\n" + line + b"\r\n") is None


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length"])
def test_the_bytes_around_the_length_are_all_but_its_digits(name: bytes) -> None:
    before, after = b"POST / HTTP/1.1\r\n" + name + b": ", b"\r\nHost: x\r\n\r\n"
    assert around_length(before + b"1234" + after) == (before, after)


def test_without_a_lane_there_is_no_track() -> None:
    assert no_track(HEAD % 9, request_head()) is None  # type: ignore[func-returns-value]
