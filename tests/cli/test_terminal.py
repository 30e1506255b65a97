"""The command line at a real pseudo-terminal: tables, colours, bars, questions, Ctrl-C, width."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.cli.terminal import CTRL_C, CTRL_D, Terminal
from tests.e2e.served import Served

COLOUR = b"\x1b["


@pytest.fixture(params=["dir", "url"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "dir":
        return ["--dir", str(tmp_path / "data")]
    return ["--url", request.getfixturevalue("server").url]


@pytest.fixture
def topics(where: list[str], capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, where)


@pytest.fixture
def filled(topics: Command, topic: str) -> str:
    topics.good("write", topic, '{"sku": "A1"}', "2", "3", "--tag", "order-1")
    return topic


def test_tables_and_colours(where: list[str], filled: str) -> None:
    with Terminal("topic", "ls", filled[:20], *where) as terminal:
        assert terminal.end() == 0
        assert "┃ topic" in terminal.shown and filled[:20] in terminal.shown
        assert COLOUR in terminal.raw
    with Terminal("read", filled, *where) as terminal:
        assert terminal.end() == 0
        assert '  1  order-1  {"sku":"A1"}\n' in terminal.shown and COLOUR in terminal.raw


def test_json_when_asked_and_no_colours_when_not_wanted(where: list[str], filled: str) -> None:
    with Terminal("read", filled, "--json", *where) as terminal:
        assert terminal.end() == 0
        assert [json.loads(line)["$seq"] for line in terminal.shown.splitlines()] == [1, 2, 3]
    with Terminal("topic", "show", filled, *where, NO_COLOR="1") as terminal:
        assert terminal.end() == 0
        assert "┃ config" in terminal.shown
        assert b"\x1b[3" not in terminal.raw, "styles without colours may stay"


@pytest.mark.parametrize("columns", [60, 140])
def test_tables_fit_the_window(where: list[str], filled: str, columns: int) -> None:
    with Terminal("topic", "show", filled, *where, columns=columns) as terminal:
        assert terminal.end() == 0
        assert max(map(len, terminal.shown.splitlines())) <= columns


def test_an_error_is_one_line_however_narrow_the_window(where: list[str], filled: str) -> None:
    with Terminal("read", f"{filled}-not", *where, columns=40) as terminal:
        assert terminal.end() == 3
        (line,) = terminal.shown.splitlines()
        assert line.startswith("topics: topic_not_found: ") and line.endswith("lists those there are")


def test_a_delete_counts_and_asks(where: list[str], topics: Command, filled: str) -> None:
    for answer, code, left in ((b"\n", 1, 3), (b"no\n", 1, 3), (CTRL_D, 1, 3), (b"y\n", 0, 0)):
        with Terminal("delete", filled, "--tag", "order-1", *where) as terminal:
            terminal.wait_for(f"Delete 3 records of {filled} for good? [y/N] ")
            terminal.press(answer)
            assert terminal.end() == code
            assert ("nothing is deleted" in terminal.shown) == (code == 1)
        assert len(topics.good("read", filled)) == left
    with Terminal("delete", filled, "--before", "9", "--yes", *where) as terminal:
        assert terminal.end() == 0
        assert "[y/N]" not in terminal.shown


def test_ctrl_c_at_a_question_is_no(where: list[str], topics: Command, filled: str) -> None:
    with Terminal("topic", "rm", filled, *where) as terminal:
        terminal.wait_for(f"Remove {filled} with 3 records (15 B) for good? [y/N] ")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.shown
    assert len(topics.good("read", filled)) == 3


def test_two_questions_get_two_answers(where: list[str], topics: Command, filled: str) -> None:
    topics.good("write", f"{filled}-b", "1")
    with Terminal("topic", "rm", filled, f"{filled}-b", *where) as terminal:
        terminal.wait_for(f"Remove {filled} with")
        terminal.press(b"y\n")
        terminal.wait_for(f"Remove {filled}-b with")
        terminal.press(b"n\n")
        assert terminal.end() == 1
        assert f"{filled}-b is not removed" in terminal.shown
    assert [each["topic"] for each in topics.good("topic", "ls", filled)] == [f"{filled}-b"]


def test_a_file_gets_a_progress_bar(where: list[str], topic: str, tmp_path: Path) -> None:
    (tmp_path / "[b].jsonl").write_text("".join(f'"{"x" * 1000}"\n' for _ in range(5000)))
    with Terminal("write", topic, "--file", "[b].jsonl", *where, cwd=tmp_path) as terminal:
        assert terminal.end() == 0
        assert "checking [b].jsonl" in terminal.shown
        assert f"writing {topic}" in terminal.shown and "━" in terminal.shown and "MiB" in terminal.shown
        assert f"5,000 records written to {topic}, which is new: seqs 1 to 5000" in terminal.shown


def test_a_few_records_get_none(where: list[str], topic: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("1\n2\n")
    for arguments in (["1"], ["--file", str(tmp_path / "a.jsonl")]):
        with Terminal("write", topic, *arguments, *where) as terminal:
            assert terminal.end() == 0
            assert "written to" in terminal.shown and "━" not in terminal.shown and "writing" not in terminal.shown


def test_typing_records(where: list[str], topics: Command, topic: str) -> None:
    with Terminal("write", topic, *where) as terminal:
        terminal.wait_for("Ctrl-D ends")
        terminal.press(b'{"a": 1}\n{"a": 2}\n')
        terminal.press(CTRL_D)
        assert terminal.end() == 0
        assert f"2 records written to {topic}" in terminal.shown
        assert "writing" not in terminal.shown, "no bar is drawn over what is typed"
    assert [each["data"] for each in topics.good("read", topic)] == [{"a": 1}, {"a": 2}]


def test_ctrl_c_while_typing_records(where: list[str], topics: Command, topic: str) -> None:
    with Terminal("write", topic, *where) as terminal:
        terminal.wait_for("Ctrl-D ends")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert "stopped: 0 records written" in terminal.shown
        assert "Traceback" not in terminal.shown and "Fatal" not in terminal.shown


def test_ctrl_c_in_a_bench_takes_its_topic_away(where: list[str], topics: Command) -> None:
    with Terminal("bench", "--duration", "1h", *where) as terminal:
        terminal.wait_for("records")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.shown
    assert topics.good("topic", "ls", "bench-") == []


def test_following_until_ctrl_c(server: Served, capfd: pytest.CaptureFixture[str], topic: str) -> None:
    remote = Command(capfd, ["--url", server.url])
    remote.good("topic", "create", topic, "--cap-records", "1")
    remote.good("write", topic, "1", "2")
    with Terminal("tail", topic, "-f", "--after", "0", TOPICS_URL=server.url) as terminal:
        terminal.wait_for("gap: 1 lost before they were read: the cap was reached (cap)")
        terminal.wait_for("  2  2\n")
        remote.good("write", topic, '{"news": true}')
        terminal.wait_for('{"news":true}')
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert terminal.shown.count("Ctrl-C") == 1 and "Traceback" not in terminal.shown


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    with Terminal("read", "orders", "--url", "http://127.0.0.1:1", "--key", "hunter2-secret") as terminal:
        assert terminal.end() == 5
        assert "hunter2" not in terminal.shown
