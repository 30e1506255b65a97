from __future__ import annotations

import json

import pytest

from topics import errors
from topics.client.connection import Answer
from topics.client.refusal import refusal, retry_after_ms


def answer(status: int, body: object, **headers: str) -> Answer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, text)


def every(kind: type[errors.TopicsError]) -> list[type[errors.TopicsError]]:
    """A kind of error and those below it, as far as they travel: what is raised and caught in one process does not."""
    here = [kind] if kind.__module__ == errors.__name__ else []
    return [*here, *(below for each in kind.__subclasses__() for below in every(each))]


@pytest.mark.parametrize("kind", every(errors.TopicsError)[1:], ids=lambda kind: kind.__name__)
def test_every_error_comes_back_as_itself(kind: type[errors.TopicsError]) -> None:
    said = {"error": {"code": kind.code, "message": "why", "detail": {"field": "x", "message": "not a parameter"}}}
    error = refusal(answer(kind.http_status, said, x_request_id="r-7"))
    assert type(error) is kind
    assert (error.message, error.request_id) == ("why", "r-7")
    assert error.detail == {"field": "x", "message": "not a parameter"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidRequest),
        (418, errors.InvalidRequest),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (429, errors.Throttled),
        (500, errors.Internal),
        (503, errors.Unavailable),
    ],
)
def test_a_code_of_a_newer_server_is_the_nearest_class(status: int, kind: type[errors.TopicsError]) -> None:
    said = {"error": {"code": "from_the_future", "message": "why", "detail": {"a": 1}}}
    error = refusal(answer(status, said))
    assert type(error) is kind
    assert error.detail == {"a": 1, "code": "from_the_future"}


@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b"{}", b"\xff\xfe", b'{"error":"no"}'])
def test_an_answer_of_somebody_else_on_the_way(body: bytes) -> None:
    error = refusal(answer(502, body))
    assert type(error) is errors.Unavailable
    assert error.detail == {"status": 502} and "status 502" in error.message


@pytest.mark.parametrize(
    ("detail", "header", "expected"),
    [({"retry_after_ms": 250}, "1", 250), ({}, "2", 2000), ({}, "", 0), ({}, "Wed, 21 Oct", 0), ({}, "²", 0)],
)
def test_how_long_to_wait(detail: dict[str, int], header: str, expected: int) -> None:
    said = answer(503, {"error": {"code": "not_ready", "message": "", "detail": detail}}, retry_after=header)
    assert retry_after_ms(said, refusal(said)) == expected
