"""The overview over a live server: figures and charts that move with what happens, and alerts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.served import Caller, Served, served
from tests.web.rig import Lab, axe, fits, go, in_theme, ready, shot, visit
from tests.web.writer import writing

BUSY = "overview-busy"


@pytest.fixture
def empty(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Served]]:
    with served(tmp_path_factory.mktemp("empty") / "data") as server, visit(lab.browser, server.url) as page:
        yield page, server


def test_what_is_written_moves_the_figures_the_charts_and_the_busiest_topics(page: Page, server: Served) -> None:
    go(page, "/")
    with writing(server, BUSY):
        busiest = page.get_by_role("table", name="Busiest topics")
        expect(busiest.get_by_role("link", name=BUSY, exact=True)).to_be_visible()
        page.wait_for_function("() => !/^(0|–)/.test(document.querySelector('.stat-value').textContent)")
        line = page.locator(".chart", has_text="Records written").locator(".chart-line")
        before = line.get_attribute("d")
        expect(line).not_to_have_attribute("d", before or "")
        assert "M" in (line.get_attribute("d") or "")
        expect(page.get_by_role("img", name=f"Rate of {BUSY} lately")).to_be_visible()
        shot(page, "overview-live", whole=True)
        in_theme(page, "dark")
        axe(page)
        shot(page, "overview-live-dark", whole=True)
    busiest.get_by_role("link", name=BUSY, exact=True).click()
    expect(page).to_have_url(f"{server.url}/topics/{BUSY}")


def test_how_far_back_is_chosen_and_kept(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/v0/series" in sent.url else None)
    go(page, "/")
    page.get_by_role("button", name="2 h").click()
    expect(page.get_by_role("button", name="2 h")).to_have_attribute("aria-pressed", "true")
    page.reload()
    ready(page)
    expect(page.get_by_role("button", name="2 h")).to_have_attribute("aria-pressed", "true")
    assert "step=1s" in asked[0] and "step=10s" in asked[-1]
    assert all("names=" in each for each in asked)


def test_only_what_is_new_is_asked_for(page: Page) -> None:
    go(page, "/")
    with page.expect_request(re.compile(r"/v0/series\?.*since=[1-9]\d{12}")):
        pass


def test_storage_logs_and_events_are_those_of_the_server(page: Page, server: Served) -> None:
    with server.connect() as caller:
        _, seen = caller.ask("GET", "/v0/overview")
    go(page, "/")
    storage = page.locator("section", has=page.get_by_role("heading", name="Storage"))
    for tier in ("Write-ahead log", "Hot segments", "Cold segments", "Free"):
        expect(storage).to_contain_text(tier)
    logs = page.get_by_role("table", name="Write-ahead logs").locator("tbody tr")
    expect(logs).to_have_count(len(seen["logs"]))
    expect(logs.first).to_contain_text("healthy")
    expect(page.get_by_role("table", name="Events")).to_contain_text("The server is ready.")


def test_nothing_yet_teaches_the_first_command(empty: tuple[Page, Served]) -> None:
    page, server = empty
    go(page, "/")
    expect(page.locator(".empty")).to_contain_text("There is no topic yet")
    command = page.locator(".command code").first.inner_text()
    assert f"{server.url}/v0/topics/orders" in command
    expect(page.locator(".alerts")).to_contain_text("All is well")
    with server.connect() as caller:
        caller.ask("POST", "/v0/topics/orders", {"records": [{"data": 1}]})
    expect(page.locator(".empty")).not_to_be_visible()


def test_an_alert_says_what_to_do_and_leads_there(empty: tuple[Page, Served]) -> None:
    page, server = empty
    with server.connect() as caller:
        _bury(caller, "jobs:b")
        _bury(caller, "mails")
    go(page, "/")
    alerts = page.locator(".alert")
    expect(alerts).to_have_count(2)
    expect(alerts.first).to_contain_text("Dead letters of jobs:b")
    expect(alerts.first).to_contain_text("Jobs given up in the last ten minutes: 1; in all: 1.")
    expect(alerts.first.locator("code")).to_have_text("topics queue dead jobs:b")
    expect(page.get_by_role("table", name="Events")).to_contain_text("Dead letters of mails")
    axe(page)
    fits(page)
    shot(page, "overview-alerts")
    alerts.first.get_by_role("link", name="Look at it").click()
    expect(page).to_have_url(f"{server.url}/dead/jobs%3Ab")


def _bury(caller: Caller, queue: str) -> None:
    """A job that was given up."""
    path = f"/v0/topics/{queue.replace(':', '%3A')}"
    caller.ask("PUT", path, {"type": "queue", "max_deliveries": 1, "dead_letter": f"{queue}-dead"})
    caller.ask("POST", path, {"records": [{"data": 1}]})
    _, claimed = caller.ask("POST", f"{path}/claim", {"node": "w"})
    caller.ask("POST", f"{path}/nack", {"node": "w", "seqs": [claimed["claimed"][0]["$seq"]]})
    while caller.ask("GET", path)[1]["queue"]["dead_lettered"] == 0:
        caller.ask("POST", f"{path}/claim", {"node": "w"})
