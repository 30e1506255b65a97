"""Dead letters in the dashboard: filtered, looked at, taken back and deleted, some or all of them."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.e2e.served import Served
from tests.web.calls import ask, dead_jobs, dead_messages
from tests.web.rig import as_phone, axe, fits, go, shot

_STOPPED = {"error": {"code": "log_stopped", "message": "the disk is full", "detail": {}}}


def letters(page: Page) -> int:
    return page.get_by_role("table", name="Dead letters").locator("tbody tr").count()


def in_heap(server: Served, heap: str) -> tuple[int, int]:
    """Ready messages and dead letters."""
    stats = ask(server, "GET", f"/v1/heaps/{heap}")["stats"]
    return stats["ready_messages"], stats["dlq_messages"]


def test_letters_of_a_heap_are_filtered_looked_at_and_replayed(page: Page, server: Served) -> None:
    ask(server, "POST", "/v1/heaps", {"topic": "web-dead", "max_retries_default": 0})
    dead_messages(server, "web-dead", 6, reason="<b>no luck</b>")
    go(page, "/dead")
    page.get_by_role("link", name="web-dead", exact=True).click()
    expect(page.get_by_text("6 dead letters shown")).to_be_visible()
    page.get_by_role("table", name="Dead letters").get_by_role("row").nth(1).get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_contain_text("<b>no luck</b>")
    axe(page)
    page.keyboard.press("Escape")

    page.get_by_label("Priority from").fill("4")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("2 dead letters shown")).to_be_visible()
    page.get_by_role("button", name="Replay all that match").click()
    expect(page.get_by_role("dialog")).to_contain_text("Replay 2 dead letters?")
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_text("2 dead letters replayed.")).to_be_visible()
    assert in_heap(server, "web-dead") == (2, 4)

    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("4 dead letters shown")).to_be_visible()
    for place in (1, 3):
        page.get_by_role("table", name="Dead letters").get_by_role("row").nth(place).get_by_role("checkbox").check()
    expect(page.get_by_text("2 chosen")).to_be_visible()
    shot(page, "dead")
    axe(page)
    page.get_by_role("button", name="Replay chosen").click()
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_text("2 dead letters shown")).to_be_visible()
    assert in_heap(server, "web-dead") == (4, 2)
    left = [item["priority"] for item in ask(server, "GET", "/v1/heaps/web-dead/dlq")["items"]]
    assert left == [1, 3]
    as_phone(page)
    fits(page)


def test_letters_of_a_heap_are_deleted_by_name_of_the_heap(page: Page, server: Served) -> None:
    ask(server, "POST", "/v1/heaps", {"topic": "web-buried", "max_retries_default": 0})
    dead_messages(server, "web-buried", 5)
    go(page, "/dead/web-buried")
    page.get_by_role("table", name="Dead letters").get_by_role("row").nth(1).get_by_role("checkbox").check()
    page.get_by_role("button", name="Delete chosen").click()
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    page.get_by_label("Type").fill("web-buried")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("1 dead letter deleted.")).to_be_visible()
    assert in_heap(server, "web-buried") == (0, 4)
    page.get_by_role("button", name="Delete all that match").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete 4 dead letters?")
    page.get_by_label("Type").fill("web-buried")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("4 dead letters deleted.")).to_be_visible()
    expect(page.get_by_text("No dead letters match.")).to_be_visible()
    assert in_heap(server, "web-buried") == (0, 0)
    page.get_by_role("button", name="Delete all that match").click()
    expect(page.get_by_text("Nothing matches.")).to_be_visible()


def test_letters_of_a_queue_are_chosen_by_tag_replayed_and_deleted(page: Page, server: Served) -> None:
    dead_jobs(server, "web-mails", "web-mails.dead", 9)
    go(page, "/dead/web-mails.dead")
    expect(page.get_by_text("Of web-mails, kept in web-mails.dead.")).to_be_visible()
    expect(page.get_by_text("9 dead letters shown")).to_be_visible()
    page.get_by_label("Tag").fill("t0")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("3 dead letters shown")).to_be_visible()
    page.get_by_role("button", name="Replay all that match").click()
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_text("3 dead letters replayed.")).to_be_visible()
    state = ask(server, "GET", "/v0/topics/web-mails")
    assert state["queue"]["ready"] == 3
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("6 dead letters shown")).to_be_visible()
    for place in (1, 2, 5):
        page.get_by_role("table", name="Dead letters").get_by_role("row").nth(place).get_by_role("checkbox").check()
    page.get_by_role("button", name="Delete chosen").click()
    page.get_by_label("Type").fill("web-mails")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("3 dead letters deleted.")).to_be_visible()
    records = ask(server, "POST", "/v0/topics/web-mails.dead/diff", {})["records"]
    assert [record["data"]["n"] for record in records] == [4, 5, 8]
    page.get_by_role("button", name="Delete all that match").click()
    page.get_by_label("Type").fill("web-mails")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No dead letters match.")).to_be_visible()
    assert ask(server, "GET", "/v0/topics/web-mails.dead")["count"] == 0


def test_a_long_replay_can_be_stopped_and_counts_what_was_done(page: Page, server: Served) -> None:
    dead_jobs(server, "web-many", "web-many.dead", 250)
    go(page, "/dead/web-many")
    held: list[Route] = []

    def hold(route: Route) -> None:
        """The second step waits until somebody has stopped."""
        asked = route.request.post_data_json
        if asked.get("dry_run") or not asked["from_seq"]:
            route.continue_()
        else:
            held.append(route)

    page.route("**/redrive", hold)
    page.get_by_role("button", name="Replay all that match").click()
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_text("100 of 250")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    held.pop().continue_()
    expect(page.get_by_text("200 dead letters replayed; stopped by you.")).to_be_visible()
    assert ask(server, "GET", "/v0/topics/web-many")["queue"]["ready"] == 200
    assert ask(server, "GET", "/v0/topics/web-many.dead")["count"] == 50


def test_what_the_server_refuses_in_the_middle_is_told(page: Page, server: Served) -> None:
    dead_jobs(server, "web-torn", "web-torn.dead", 2)
    go(page, "/dead/web-torn")
    expect(page.get_by_text("2 dead letters shown")).to_be_visible()
    assert letters(page) == 2

    def refuse(route: Route) -> None:
        if route.request.post_data_json.get("dry_run"):
            route.continue_()
        else:
            route.fulfill(status=503, json=_STOPPED)

    page.route("**/dead_letters/delete", refuse)
    page.get_by_role("button", name="Delete all that match").click()
    page.get_by_label("Type").fill("web-torn")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("0 dead letters deleted; stopped by an error.")).to_be_visible()
    expect(page.get_by_text("the disk is full").last).to_be_visible()
    assert letters(page) == 2


def test_a_place_without_dead_letters_says_so(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/topics/web-plain", {})
    go(page, "/dead/web-plain")
    expect(page.get_by_text("No dead letters come from here")).to_be_visible()
    axe(page)
