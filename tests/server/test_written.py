from __future__ import annotations

import json
from typing import Any

import pytest

from topics.core.records import RecordLimits
from topics.engine.ticket import Ticket
from topics.model import Written
from topics.server.context import Context
from topics.server.written import Template, Timing, written_response
from topics.settings import Settings
from topics.testing import SimClock


def context() -> Context:
    return Context(Settings(), RecordLimits(), SimClock(), 0)


def done(first_seq: int, last_seq: int, **others: Any) -> Ticket:
    ticket = Ticket(written_ns=3_000_000)
    ticket.resolve(
        Written(topic="orders", partition=0, first_seq=first_seq, last_seq=last_seq, head_seq=last_seq, **others)
    )
    return ticket


@pytest.mark.parametrize("seq", [1, 9, 10, 99_999, 100_000, 2**53])
def test_the_template_makes_what_one_write_is_answered_with(seq: int) -> None:
    made, timing = context(), Timing(1_000_000, 2_000_000)
    body = written_response(made, done(seq, seq), timing, with_seqs=True).body
    text = b"%d" % seq
    # A template is made of all that were stored together, and fits each of them.
    template = Template(made, done(seq - 1, seq + 20), timing).of(len(text))
    head, _, sent = (template % (b"id", 7, text, text, text, text)).partition(b"\r\n\r\n")
    assert sent == body
    assert b"Content-Length: %d" % len(body) in head.split(b"\r\n")
    assert b"X-Request-Id: id-7" in head.split(b"\r\n")
    assert made.heading.date_line.strip() in head.split(b"\r\n")


def test_an_answer_lists_its_seqs_unless_told_not_to() -> None:
    made, timing = context(), Timing(0, 0)
    assert json.loads(written_response(made, done(4, 6), timing, with_seqs=True).body)["seqs"] == [4, 5, 6]
    assert "seqs" not in json.loads(written_response(made, done(4, 6), timing, with_seqs=False).body)


def test_a_write_that_made_the_topic_says_so() -> None:
    response = written_response(context(), done(1, 1, created=True), Timing(0, 0), with_seqs=True)
    assert (response.status, json.loads(response.body)["created"]) == (201, True)


def test_times_are_told_in_milliseconds() -> None:
    made = context()
    assert isinstance(made.clock, SimClock)
    made.clock.advance(10)
    timing = Timing(made.clock.ticks_ns() - 10_000_000, 1_500_000, 2.5)
    told = json.loads(written_response(made, done(1, 1), timing, with_seqs=True).body)["performance"]
    assert told == {"server_total_ms": 10.0, "wal_append_ms": 1.5, "fsync_ms": 0.0, "throttle_wait_ms": 2.5}
