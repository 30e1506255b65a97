from __future__ import annotations

import pytest

from topics.engine.ticket import Ticket
from topics.errors import LogStopped


def test_a_ticket_is_answered_once() -> None:
    ticket = Ticket()
    assert not ticket.done
    with pytest.raises(AssertionError, match="not done"):
        ticket.result()
    ticket.resolve("first")
    ticket.resolve("second")
    ticket.fail(LogStopped("too late"))
    assert ticket.done and ticket.result() == "first" and ticket.error is None


def test_a_failure_is_an_answer() -> None:
    ticket = Ticket()
    ticket.fail(LogStopped("the disk failed"))
    ticket.resolve("too late")
    assert ticket.done
    with pytest.raises(LogStopped, match="the disk failed"):
        ticket.result()


def test_none_is_an_answer() -> None:
    ticket = Ticket()
    ticket.resolve(None)
    assert ticket.done and ticket.result() is None


def test_callbacks_run_once_in_order_and_at_once_when_it_is_done() -> None:
    ticket = Ticket()
    heard: list[str] = []
    ticket.on_done(lambda done: heard.append("first"))
    ticket.on_done(lambda done: heard.append("second"))
    assert heard == []
    ticket.resolve(1)
    ticket.fail(LogStopped("again"))
    assert heard == ["first", "second"]
    ticket.on_done(lambda done: heard.append(str(done.result())))
    assert heard == ["first", "second", "1"]


def test_a_callback_sees_the_ticket_done_and_may_add_another() -> None:
    ticket = Ticket()
    heard: list[bool] = []
    ticket.on_done(lambda done: done.on_done(lambda again: heard.append(again.done)))
    ticket.resolve(1)
    assert heard == [True]
