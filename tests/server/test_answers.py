from __future__ import annotations

import asyncio
import json
import logging

import pytest

from tests.client.rig import on_loop, settle
from topics.core.records import DEFAULT_LIMITS
from topics.engine.ticket import Ticket
from topics.errors import Internal, InvalidRequest, LogStopped, NotReady, Throttled, TopicsError, Unauthorized
from topics.server.answers import failure, keep, later, success, when_done
from topics.server.context import Context
from topics.server.message import Request, Response
from topics.settings import Settings
from topics.testing import SimClock


class Desk:
    def __init__(self) -> None:
        self.clock = SimClock()
        self.context = Context(Settings(), DEFAULT_LIMITS, self.clock, 0)
        self.request = Request("GET", "/x", "", {}, b"", self.clock.ticks_ns(), "req-1")
        self.answers: list[Response] = []

    def error_code(self) -> str:
        (answer,) = self.answers
        code = json.loads(answer.body)["error"]["code"]
        assert isinstance(code, str)
        return code


def test_success_says_what_was_measured() -> None:
    desk = Desk()
    desk.clock.advance(3)
    response = success(desk.context, desk.request, {"a": 1}, 201, fsync_ms=0.12345)
    assert response.status == 201
    assert json.loads(response.body) == {"a": 1, "performance": {"server_total_ms": 3.0, "fsync_ms": 0.123}}


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (Throttled("x"), b"1"),
        (Throttled("x", retry_after_ms=1), b"1"),
        (Throttled("x", retry_after_ms=1001), b"2"),
        (NotReady("x", retry_after_ms=0), b"1"),
        (LogStopped("x"), b"1"),
    ],
)
def test_when_to_come_back_in_whole_seconds(error: TopicsError, seconds: bytes) -> None:
    desk = Desk()
    assert failure(desk.context, desk.request, error).headers == ((b"Retry-After", seconds),)


def test_headers_that_other_errors_have() -> None:
    desk = Desk()
    assert failure(desk.context, desk.request, Unauthorized("x")).headers == ((b"WWW-Authenticate", b"Bearer"),)
    assert failure(desk.context, desk.request, InvalidRequest("x")).headers == ()


def test_a_ticket_is_answered_when_it_is_done() -> None:
    desk = Desk()
    ticket = Ticket()
    when_done(
        desk.context, desk.request, desk.answers.append, ticket, lambda done: Response(200, str(done.result()).encode())
    )
    assert desk.answers == []
    ticket.resolve("fine")
    assert desk.answers == [Response(200, b"fine")]


def test_a_ticket_that_fails_is_answered_with_its_error() -> None:
    desk = Desk()
    ticket = Ticket()
    when_done(desk.context, desk.request, desk.answers.append, ticket, lambda done: Response(200))
    ticket.fail(LogStopped("the disk is gone"))
    assert desk.error_code() == "log_stopped"


def test_a_bug_in_an_answer_does_not_stop_who_resolves_tickets(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    ticket = Ticket()

    def make(done: Ticket) -> Response:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        when_done(desk.context, desk.request, desk.answers.append, ticket, make)
        ticket.resolve("fine")
    assert desk.error_code() == "internal"
    assert "ZeroDivisionError" in caplog.text


@on_loop
async def test_an_answer_that_takes_a_while() -> None:
    desk = Desk()
    gate = asyncio.Event()

    async def work() -> Response:
        await gate.wait()
        return Response(200)

    later(desk.context, desk.request, desk.answers.append, work())
    await settle()
    assert desk.answers == [] and len(desk.context.tasks) == 1
    gate.set()
    await settle()
    assert desk.answers == [Response(200)] and not desk.context.tasks


@pytest.mark.parametrize(("error", "code"), [(InvalidRequest("x"), "invalid_request"), (RuntimeError("x"), "internal")])
@on_loop
async def test_an_answer_that_fails(error: Exception, code: str) -> None:
    desk = Desk()

    async def work() -> Response:
        raise error

    later(desk.context, desk.request, desk.answers.append, work())
    await settle()
    assert desk.error_code() == code


@on_loop
async def test_an_answer_that_is_given_up_is_still_one() -> None:
    desk = Desk()

    async def work() -> Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    later(desk.context, desk.request, desk.answers.append, work())
    await settle()
    for task in desk.context.tasks:
        task.cancel()
    await settle()
    assert desk.error_code() == Internal.code


@on_loop
async def test_a_chore_that_fails_is_logged_and_one_that_is_given_up_is_not(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()

    async def work() -> None:
        raise ZeroDivisionError("of a chore")

    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with caplog.at_level(logging.ERROR):
        keep(desk.context, work())
        keep(desk.context, wait())
        await settle()
        for chore in list(desk.context.chores):
            chore.cancel()
        await settle()
    (line,) = caplog.records
    assert line.message == "a chore failed" and line.exc_info is not None and "of a chore" in str(line.exc_info[1])
    assert not desk.context.chores
