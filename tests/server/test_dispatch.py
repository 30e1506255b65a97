from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from topics.core.records import DEFAULT_LIMITS
from topics.errors import Damaged, InvalidRequest, TopicFull
from topics.server.context import Context
from topics.server.dispatch import Dispatcher
from topics.server.message import Reply, Request, Response
from topics.server.principal import NO_SCOPE, Scope
from topics.server.route import Operation, Route
from topics.server.table import Table
from topics.settings import load
from topics.testing import SimClock

JSON_BODY: dict[str, Any] = {"content": {"application/json": {"schema": {}}}}


class Desk:
    """A dispatcher over routes of its own, and the answers it gave."""

    def __init__(self, **variables: str) -> None:
        self.clock = SimClock()
        settings = load({f"TOPICS_{name.upper()}": value for name, value in variables.items()})
        self.context = Context(settings, DEFAULT_LIMITS, self.clock, 0)
        self.parked: list[Reply] = []
        with_body = Operation("", "", "", request_body=JSON_BODY)
        plain = Operation("", "", "")
        routes = [
            Route("GET", "/open", NO_SCOPE, self._ok, plain),
            Route("GET", "/probe", NO_SCOPE, self._ok, plain, probe=True),
            Route("POST", "/write/{topic}", Scope.WRITE, self._ok, with_body, name_param="topic"),
            Route("GET", "/park", Scope.READ, self._park, plain),
            Route("GET", "/stream", Scope.READ, self._ok, plain, streams=True),
            Route("GET", "/park-stream", Scope.READ, self._park, plain, streams=True),
            Route("GET", "/refuse", NO_SCOPE, self._refuse, plain),
            Route("GET", "/break", NO_SCOPE, self._break, plain),
            Route("GET", "/damaged", NO_SCOPE, self._damaged, plain),
            Route("GET", "/not-ready", NO_SCOPE, lambda context, request, reply: context.ready() and None, plain),
        ]
        context = self.context
        self._dispatch = Dispatcher(context, Table(routes), context.authenticator, context.quota)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Response:
        answers = self.begin(method, path, body, **headers)
        assert len(answers) == 1
        return answers[0]

    def begin(self, method: str, path: str, body: bytes = b"", **headers: str) -> list[Response]:
        answers: list[Response] = []
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self._dispatch(Request(method, path, "", sent, body, self.clock.ticks_ns(), "req-1"), answers.append)
        return answers

    def _park(self, context: Context, request: Request, reply: Reply) -> None:
        self.parked.append(reply)

    @staticmethod
    def _ok(context: Context, request: Request, reply: Reply) -> None:
        reply(Response(200, json.dumps([request.principal.key_id, dict(request.params)]).encode()))

    @staticmethod
    def _refuse(context: Context, request: Request, reply: Reply) -> None:
        raise InvalidRequest("no such thing", field="a.b", expected="a thing")

    @staticmethod
    def _break(context: Context, request: Request, reply: Reply) -> None:
        raise RuntimeError("the inside of the server")

    @staticmethod
    def _damaged(context: Context, request: Request, reply: Reply) -> None:
        raise Damaged("segment 3 is broken", file="3")


def error(response: Response) -> tuple[int, str]:
    return response.status, json.loads(response.body)["error"]["code"]


def test_an_answer_passes() -> None:
    response = Desk().ask("POST", "/write/t", b"{}", content_type="application/json")
    assert (response.status, json.loads(response.body)) == (200, ["", {"topic": "t"}])


def test_a_refusal_has_the_envelope() -> None:
    response = Desk().ask("GET", "/refuse")
    assert response.status == 400
    body = json.loads(response.body)
    assert body["error"] == {
        "code": "invalid_request",
        "message": "no such thing",
        "detail": {"field": "a.b", "expected": "a thing"},
    }
    assert body["performance"] == {"server_total_ms": 0.0}


def test_a_bug_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        response = Desk().ask("GET", "/break")
    assert error(response) == (500, "internal")
    assert b"inside" not in response.body and b"RuntimeError" not in response.body
    assert b"req-1" in response.body
    (line,) = caplog.records
    assert line.exc_info is not None and "the inside of the server" in str(line.exc_info[1])


def test_damage_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        response = Desk().ask("GET", "/damaged")
    assert error(response) == (500, "damaged")
    assert "segment 3 is broken" in caplog.text


def test_nowhere_and_not_so() -> None:
    desk = Desk()
    assert error(desk.ask("GET", "/nowhere")) == (404, "not_found")
    refused = desk.ask("DELETE", "/open")
    assert error(refused) == (405, "method_not_allowed")
    assert refused.headers == ((b"Allow", b"GET, HEAD, OPTIONS"),)


def test_options_name_the_methods() -> None:
    response = Desk(api_keys="secret").ask("OPTIONS", "/write/t")
    assert (response.status, response.body) == (204, b"")
    assert response.headers == ((b"Allow", b"OPTIONS, POST"),)


@pytest.mark.parametrize(
    "given",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'Application/JSON; charset="utf-8"',
        "application/json; profile=x",
    ],
)
def test_a_body_that_is_json(given: str) -> None:
    assert Desk().ask("POST", "/write/t", b"{}", content_type=given).status == 200


@pytest.mark.parametrize("given", ["", "text/plain", "application/json; charset=latin-1", "application/jsonx", ";"])
def test_a_body_that_is_not(given: str) -> None:
    response = Desk().ask("POST", "/write/t", b"{}", content_type=given)
    assert error(response) == (415, "unsupported_media_type")
    assert b"application/json" in response.body


def test_no_body_needs_no_type() -> None:
    assert Desk().ask("POST", "/write/t").status == 200


def test_keys() -> None:
    desk = Desk(api_keys="all,reader:read,mine:write:a.")
    assert desk.ask("GET", "/open").status == 200
    refused = desk.ask("POST", "/write/a.1")
    assert error(refused) == (401, "unauthorized")
    assert refused.headers == ((b"WWW-Authenticate", b"Bearer"),)
    assert error(desk.ask("POST", "/write/a.1", authorization="Bearer nobody")) == (401, "unauthorized")
    assert error(desk.ask("POST", "/write/a.1", authorization="Bearer reader")) == (403, "forbidden")
    assert error(desk.ask("POST", "/write/b.1", authorization="Bearer mine")) == (403, "forbidden")
    assert desk.ask("POST", "/write/a.1", authorization="Bearer mine").status == 200


def test_the_key_comes_before_the_body() -> None:
    desk = Desk(api_keys="all")
    assert error(desk.ask("POST", "/write/t", b"{}", content_type="text/plain")) == (401, "unauthorized")


def test_probes_take_a_key_when_told_to() -> None:
    assert Desk(api_keys="all").ask("GET", "/probe").status == 200
    strict = Desk(api_keys="all", probe_auth="true")
    assert error(strict.ask("GET", "/probe")) == (401, "unauthorized")
    assert strict.ask("GET", "/probe", authorization="Bearer all").status == 200
    assert strict.ask("GET", "/open").status == 200


def test_a_key_has_so_many_requests_under_way() -> None:
    desk = Desk(api_keys="all,other", max_inflight_per_key="2")
    first = desk.begin("GET", "/park", authorization="Bearer all")
    desk.begin("GET", "/park", authorization="Bearer all")
    refused = desk.ask("GET", "/park", authorization="Bearer all")
    assert error(refused) == (429, "throttled")
    assert refused.headers == ((b"Retry-After", b"1"),)
    assert desk.begin("GET", "/park", authorization="Bearer other") == []
    desk.parked[0](Response(200))
    assert [answer.status for answer in first] == [200]
    assert desk.begin("GET", "/park", authorization="Bearer all") == []


def test_refused_requests_give_their_slot_back() -> None:
    desk = Desk(api_keys="all", max_inflight_per_key="1")
    for _ in range(3):
        refused = desk.ask("POST", "/write/t", b"{}", content_type="text/plain", authorization="Bearer all")
        assert error(refused) == (415, "unsupported_media_type")


def test_what_waits_for_recovery_says_when_to_come_back() -> None:
    desk = Desk()
    desk.context.recovery_progress = 0.25
    response = desk.ask("GET", "/not-ready")
    assert error(response) == (503, "not_ready")
    assert json.loads(response.body)["error"]["detail"] == {"replay_progress": 0.25}
    assert response.headers == ((b"Retry-After", b"1"),)
    desk.context.draining = True
    assert error(desk.ask("GET", "/not-ready")) == (503, "shutting_down")


def test_traffic_is_counted_by_route() -> None:
    desk = Desk()
    desk.ask("POST", "/write/a")
    desk.ask("POST", "/write/b")
    desk.ask("GET", "/refuse")
    assert desk.context.traffic.of("POST", "/write/{topic}").requests == 2
    assert desk.context.traffic.errors == {(400, "invalid_request"): 1}


def test_an_error_without_detail_has_none() -> None:
    desk = Desk()

    def full(context: Context, request: Request, reply: Reply) -> None:
        raise TopicFull("full")

    table = Table([Route("GET", "/full", NO_SCOPE, full, Operation("", "", ""))])
    answers: list[Response] = []
    context = desk.context
    dispatch = Dispatcher(context, table, context.authenticator, context.quota)
    dispatch(Request("GET", "/full", "", {}, b"", 0), answers.append)
    assert json.loads(answers[0].body)["error"] == {"code": "topic_full", "message": "full"}


def test_an_answer_that_is_no_stream_gives_the_place_of_a_stream_back() -> None:
    desk = Desk(max_sse_connections="1")
    for _ in range(2):
        assert desk.ask("GET", "/stream").status == 200
        assert desk.context.quota.stream_count == 0
    (parked,) = (desk.begin("GET", "/park-stream"), desk.parked.pop())[1:]
    assert error(desk.ask("GET", "/stream")) == (429, "throttled")
    parked(Response(200))
    assert desk.ask("GET", "/stream").status == 200
