"""The SQL console: statements run and explained, results copied, mistakes pointed at, words completed."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.served import ROOT, Served
from tests.web.calls import ask, write
from tests.web.rig import as_phone, axe, fits, go, shot
from topics.sql.systemcolumns import NAMES

EDITOR = "Statements, separated by semicolons"


@pytest.fixture
def console(page: Page, server: Served) -> Iterator[Page]:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    go(page, "/sql")
    yield page


def run(page: Page, text: str) -> None:
    page.get_by_label(EDITOR).fill(text)
    page.get_by_role("button", name="Run").click()


def grid(page: Page, name: str = "Result") -> Locator:
    return page.get_by_role("grid", name=name)


def test_results_have_types_and_can_be_copied_and_kept(console: Page, server: Served, tmp_path: Path) -> None:
    expect(console.get_by_text("topics sql 'SHOW TOPICS'")).to_be_visible()
    run(console, """SELECT 1 AS n, 'a, "quoted" <b>b</b>' AS text, NULL AS nothing, {'k': [1, 2]} AS parts""")
    rows = grid(console).get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("n INTEGER")
    assert rows.nth(1).get_by_role("gridcell").all_text_contents()[:3] == ["1", 'a, "quoted" <b>b</b>', "NULL"]
    rows.nth(1).get_by_role("button").click()
    expect(console.get_by_role("dialog")).to_contain_text('"k"')
    console.keyboard.press("Escape")
    console.get_by_role("button", name="Copy Result as JSON").click()
    expect(console.get_by_text("Copied.")).to_be_visible()
    (row,) = json.loads(console.evaluate("navigator.clipboard.readText()"))
    assert (row["n"], row["text"], row["nothing"]) == (1, 'a, "quoted" <b>b</b>', None)
    with console.expect_download() as begun:
        console.get_by_role("button", name="Download CSV").click()
    assert begun.value.suggested_filename == "result.csv"
    begun.value.save_as(tmp_path / "kept.csv")
    lines = list(csv.reader(io.StringIO((tmp_path / "kept.csv").read_text())))
    assert lines[0] == ["n", "text", "nothing", "parts"] and lines[1][:3] == ["1", 'a, "quoted" <b>b</b>', ""]
    expect(console.get_by_text("in the server")).to_be_visible()
    shot(console, "sql")
    axe(console)
    as_phone(console)
    fits(console)


def test_several_statements_with_parameters(console: Page, server: Served) -> None:
    console.get_by_label("Parameters").fill('[41, "x"]')
    run(console, "INSERT INTO TOPIC web_sql VALUES (?);\nSELECT data, $2 AS p FROM web_sql")
    expect(console.get_by_role("alert")).to_be_visible()
    assert ask(server, "GET", "/v0/topics?prefix=web_sql")["topics"] == [], "a mistake in one runs none"
    console.get_by_label("Parameters").fill("[41]")
    run(console, "INSERT INTO TOPIC web_sql VALUES (?); SELECT data FROM web_sql")
    expect(console.get_by_role("heading", name="Result 1")).to_be_visible()
    expect(grid(console, "Result 2").get_by_role("gridcell")).to_have_text(["41"])
    assert [each["data"] for each in ask(server, "POST", "/v0/topics/web_sql/diff", {})["records"]] == [41]
    console.get_by_label("Parameters").fill("41")
    console.get_by_role("button", name="Run").click()
    expect(console.get_by_text("Parameters are a JSON array")).to_be_visible()


def test_a_mistake_is_pointed_at(console: Page) -> None:
    run(console, "SHOW TOPICS;\n  CREATE TOPIC orders PARTITION 4")
    expect(console.get_by_role("heading", name="Line 2, column 23")).to_be_visible()
    caret = console.locator(".caret").text_content() or ""
    line, mark = caret.split("\n")
    assert line[mark.index("^") :].startswith("PARTITION 4")
    expect(console.locator(".line-numbers .marked")).to_have_text("2")
    axe(console)
    console.get_by_role("button", name="Go there").click()
    at = console.get_by_label(EDITOR).evaluate("(area) => area.value.slice(area.selectionStart)")
    assert at == "PARTITION 4"
    run(console, "SELECT nowhere FROM system.topics")
    expect(console.get_by_role("alert")).to_contain_text("nowhere")


def test_explaining_does_nothing_and_points_at_the_right_place(console: Page, server: Served) -> None:
    write(server, "web-explained", 1)
    console.get_by_label(EDITOR).fill('CLEAR TOPIC "web-explained"; -- ; not one\nSELECT * FROM "web-explained"')
    console.get_by_role("button", name="Explain").click()
    expect(console.get_by_role("heading", name="Result 2")).to_be_visible()
    assert ask(server, "GET", "/v0/topics/web-explained")["count"] == 1
    console.get_by_label(EDITOR).fill("SHOW TOPICS;  DROP TOPIK x")
    console.get_by_role("button", name="Explain").click()
    expect(console.get_by_role("heading", name="Line 1, column 20")).to_be_visible()


def test_only_what_is_selected_is_run(console: Page) -> None:
    console.get_by_label(EDITOR).fill("SELECT 1 AS one;\nSELECT nonsense FROM;")
    console.get_by_label(EDITOR).evaluate("(area) => area.setSelectionRange(0, 15)")
    console.keyboard.press("Control+Enter")
    expect(grid(console).get_by_role("gridcell")).to_have_text(["1"])
    console.get_by_label(EDITOR).evaluate("(area) => area.setSelectionRange(17, area.value.length)")
    console.keyboard.press("Control+Enter")
    expect(console.locator(".output h2")).to_contain_text("Line 2")


def test_what_cannot_be_undone_is_asked_for(console: Page, server: Served) -> None:
    write(server, "web_dropped", 1)
    run(console, "SHOW TOPICS; DROP TOPIC web_dropped")
    expect(console.get_by_role("dialog")).to_contain_text("DROP TOPIC web_dropped")
    console.get_by_role("button", name="Cancel").click()
    assert ask(server, "GET", "/v0/topics/web_dropped")["count"] == 1
    console.get_by_role("button", name="Run").click()
    console.get_by_role("dialog").get_by_role("button", name="Run").click()
    expect(console.get_by_role("heading", name="Result 2")).to_be_visible()
    names = [each["topic"] for each in ask(server, "GET", "/v0/topics?prefix=web_dropped")["topics"]]
    assert names == []


def test_many_rows_are_cut_with_a_notice_and_drawn_as_they_are_seen(console: Page) -> None:
    run(console, "SELECT range AS n FROM range(5000)")
    expect(console.get_by_text("The first 1,000 of 5,000 rows are shown.")).to_be_visible()
    assert grid(console).get_by_role("row").count() < 100
    console.get_by_role("button", name="Show all").click()
    expect(grid(console)).to_have_attribute("aria-rowcount", "5001")
    grid(console).focus()
    console.keyboard.press("End")
    expect(grid(console).get_by_text("4999")).to_be_visible()


def test_words_are_completed_by_keyboard(console: Page, server: Served) -> None:
    write(server, "quince-jam", 1)
    go(console, "/sql")
    area = console.get_by_label(EDITOR)
    area.fill("")
    area.press_sequentially("SELECT evict_f")
    options = console.get_by_role("option")
    expect(options).to_have_text(["evict_floorbigint of system.partitions"])
    console.keyboard.press("Tab")
    expect(area).to_have_value("SELECT evict_floor")
    area.press_sequentially(" FROM quin")
    expect(options).to_have_text(['"quince-jam"log'])
    axe(console)
    console.keyboard.press("ArrowDown")
    console.keyboard.press("Enter")
    expect(area).to_have_value('SELECT evict_floor FROM "quince-jam"')
    area.press_sequentially(" WHER")
    expect(options.first).to_have_text("WHERE")
    console.keyboard.press("Enter")
    expect(area).to_have_value('SELECT evict_floor FROM "quince-jam" WHER\n')
    console.keyboard.press("Control+Space")
    expect(options.first).to_be_visible()
    console.keyboard.press("Escape")
    expect(console.get_by_role("listbox")).to_be_hidden()
    expect(area).to_be_focused()


def test_history_and_draft_stay(console: Page) -> None:
    run(console, "SELECT 'first' AS a")
    expect(grid(console).get_by_role("gridcell")).to_have_text(["first"])
    run(console, "SELECT 'second' AS a")
    expect(grid(console).get_by_role("gridcell")).to_have_text(["second"])
    go(console, "/sql")
    expect(console.get_by_label(EDITOR)).to_have_value("SELECT 'second' AS a")
    console.get_by_role("button", name="History").click()
    axe(console)
    console.get_by_role("dialog").get_by_text("'first'").click()
    expect(console.get_by_label(EDITOR)).to_have_value("SELECT 'first' AS a")
    console.get_by_role("button", name="History").click()
    console.get_by_role("button", name="Forget all").click()
    console.get_by_role("button", name="History").click()
    expect(console.get_by_text("Nothing was run in this browser yet.")).to_be_visible()


def test_a_statement_that_runs_can_be_stopped(console: Page) -> None:
    held: list[Route] = []
    console.route("**/v0/sql", lambda route: held.append(route))
    run(console, "SELECT 1")
    console.get_by_role("button", name="Stop").click()
    expect(console.get_by_text("Stopped. Statements that were done by then stay done.")).to_be_visible()
    expect(console.get_by_role("button", name="Run")).to_be_enabled()
    assert len(held) == 1


def test_every_system_table_can_be_completed() -> None:
    text = (ROOT / "topics" / "web" / "views" / "sql" / "vocabulary.js").read_text()
    line = next(line for line in text.splitlines() if line.startswith("const SYSTEM"))
    assert tuple(re.findall(r'"(\w+)"', line)) == NAMES
