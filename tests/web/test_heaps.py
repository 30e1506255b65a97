"""Heaps in the dashboard: what waits and in which order, messages put in and changed, config, emptying and deleting."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.served import Served
from tests.web.calls import ask, enqueue
from tests.web.guarded import Guarded
from tests.web.rig import Lab, as_phone, axe, fits, go, shot, visit

OFFERED = {"New heap", "Enqueue", "Empty", "Delete", "Replay chosen", "Delete chosen", "Replay all that match"} | {
    *("Delete all that match", "Pause", "Resume", "Move", "Drop", "New pipeline")
}
"""What changes something."""


def peeked(server: Served, heap: str) -> list[tuple[int, str]]:
    """Priority and state of all messages, in order."""
    items = ask(server, "GET", f"/v1/peek?topic={heap}&limit=1000")["items"]
    return [(item["priority"], item["state"]) for item in items]


def test_a_heap_is_made_and_listed(page: Page, server: Served) -> None:
    go(page, "/heaps")
    page.get_by_role("button", name="New heap").first.click()
    page.get_by_label("Name*").fill("web-made")
    page.get_by_label("Which priority is best").select_option(label="The highest")
    page.get_by_label("Partitions").fill("3")
    page.get_by_label("Lease", exact=True).fill("1m 30s")
    axe(page)
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("heading", name="web-made")).to_be_visible()
    made = ask(server, "GET", "/v1/heaps/web-made")
    assert (made["mode"], made["partitions"], made["visibility_timeout_default"]) == ("MAX", 3, 90)
    enqueue(server, "web-made", 1, 2)
    go(page, "/heaps")
    page.get_by_label("Names that begin with").fill("web-m")
    line = page.get_by_role("row").filter(has_text="web-made")
    expect(line).to_contain_text("highest")
    expect(line.get_by_role("cell").nth(2)).to_have_text("2")
    page.get_by_label("Names that begin with").fill("nothing-begins-so")
    expect(page.get_by_text("No heaps here")).to_be_visible()
    expect(page.get_by_text("topics heap create jobs")).to_be_visible()


def test_a_name_that_is_none_is_told_beside_its_field(page: Page) -> None:
    go(page, "/heaps")
    page.get_by_role("button", name="New heap").first.click()
    page.get_by_label("Name*").fill("no spaces")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_label("Name*")).to_have_attribute("aria-invalid", "true")


def test_priorities_partitions_and_messages_are_shown(page: Page, server: Served) -> None:
    ask(server, "POST", "/v1/heaps", {"topic": "web-seen", "partitions": 2})
    for partition in (0, 1):
        enqueue(server, "web-seen", *range(partition, 20, 2), partition_id=partition)
    ask(server, "POST", "/v1/pop", {"topic": "web-seen", "max": 1})
    go(page, "/heaps/web-seen")
    expect(page.get_by_text("19 messages ready, the best at the left.")).to_be_visible()
    assert page.locator(".bars-bar").last.bounding_box(), "it is drawn, too"
    counts = page.locator(".bars table td").all_text_contents()
    told = ask(server, "GET", "/v1/heaps/web-seen/priorities")
    assert counts == [str(bucket["count"]) for bucket in told["buckets"]] == ["1"] * 19
    expect(page.get_by_text("K bound 100: a pop gives one of the best 100 over all 2 partitions.")).to_be_visible()
    rows = page.get_by_role("table", name="Messages", exact=True).get_by_role("row")
    expect(rows).to_have_count(21)
    order = [rows.nth(at).get_by_role("cell").nth(1).text_content() for at in range(1, 21)]
    assert order == [str(priority) for priority, _ in peeked(server, "web-seen")] == [*map(str, range(1, 20)), "0"]
    expect(rows.nth(20)).to_contain_text("leased")
    page.get_by_label("Partition", exact=True).select_option(label="Partition 1")
    expect(rows).to_have_count(11)
    shot(page, "heap")
    page.get_by_role("tab", name="Partitions").click()
    first = page.get_by_role("table", name="Partitions").get_by_role("row").nth(1)
    expect(first).to_contain_text("ok")
    figures = [first.get_by_role("cell").nth(at).text_content() for at in (0, 2, 3, 4, 5, 6)]
    assert figures == ["0", "9", "1", "0", "0", "2"]
    expect(first.get_by_role("cell").nth(7)).to_contain_text("ago")
    axe(page)
    as_phone(page)
    fits(page)


def test_a_message_is_enqueued_reprioritised_given_up_and_cancelled(page: Page, server: Served) -> None:
    ask(server, "POST", "/v1/heaps", {"topic": "web-hands"})
    go(page, "/heaps/web-hands")
    page.get_by_role("button", name="Enqueue").click()
    page.get_by_label("Payload*").fill('{"task": ')
    page.get_by_role("button", name="Enqueue", exact=True).last.click()
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    page.get_by_label("Payload*").fill('{"task": "<img src=x>"}')
    page.get_by_label("Priority").fill("7")
    page.get_by_label("Meta").fill('{"trace": "a1"}')
    axe(page)
    page.get_by_role("dialog").get_by_role("button", name="Enqueue").click()
    expect(page.get_by_text("is in partition 0.")).to_be_visible()
    (item,) = ask(server, "GET", "/v1/peek?topic=web-hands")["items"]
    assert (item["payload_json"], item["priority"], item["meta"]) == ({"task": "<img src=x>"}, 7, {"trace": "a1"})

    line = page.get_by_role("table", name="Messages", exact=True).get_by_role("row").nth(1)
    line.get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_contain_text('"<img src=x>"')
    page.get_by_role("button", name="Reprioritise").click()
    page.get_by_role("textbox", name="Priority").fill("-3")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_text("Its priority is -3, and was 7.")).to_be_visible()
    expect(line.get_by_role("cell").nth(1)).to_have_text("-3")

    line.get_by_role("button").click()
    page.get_by_role("button", name="Move to dead letters").click()
    page.get_by_label("Why").fill("by hand")
    page.get_by_role("button", name="Move it").click()
    expect(page.get_by_text("It is in web-hands.dlq now.")).to_be_visible()
    expect(page.get_by_text("There are no messages.")).to_be_visible()
    assert [each["reason"] for each in ask(server, "GET", "/v1/heaps/web-hands/dlq")["items"]] == ["by hand"]

    enqueue(server, "web-hands", 1)
    line.get_by_role("button").click()
    page.get_by_role("button", name="Cancel message").click()
    page.get_by_role("dialog").last.get_by_role("button", name="Cancel message").click()
    expect(page.get_by_text("The message is gone.")).to_be_visible()
    assert peeked(server, "web-hands") == []


def test_a_message_that_somebody_has_cannot_be_changed(page: Page, server: Served) -> None:
    ask(server, "POST", "/v1/heaps", {"topic": "web-leased"})
    enqueue(server, "web-leased", 1)
    ask(server, "POST", "/v1/pop", {"topic": "web-leased"})
    go(page, "/heaps/web-leased")
    page.get_by_role("table", name="Messages", exact=True).get_by_role("row").nth(1).get_by_role("button").click()
    expect(page.get_by_text("A consumer has it")).to_be_visible()
    expect(page.get_by_role("button", name="Reprioritise")).to_have_count(0)
    axe(page)


def test_the_config_is_changed(page: Page, server: Served) -> None:
    ask(server, "POST", "/v1/heaps", {"topic": "web-config", "max_retries_default": 3})
    go(page, "/heaps/web-config")
    page.get_by_role("tab", name="Config").click()
    page.get_by_label("Retries").fill("9")
    page.get_by_label("Lease", exact=True).fill("soon")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Expected a duration")).to_be_visible()
    assert ask(server, "GET", "/v1/heaps/web-config")["max_retries_default"] == 3, "nothing was changed"
    page.get_by_label("Lease", exact=True).fill("45s")
    page.get_by_label("Keep messages that failed too often").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The config is changed.")).to_be_visible()
    now = ask(server, "GET", "/v1/heaps/web-config")
    assert (now["max_retries_default"], now["visibility_timeout_default"]) == (9, 45)
    assert now["dlq_policy"]["enabled"] is False
    axe(page)


def test_emptying_and_deleting_ask_for_the_name(page: Page, server: Served) -> None:
    ask(server, "POST", "/v1/heaps", {"topic": "web-gone"})
    enqueue(server, "web-gone", 1, 2, 3)
    go(page, "/heaps/web-gone")
    page.get_by_role("button", name="Empty").click()
    expect(page.get_by_role("dialog")).to_contain_text("All 3 messages of it are deleted.")
    go_on = page.get_by_role("button", name="Empty it")
    expect(go_on).to_be_disabled()
    page.get_by_label("Type").fill("web-gone")
    axe(page)
    go_on.click()
    expect(page.get_by_text("3 messages deleted.")).to_be_visible()
    assert peeked(server, "web-gone") == []
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_label("Type").fill("web-gone")
    page.get_by_role("button", name="Delete it").click()
    page.wait_for_url("**/heaps")
    names = [heap["topic"] for heap in ask(server, "GET", "/v1/heaps?prefix=web-gone")["heaps"]]
    assert names == []


def test_numbers_of_64_bits_stay_as_they_are(page: Page, server: Served) -> None:
    large = 2**53 + 1
    ask(server, "POST", "/v1/heaps", {"topic": "web-large"})
    go(page, "/heaps/web-large")
    page.get_by_role("button", name="Enqueue").click()
    page.get_by_label("Payload*").fill(f'{{"id": {large}, "half": 0.5}}')
    page.get_by_label("Priority").fill(str(-large))
    page.get_by_role("dialog").get_by_role("button", name="Enqueue").click()
    line = page.get_by_role("table", name="Messages", exact=True).get_by_role("row").nth(1)
    expect(line.get_by_role("cell").nth(1)).to_have_text(str(-large))
    expect(line).to_contain_text(f'{{"id":{large},"half":0.5}}')
    expect(page.locator(".bars table th")).to_have_text([str(-large)])
    (item,) = ask(server, "GET", "/v1/peek?topic=web-large")["items"]
    assert (item["payload_json"], item["priority"]) == ({"id": large, "half": 0.5}, -large)
    line.get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_contain_text(f'"id": {large}')


def test_who_may_only_look_is_offered_nothing_else(lab: Lab, guarded: Guarded) -> None:
    guarded.ask("POST", "/v1/heaps", {"topic": "web-watched", "max_retries_default": 0})
    guarded.ask("POST", "/v1/enqueue", {"topic": "web-watched", "payload_json": 1})
    guarded.ask("POST", "/v0/topics/web-read", {"records": [{"data": 1}]})
    guarded.ask("POST", "/v0/topics/web-read/groups/g/reset", {"to": "earliest"})
    with visit(lab.browser, guarded.url) as page:
        guarded.let_in(page.context, guarded.add("looker@example.org", "viewer"))
        for path, says in (
            ("/heaps", "web-watched"),
            ("/heaps/web-watched", "1 message ready"),
            ("/dead/web-watched", "No dead letters match."),
            ("/groups/web-read/g", "A group of web-read."),
            ("/pipelines", "No pipelines yet"),
        ):
            go(page, path)
            expect(page.get_by_text(says).first).to_be_visible()
            assert not OFFERED & set(page.locator("main button").all_text_contents()), path
        go(page, "/heaps/web-watched")
        page.get_by_role("table", name="Messages", exact=True).get_by_role("row").nth(1).get_by_role("button").click()
        expect(page.get_by_role("dialog")).to_contain_text("Payload")
        expect(page.get_by_role("button", name="Cancel message")).to_have_count(0)
