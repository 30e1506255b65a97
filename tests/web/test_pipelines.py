"""Pipelines in the dashboard: declared, reported on as a runner does, paused, changed and dropped."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.served import Served
from tests.web.calls import ask, write
from tests.web.rig import as_phone, axe, fits, go, shot

MERGE = "MERGE INTO delta.'/data/orders' KEY (id) FROM STREAM {} SCHEMA 'id bigint, sku string'"


def declare(server: Served, name: str) -> None:
    write(server, f"{name}-in", 1)
    ask(server, "PUT", f"/v0/pipelines/{name}", {"definition": MERGE.format(f'"{name}-in"')})


def report(server: Served, name: str, **fields: Any) -> dict[str, Any]:
    """What a runner says, and what it is told."""
    told = {"runner": "runner-1", "state": "running", **fields}
    orders: dict[str, Any] = ask(server, "POST", f"/v0/pipelines/{name}/report", told)
    return orders


def lines(*messages: str, level: str = "info") -> list[dict[str, Any]]:
    return [{"ts": 1_763_000_000_000 + at, "level": level, "message": text} for at, text in enumerate(messages)]


def test_a_pipeline_is_declared_from_a_template(page: Page, server: Served) -> None:
    write(server, "orders", 1)
    go(page, "/pipelines")
    page.get_by_role("button", name="New pipeline").first.click()
    page.get_by_label("Name*").fill("web-latest")
    page.get_by_role("textbox", name="What it does").fill("MERGE INTO nothing")
    page.get_by_role("button", name="Declare it").click()
    expect(page.get_by_role("dialog").get_by_role("alert").filter(has_text="line 1, column 12")).to_be_visible()
    page.get_by_label("Template").select_option(label="The latest of each key in a Delta table")
    page.get_by_label("A batch at most every").fill("5s")
    axe(page)
    page.get_by_role("button", name="Declare it").click()
    expect(page.get_by_role("heading", name="web-latest")).to_be_visible()
    expect(page.get_by_text("topics pipeline run")).to_be_visible()
    made = ask(server, "GET", "/v0/pipelines/web-latest")
    assert (made["kind"], made["config"]["key"], made["config"]["options"]["trigger_ms"]) == ("merge", ["id"], 5000)
    go(page, "/pipelines")
    expect(page.get_by_role("row").filter(has_text="web-latest")).to_contain_text("waiting")


def test_what_a_runner_says_is_shown_and_followed(page: Page, server: Served) -> None:
    declare(server, "web-run")
    report(
        server,
        "web-run",
        position="seq 20",
        lag_records=5,
        lag_ms=1200,
        input_rows_per_second=12.5,
        output_rows_per_second=10,
        input_rows_total=1000,
        restarts=2,
        spark_ui="http://127.0.0.1:4040",
        last_error="<b>it broke</b>",
        last_error_ts=1_763_000_000_000,
        logs=lines(*(f"line {number}" for number in range(60))),
    )
    go(page, "/pipelines")
    row = page.get_by_role("row").filter(has_text="web-run")
    for text in (
        "merge",
        "running",
        "/data/orders",
        "seq 20",
        "5 records, 1.2 s",
        "12.5/s in, 10/s out",
        "<b>it broke</b>",
    ):
        expect(row).to_contain_text(text)
    row.get_by_role("link").click()
    expect(page.locator(".stat").filter(has_text="Behind")).to_contain_text("1.2 s, seq 20")
    expect(page.locator(".stat").filter(has_text="Rows in")).to_contain_text("1,000 in all")
    expect(page.get_by_role("link", name="http://127.0.0.1:4040")).to_have_attribute("href", "http://127.0.0.1:4040")
    expect(page.locator("pre.failed-text")).to_have_text("<b>it broke</b>")
    page.get_by_role("tab", name="Log").click()
    page.locator(".log").scroll_into_view_if_needed()
    expect(page.get_by_text("line 59", exact=True)).to_be_in_viewport()
    report(server, "web-run", spark_ui="javascript:alert(1)", logs=lines("and the next", level="error"))
    expect(page.get_by_text("and the next")).to_be_visible()
    page.get_by_label("Least level").select_option(label="error and above")
    expect(page.locator(".log-line")).to_have_count(1)
    shot(page, "pipeline")
    axe(page)
    page.get_by_role("tab", name="What it does").click()
    expect(page.get_by_text("javascript:alert(1)")).to_be_visible()
    expect(page.locator("a[href^=javascript]")).to_have_count(0)
    as_phone(page)
    fits(page)


def test_a_pipeline_is_paused_changed_and_dropped(page: Page, server: Served) -> None:
    declare(server, "web-turn")
    before = report(server, "web-turn")["digest"]
    go(page, "/pipelines/web-turn")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert report(server, "web-turn", state="paused")["paused"] is True
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert report(server, "web-turn")["paused"] is False
    page.get_by_role("button", name="Change").click()
    page.get_by_role("textbox", name="What it does").fill(
        MERGE.format('"web-turn-in"').replace("sku string", "sku string, cents bigint")
    )
    page.get_by_role("button", name="Change it").click()
    expect(page.locator("pre.definition")).to_contain_text("cents bigint")
    assert report(server, "web-turn", digest=before)["digest"] != before
    expect(page.get_by_text(f"its runner still has {before}")).to_be_visible()
    page.get_by_role("button", name="Drop").click()
    expect(page.get_by_role("button", name="Drop it")).to_be_disabled()
    page.get_by_label("Type").fill("web-turn")
    axe(page)
    page.get_by_role("button", name="Drop it").click()
    page.wait_for_url("**/pipelines")
    assert report(server, "web-turn")["exists"] is False


def test_tables_and_their_routes(page: Page, server: Served) -> None:
    columns = [{"name": "id", "type": "bigint"}, {"name": "shown", "type": "boolean"}]
    table = {"format": "delta", "location": "/data/chat", "key": ["id"], "columns": columns}
    ask(server, "PUT", "/v0/tables/web.chat", table)
    ask(server, "PUT", "/v0/tables/web.plain", {"format": "csv", "location": "/data/plain"})
    write(server, "web.new", 1)
    ask(server, "POST", "/v0/sql", {"sql": "ALTER TOPIC web.new ADD SOURCE web.chat ON INSERT WHERE (shown = true)"})
    routes = [
        {"topic": "web.new", "operation": "insert", "position": "version 7", "lag_versions": 2, "records_total": 40}
    ]
    report(server, "routes:web.chat", routes=routes)
    go(page, "/pipelines")
    page.get_by_role("tab", name="Tables").click()
    row = page.get_by_role("row").filter(has_text="web.chat")
    expect(row).to_contain_text("/data/chat")
    row.get_by_role("button", name="web.chat").click()
    expect(page.get_by_role("dialog")).to_contain_text("shown = true")
    axe(page)
    page.get_by_role("button", name="Unregister").click()
    page.get_by_label("Type").fill("web.chat")
    page.get_by_role("dialog").last.get_by_role("button", name="Unregister").click()
    expect(page.get_by_role("alert").filter(has_text="web.chat")).to_be_visible()
    assert ask(server, "GET", "/v0/tables/web.chat")["key"] == ["id"], "it is read, and stays"
    page.keyboard.press("Escape")
    page.get_by_role("row").filter(has_text="web.plain").get_by_role("button", name="web.plain").click()
    page.get_by_role("button", name="Unregister").click()
    page.get_by_label("Type").fill("web.plain")
    page.get_by_role("dialog").last.get_by_role("button", name="Unregister").click()
    expect(page.get_by_role("row").filter(has_text="web.plain")).to_have_count(0)
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", name="routes:web.chat")).to_be_visible()
    expect(page.get_by_role("button", name="Drop")).to_have_count(0)
    page.get_by_role("tab", name="Routes").click()
    progress = page.get_by_role("table", name="Progress of routes").get_by_role("row").nth(1)
    for text in ("web.new", "insert", "version 7", "2 versions", "40"):
        expect(progress).to_contain_text(text)
