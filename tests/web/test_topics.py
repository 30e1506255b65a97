"""The list of topics: searched, sorted, however long; and a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

import topics
from tests.e2e.served import Served, served
from tests.web.rig import Lab, axe, go, shot, visit
from tests.web.writer import writing

MANY = 10_000
FRAMES = """async () => {
  const list = document.querySelector(".virtual");
  const gaps = [];
  let last = performance.now();
  for (let step = 0; step < 60; step += 1) {
    list.scrollTop = (list.scrollHeight - list.clientHeight) * (step / 59);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push(now - last);
    last = now;
  }
  gaps.sort((one, other) => one - other);
  return { median: gaps[30], rows: document.querySelectorAll(".virtual-row").length };
}"""


def names(page: Page) -> list[str]:
    return page.locator(".virtual-shown .topic-name").all_inner_texts()


def test_topics_are_searched_filtered_and_sorted(page: Page, server: Served) -> None:
    with server.connect() as caller:
        for name, count in (("list.small", 1), ("list.large", 30), ("list.Middle", 10), ("other", 1)):
            caller.ask("POST", f"/v0/topics/{name}", {"records": [{"data": "x" * 50}] * count})
        caller.ask("PUT", "/v0/topics/list.jobs", {"type": "queue"})
    with writing(server, "list.busy"):
        go(page, "/topics")
        page.get_by_role("searchbox", name="Search topics by name").fill("LIST.")
        expect(page.locator(".found")).to_contain_text("5 of")
        assert names(page) == ["list.Middle", "list.busy", "list.jobs", "list.large", "list.small"]
        page.get_by_label("Type").select_option(label="Queues")
        expect(page.locator(".virtual-shown .topic-name")).to_have_text(["list.jobs"])
        page.get_by_label("Type").select_option(label="All types")
        page.get_by_label("Sort by").select_option(label="Rate")
        expect(page.locator(".virtual-shown .virtual-row").first).to_contain_text("list.busy")
        expect(page.locator(".virtual-shown .virtual-row").first).to_contain_text("/s")
        page.get_by_label("Sort by").select_option(label="Records")
        page.get_by_role("button", name="Turn around").click()
        expect(page.locator(".virtual-shown .topic-name").first).to_have_text("list.jobs")
        large = page.locator(".virtual-shown .virtual-row").filter(has_text="list.large")
        expect(large).to_contain_text("log")
        expect(large).to_contain_text("1.52 KiB")
    page.locator(".virtual").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("list.busy")


def test_a_topic_is_made_with_what_was_chosen_and_nothing_else(page: Page, server: Served) -> None:
    go(page, "/topics")
    page.get_by_role("button", name="New topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("made/wrong")
    dialog.get_by_role("button", name="Make the topic").click()
    expect(dialog.get_by_text("Expected letters, digits and . _ - :")).to_be_visible()
    dialog.get_by_label("Name").fill("made.here")
    dialog.get_by_label("Type", exact=True).select_option("queue")
    expect(dialog.get_by_label("Name")).to_have_value("made.here")
    dialog.get_by_label("A lease lasts").fill("45s")
    dialog.get_by_label("Deliveries at most").fill("3")
    dialog.get_by_label("Dead letters go to").fill("made.dead")
    dialog.get_by_label("Time to live").fill("7d")
    axe(page)
    shot(page, "topic-new")
    dialog.get_by_role("button", name="Make the topic").click()
    expect(page.locator("h1")).to_have_text("made.here")
    with server.connect() as caller:
        made = caller.ask("GET", "/v0/topics/made.here")[1]["config"]
        caller.ask("PUT", "/v0/topics/made.plain", {"type": "queue"})
        plain = caller.ask("GET", "/v0/topics/made.plain")[1]["config"]
    chosen = {"lease_ms": 45_000, "max_deliveries": 3, "dead_letter": "made.dead", "ttl_ms": 604_800_000}
    assert made == plain | chosen
    go(page, "/topics")
    page.get_by_role("button", name="New topic").click()
    dialog.get_by_label("Name").fill("made.here")
    dialog.get_by_role("button", name="Make the topic").click()
    expect(dialog.get_by_text("There is a topic made.here already.")).to_be_visible()


@pytest.fixture
def crowded(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    directory = tmp_path_factory.mktemp("crowded") / "data"
    # The browser has the event loop of this thread.
    made = Thread(target=lambda: asyncio.run(make_many(directory)))
    made.start()
    made.join()
    with served(directory) as server, visit(lab.browser, server.url) as page:
        yield page


async def make_many(directory: Path) -> None:
    async with topics.open(directory) as client:
        await asyncio.gather(*(client.topic(f"many.{number:05}").create() for number in range(MANY)))


def test_ten_thousand_topics_stay_responsive(crowded: Page, record_property: Callable[[str, object], None]) -> None:
    go(crowded, "/topics")
    expect(crowded.locator(".found")).to_have_text("10,000 topics")
    frames = crowded.evaluate(FRAMES)
    assert frames["rows"] < 60, "only what is seen is in the page"
    assert names(crowded)[-1] == "many.09999"
    crowded.get_by_role("searchbox").fill("9999")
    expect(crowded.locator(".virtual-shown .topic-name")).to_have_text(["many.09999"])
    record_property("median_frame_ms", frames["median"])
