"""Groups in the dashboard: how far each is behind, who has what, and moving, pausing and dropping one."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.served import Served
from tests.web.calls import ask, write
from tests.web.rig import as_phone, axe, fits, go, shot


def consumed(server: Served, topic: str, group: str, count: int, **fields: object) -> dict[str, object]:
    path = f"/v0/topics/{topic}/groups/{group}/consume"
    batch: dict[str, object] = ask(server, "POST", path, {"limit": count, **fields})
    return batch


def committed(server: Served, topic: str, group: str) -> list[int]:
    """By partition."""
    states = ask(server, "GET", f"/v0/topics/{topic}/groups")["groups"]
    return [state["committed_seq"] for state in states if state["group"] == group]


def test_all_groups_with_their_lag(page: Page, server: Served) -> None:
    write(server, "web-one", *range(5))
    consumed(server, "web-one", "web-slow", 2, consumer="c1")
    ask(server, "POST", "/v0/topics/web-one/groups/web-quick/reset", {"to": "latest"})
    go(page, "/groups")
    page.get_by_label("Topics that begin with").fill("web-o")
    slow = page.get_by_role("row").filter(has_text="web-slow")
    expect(slow).to_contain_text("working")
    assert [slow.get_by_role("cell").nth(at).text_content() for at in (3, 4, 6)] == ["5", "2", "1"]
    expect(page.get_by_role("row").filter(has_text="web-quick")).to_contain_text("caught up")
    ask(server, "POST", "/v0/topics/web-one/groups/web-left/reset", {"to": "earliest"})
    go(page, "/groups")
    left = page.get_by_role("row").filter(has_text="web-left")
    expect(left).to_contain_text("no consumers")
    left.get_by_role("link", name="web-left").click()
    expect(page.locator(".stat").filter(has_text="State")).to_contain_text("no consumers")
    go(page, "/groups")
    page.get_by_label("Topics that begin with").fill("nothing-begins-so")
    expect(page.get_by_text("topics group consume orders billing --limit 10")).to_be_visible()


def test_a_group_in_its_partitions(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/topics/web-wide", {"partitions": 2})
    for partition in (0, 1):
        write(server, "web-wide", *range(10), partition=partition)
        consumed(server, "web-wide", "g", 3, consumer=f"<i>{partition}</i>", partition=partition, visibility_ms=600_000)
    ask(server, "POST", "/v0/topics/web-wide/groups/g/ack", {"upto_seq": 3, "partition": 1})
    go(page, "/groups/web-wide/g")
    lag = page.locator(".stat").filter(has_text="Lag")
    expect(lag).to_contain_text("17")
    expect(page.get_by_role("button", name="Partition 0").first).to_contain_text("10")
    rows = page.get_by_role("table", name="Partitions").get_by_role("row")
    assert [rows.nth(at).get_by_role("cell").nth(1).text_content() for at in (1, 2)] == ["10", "7"]
    write(server, "web-wide", *range(5), partition=1)
    expect(lag).to_contain_text("22")
    shot(page, "group")
    axe(page)
    page.get_by_role("tab", name="Members").click()
    member = page.get_by_role("table", name="Members").get_by_role("row").nth(1)
    expect(member).to_contain_text("<i>0</i>")
    expect(member).to_contain_text("in 9 min")
    page.get_by_role("tab", name="Ranges").click()
    claimed = page.get_by_role("table", name="Ranges").get_by_role("row").nth(1)
    assert [claimed.get_by_role("cell").nth(at).text_content() for at in (0, 1, 2, 3)] == ["0", "1", "3", "claimed"]
    page.get_by_role("tab", name="Losses").click()
    expect(page.get_by_text("Nothing was lost before it was acked.")).to_be_visible()
    as_phone(page)
    fits(page)


def test_a_group_is_moved_and_told_before_what_that_does(page: Page, server: Served) -> None:
    write(server, "web-moved", *range(10))
    consumed(server, "web-moved", "g", 6)
    ask(server, "POST", "/v0/topics/web-moved/groups/g/ack", {"upto_seq": 4})
    first_ts = ask(server, "POST", "/v0/topics/web-moved/diff", {"limit": 1})["records"][0]["$ts"]
    go(page, "/groups/web-moved/g")
    move = page.get_by_role("button", name="Move", exact=True)

    move.click()
    preview = page.locator(".reset-preview")
    expect(preview).to_have_text(
        "goes on at seq 1: up to 4 records will be read again. What is out now, 2 records, can not be acked any more."
    )
    page.get_by_label("Go on at").select_option(label="Behind the latest record")
    expect(preview).to_contain_text("goes on at seq 11: up to 6 records will be skipped.")
    page.get_by_label("Go on at").select_option(label="A time")
    page.get_by_role("textbox", name="Time").fill("some day")
    page.get_by_role("button", name="Move it").click()
    expect(page.get_by_text("Expected a time, like 2026-11-15 12:00:00.")).to_be_visible()
    page.get_by_role("textbox", name="Time").fill(page.evaluate("(ts) => new Date(ts).toISOString()", first_ts))
    expect(preview).to_contain_text("goes on at seq 1: up to 4 records will be read again.")
    page.get_by_label("Go on at").select_option(label="A seq")
    page.get_by_label("Seq").fill("9")
    expect(preview).to_contain_text("goes on at seq 9: up to 4 records will be skipped.")
    axe(page)
    assert committed(server, "web-moved", "g") == [4], "nothing is done before one says so"
    page.get_by_role("button", name="Move it").click()
    expect(page.get_by_text("g was moved in 1 partition.")).to_be_visible()
    assert committed(server, "web-moved", "g") == [8]
    for label, place in (("The earliest record", [0]), ("Behind the latest record", [10])):
        move.click()
        page.get_by_label("Go on at").select_option(label=label)
        page.get_by_role("button", name="Move it").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert committed(server, "web-moved", "g") == place


def test_one_partition_or_all_of_them(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/topics/web-parts", {"partitions": 2})
    for partition in (0, 1):
        write(server, "web-parts", *range(4), partition=partition)
        consumed(server, "web-parts", "g", 1, partition=partition)
    go(page, "/groups/web-parts/g")
    for where, place in (("Partition 1", [0, 4]), ("All of them", [4, 4])):
        page.get_by_role("button", name="Move", exact=True).click()
        page.get_by_label("Where").select_option(label=where)
        page.get_by_label("Go on at").select_option(label="Behind the latest record")
        page.get_by_role("button", name="Move it").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert committed(server, "web-parts", "g") == place


def test_a_group_is_paused_resumed_and_dropped(page: Page, server: Served) -> None:
    write(server, "web-rest", 1)
    consumed(server, "web-rest", "g", 1)
    go(page, "/groups/web-rest/g")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert ask(server, "GET", "/v0/topics/web-rest/groups/g")["paused"] is True
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert ask(server, "GET", "/v0/topics/web-rest/groups/g")["paused"] is False
    page.get_by_role("button", name="Drop").click()
    expect(page.get_by_role("button", name="Drop it")).to_be_disabled()
    page.get_by_label("Type").fill("g")
    page.get_by_role("button", name="Drop it").click()
    page.wait_for_url("**/groups")
    assert committed(server, "web-rest", "g") == []
    go(page, "/groups/web-rest/g")
    expect(page.get_by_text("There is no group g of web-rest.")).to_be_visible()
