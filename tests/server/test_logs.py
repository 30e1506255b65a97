from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from rich.text import Text

from tests.server.loggers import loggers_as_before
from topics.server.logs import configure, fields, redact
from topics.settings import Settings

log = logging.getLogger("topics.server.somewhere")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers_as_before():
        yield


class Stream(io.StringIO):
    """A file, or what a person sees."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def written(stream: Stream) -> str:
    return Text.from_ansi(stream.getvalue()).plain


def test_a_line_is_one_json_object_with_its_fields() -> None:
    out = Stream()
    configure(Settings(), out)
    log.info("ready", extra=fields(topics=3, note="line\nbreak"))
    log.warning("plain")
    first, second = written(out).splitlines()
    line = json.loads(first)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "topics.server.somewhere",
        "event": "ready",
        "topics": 3,
        "note": "line\nbreak",
    }
    assert json.loads(second)["level"] == "warning"


def test_what_the_event_loop_says_is_a_line_too() -> None:
    out = Stream()
    configure(Settings(), out)
    logging.getLogger("asyncio").error("Exception in callback")
    assert json.loads(written(out))["logger"] == "asyncio"


def test_a_terminal_gets_lines_for_people_unless_json_is_asked_for() -> None:
    people, machine = Stream(terminal=True), Stream(terminal=True)
    configure(Settings(), people)
    log.info("ready", extra=fields(topics=3))
    configure(Settings(log_format="json"), machine)
    log.info("ready", extra=fields(topics=3))
    assert "info    ready  topics=3" in written(people)
    assert written(people).count("ready") == 1, "the second line went to the second stream only"
    assert json.loads(written(machine))["topics"] == 3


def test_pretty_lines_can_be_asked_for() -> None:
    out = Stream()
    configure(Settings(log_format="pretty"), out)
    log.info("ready", extra=fields(text="[red]not markup[/red]", long="x" * 80))
    assert "text=[red]not markup[/red]" in written(out)
    assert "x" * 80 in written(out), "a long line is not broken"


def test_what_is_less_important_is_left_out() -> None:
    out = Stream()
    configure(Settings(log_level="warning"), out)
    log.info("quiet")
    log.error("loud")
    assert [json.loads(line)["event"] for line in written(out).splitlines()] == ["loud"]


def test_a_traceback_is_part_of_its_line() -> None:
    out = Stream()
    configure(Settings(), out)
    try:
        raise RuntimeError("Authorization: Bearer hunter2")
    except RuntimeError:
        log.exception("request failed", extra=fields(request_id="r1"))
    (line,) = map(json.loads, written(out).splitlines())
    assert "RuntimeError" in line["traceback"] and line["request_id"] == "r1"
    assert "hunter2" not in written(out)


def test_a_traceback_for_people_stands_below_its_line() -> None:
    out = Stream()
    configure(Settings(log_format="pretty"), out)
    try:
        raise RuntimeError("Authorization: Bearer hunter2")
    except RuntimeError:
        log.exception("request failed", extra=fields(request_id="r1"))
    first, *below = written(out).splitlines()
    assert first.endswith("error   request failed  request_id=r1")
    assert below[0].startswith("Traceback") and "RuntimeError" in below[-1]
    assert "hunter2" not in written(out)


@pytest.mark.parametrize("format", ["json", "pretty"])
def test_credentials_are_struck_out_wherever_they_stand(format: str) -> None:
    out = Stream()
    configure(Settings(log_format=format), out)
    url = "/v0/watch/w1?token=hunter2&x=1"
    log.info('Bearer "hunter2,\\hunter2', extra=fields(url=url, headers=[{"a": "bearer  hunter2"}]))
    assert "hunter2" not in written(out)
    assert written(out).count("***") == 3
    assert "x=1" in written(out)


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError("nobody reads")


@pytest.mark.parametrize("format", ["json", "pretty"])
def test_a_line_that_nobody_reads_stops_nobody(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Broken()
    monkeypatch.setattr("sys.stderr", broken)
    configure(Settings(log_format=format), broken)
    log.info("ready")


@pytest.mark.parametrize("text", ["the bearer of news is here", "tokens=3", "a token was taken"])
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text.replace("bearer of", "bearer ***")
