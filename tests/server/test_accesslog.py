from __future__ import annotations

import logging

import pytest

from topics.errors import InvalidRequest
from topics.server.accesslog import with_access_log, with_refusals_logged
from topics.server.message import Reply, Request, Response
from topics.testing import SimClock


def test_each_answer_is_one_line_without_the_query(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimClock()
    held: list[Reply] = []
    answers: list[Response] = []
    dispatch = with_access_log(lambda request, reply: held.append(reply), clock)
    request = Request("GET", "/v0/topics", "token=hunter2", {}, b"12", clock.ticks_ns(), "r-1")
    with caplog.at_level(logging.INFO, "topics"):
        dispatch(request, answers.append)
        assert not caplog.records, "nothing is said before the answer"
        clock.advance(3)
        held[0](Response(404, b"none"))
    assert answers == [Response(404, b"none")]
    (record,) = caplog.records
    assert record.__dict__["fields"] == {
        "request_id": "r-1",
        "method": "GET",
        "path": "/v0/topics",
        "status": 404,
        "key": "",
        "ms": 3.0,
        "bytes_in": 2,
        "bytes_out": 4,
    }


def test_a_refusal_is_a_line_as_well(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimClock()
    refuse = with_refusals_logged(lambda request, error: Response(error.http_status, b"no"), clock)
    request = Request("", "", "", {}, b"", clock.ticks_ns(), "r-1")
    with caplog.at_level(logging.INFO, "topics"):
        assert refuse(request, InvalidRequest("no HTTP")) == Response(400, b"no")
    (record,) = caplog.records
    said = record.__dict__["fields"]
    assert (said["request_id"], said["status"], said["path"], said["bytes_out"]) == ("r-1", 400, "", 2)
