"""One topic in the dashboard, while it is written to: looked at, followed, written, configured, deleted from."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.served import Served
from tests.web.calls import ask
from tests.web.hostile import EVIL
from tests.web.rig import axe, go, shot
from tests.web.writer import writing


def fill(server: Served, topic: str, count: int = 120, **config: object) -> None:
    records = [
        {"data": {"n": n}, "tag": "even" if n % 2 == 0 else "odd", "node": "filler"} for n in range(1, count + 1)
    ]
    ask(server, "PUT", f"/v0/topics/{topic}", config)
    ask(server, "POST", f"/v0/topics/{topic}", {"records": records})


def test_the_map_shows_what_became_of_each_seq(page: Page, server: Served) -> None:
    fill(server, "map.orders", cap_records=100)
    ask(server, "PUT", "/v0/topics/map.orders/archives/lake", {"upto_seq": 40})
    ask(server, "POST", "/v0/topics/map.orders/delete", {"match": "odd", "before_seq": 61})
    go(page, "/topics/map.orders")
    legend = page.locator(".seqmap-legend li")
    expect(legend).to_have_text(["80 live", "20 deleted", "20 evicted", "40 in an archive"])
    told = page.locator(".seqmap-told")
    expect(told).to_have_text("Seqs 1 to 120")
    plot = page.get_by_role("slider", name="Place in the topic")
    plot.focus()
    page.keyboard.press("ArrowRight")
    expect(told).to_have_text("Seq 1: 1 evicted, 1 in an archive")
    page.keyboard.press("End")
    expect(told).to_have_text("Seq 120: 1 live")
    page.keyboard.press("Enter")
    expect(page.locator(".record-seq")).to_have_text(["120"])
    assert "Seqs 1 to 20: 20 evicted, 20 in an archive" in page.locator(".seqmap .unseen li").all_text_contents()
    # 240 columns for 120 seqs: one a seq. The middle is seq 61, the first that nobody deleted from.
    box = plot.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 60.5 / 120, box["y"] + 10)
    expect(page.locator(".record-seq").first).to_have_text("61")


def test_records_are_browsed_by_seq_time_and_tag(page: Page, server: Served) -> None:
    fill(server, "browse.orders", cap_records=110)
    go(page, "/topics/browse.orders")
    seqs = page.locator(".record-seq")
    expect(page.locator(".gap")).to_contain_text("Seqs 1 to 10 are missing: a cap took them.")
    expect(seqs.first).to_have_text("11")
    page.get_by_role("button", name="Later").click()
    expect(seqs.first).to_have_text("61")
    page.get_by_role("button", name="Later").click()
    expect(seqs.last).to_have_text("120")
    expect(page.get_by_role("button", name="Later")).to_be_disabled()
    page.get_by_role("button", name="Earlier").click()
    expect(seqs.first).to_have_text("61")
    page.get_by_label("From seq").fill("100")
    page.get_by_label("Tag").fill("ev*")
    page.get_by_role("button", name="Read", exact=True).click()
    expect(seqs.first).to_have_text("100")
    expect(seqs).to_have_count(11)
    page.locator(".record").first.locator("summary").first.click()
    expect(page.locator(".record-body")).to_contain_text("filler")
    expect(page.locator(".record-body .json")).to_contain_text('"n": 100')
    page.get_by_label("Tag").fill("")
    page.get_by_label("or from time").fill("2000-01-01T00:00:00")
    page.get_by_role("button", name="Read", exact=True).click()
    expect(seqs.first).to_have_text("11")
    page.get_by_label("or from time").fill("2999-01-01T00:00:00")
    page.get_by_role("button", name="Read", exact=True).click()
    expect(page.get_by_text("Nothing here")).to_be_visible()
    page.get_by_role("button", name="Newest").click()
    expect(seqs.last).to_have_text("120")


def test_a_topic_is_followed_live_and_paused(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/topics/live.orders", {"cap_records": 500})
    go(page, "/topics/live.orders?tab=live")
    expect(page.get_by_text("Waiting for the next record")).to_be_visible()
    with writing(server, "live.orders"):
        expect(page.locator(".tail-state")).to_have_text("live")
        expect(page.locator(".record").first).to_be_visible()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_text("more came")).to_be_visible()
        frozen = page.locator(".record-seq").first.inner_text()
        expect(page.get_by_text("more came")).not_to_have_text("20 more came")
        assert page.locator(".record-seq").first.inner_text() == frozen
        page.get_by_role("button", name="Go on").click()
        expect(page.locator(".record-seq").first).not_to_have_text(frozen)
        # The rate is drawn while it lasts.
        expect(page.locator(".stat").filter(has_text="Rate")).not_to_contain_text("0/s")
    assert page.locator(".record").count() <= 200
    axe(page)
    shot(page, "topic-live")
    page.locator(".tail .record").first.locator("summary").click()
    expect(page.locator(".record-body .json").first).to_contain_text('"n":')
    ask(server, "DELETE", "/v0/topics/live.orders")
    expect(page.locator(".tail-state")).to_have_text("the topic is gone")


@pytest.mark.parametrize(
    ("kind", "text", "data"),
    [("JSON", '{"sku": "A1", "cents": [125]}', {"sku": "A1", "cents": [125]}), ("Text", EVIL, EVIL)],
)
def test_a_record_is_written_and_shown_as_text(page: Page, server: Served, kind: str, text: str, data: object) -> None:
    topic = f"write.{kind.lower()}"
    ask(server, "PUT", f"/v0/topics/{topic}", {})
    go(page, f"/topics/{topic}?tab=write")
    page.get_by_label("Data", exact=True).fill(text)
    page.get_by_label("The data is").select_option(label=kind)
    page.get_by_label("Tag").fill(EVIL)
    page.get_by_label("Node").fill("n1")
    page.get_by_label("Meta").fill(json.dumps({"trace": EVIL}))
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("Written as seq 1.")).to_be_visible()
    read = ask(server, "POST", f"/v0/topics/{topic}/diff", {"include_tags": True})["records"]
    (record,) = read
    assert (record["data"], record["$tag"], record["$node"], record["meta"]) == (data, EVIL, "n1", {"trace": EVIL})
    page.get_by_role("tab", name="Records").click()
    page.get_by_role("button", name="Newest").click()
    page.locator(".record summary").first.click()
    expect(page.locator(".record .badge")).to_have_text(EVIL)
    assert page.locator("main img").count() == 0


def test_what_cannot_be_written_is_said_beside_its_field(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/topics/refused.orders", {})
    go(page, "/topics/refused.orders?tab=write")
    page.get_by_label("Data", exact=True).fill("{oops")
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    page.get_by_label("Data", exact=True).fill("[1, 0.12345678901234567890]")
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("0.12345678901234567890 would lose digits")).to_be_visible()
    page.get_by_label("Data", exact=True).fill("[1.50, -1e3, 0.1, 12345678901234567890]")
    page.get_by_label("Meta").fill('{"a": 5}')
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_label("Meta")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Meta").fill("")
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("Written as seq 1.")).to_be_visible()
    read = ask(server, "POST", "/v0/topics/refused.orders/diff", {})["records"]
    assert [record["data"] for record in read] == [[1.5, -1000, 0.1, 12345678901234567890]]
    page.get_by_role("tab", name="Records").click()
    page.get_by_role("button", name="Newest").click()
    expect(page.locator(".record-preview")).to_have_text("[1.5,-1000,0.1,12345678901234567890]")


def test_the_config_is_changed_field_by_field(page: Page, server: Served) -> None:
    fill(server, "config.orders", 10, cap_records=500)
    before = ask(server, "GET", "/v0/topics/config.orders")["config"]
    go(page, "/topics/config.orders?tab=config")
    sent: list[object] = []
    page.on("request", lambda request: request.method == "PATCH" and sent.append(request.post_data_json))
    page.get_by_label("Time to live").fill("1d 12h")
    page.get_by_label("Durability").select_option("fsync")
    page.get_by_label("Wait for groups").fill("billing,")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Changed: durability, ttl_ms, protect_groups.")).to_be_visible()
    wanted = {"durability": "fsync", "ttl_ms": 129_600_000, "protect_groups": ["billing"]}
    assert sent == [wanted]
    assert ask(server, "GET", "/v0/topics/config.orders")["config"] == before | wanted | {"durable": True}
    page.get_by_label("Alias").fill("not a name!")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Alias")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Alias").fill("")
    page.get_by_label("Records at most").fill("-1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Expected at least 0.")).to_be_visible()


def test_records_are_counted_before_they_are_deleted(page: Page, server: Served) -> None:
    fill(server, "delete.orders")
    go(page, "/topics/delete.orders?tab=delete")
    page.get_by_label("Tag").fill("odd")
    page.get_by_label("Before seq").fill("51")
    page.get_by_role("button", name="Count").click()
    expect(page.locator(".preview")).to_have_text("25 records would go.")
    assert ask(server, "GET", "/v0/topics/delete.orders")["count"] == 120
    page.get_by_role("button", name="Delete…", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("25 records of delete.orders with the tag odd and below seq 51 will be gone")
    go_on = dialog.get_by_role("button", name="Delete", exact=True)
    expect(go_on).to_be_disabled()
    page.keyboard.press("Escape")
    assert ask(server, "GET", "/v0/topics/delete.orders")["count"] == 120
    page.get_by_role("button", name="Delete…", exact=True).click()
    dialog.get_by_label("Type").fill("delete.orders")
    axe(page)
    shot(page, "topic-delete")
    go_on.click()
    expect(page.get_by_text("25 records deleted; 95 left.")).to_be_visible()
    assert ask(server, "GET", "/v0/topics/delete.orders")["count"] == 95
    page.get_by_role("button", name="Count").click()
    expect(page.locator(".preview")).to_have_text("Nothing fits: nothing would go.")
    page.get_by_label("Tag").fill("")
    page.get_by_label("Before seq").fill("")
    page.get_by_role("button", name="Count").click()
    expect(page.get_by_text("a delete names before_seq, match, or both")).to_be_visible()


def test_a_topic_is_deleted_by_its_name(page: Page, server: Served) -> None:
    fill(server, "gone.orders", 3)
    ask(server, "PUT", "/v0/routers/gone.router", {"source": "gone.orders", "dest": "gone.copy"})
    go(page, "/topics/gone.orders?tab=delete")
    page.get_by_role("button", name="Delete the topic…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 records")
    dialog.get_by_label("Type").fill("gone.orders")
    dialog.get_by_role("button", name="Delete the topic").click()
    expect(page.get_by_text("gone.orders is gone, and the routers gone.router.")).to_be_visible()
    expect(page.locator("h1")).to_have_text("Topics")
    with server.connect() as caller:
        assert caller.ask("GET", "/v0/topics/gone.orders")[0] == 404


def test_routers_and_groups_of_a_topic_with_their_lag(page: Page, server: Served) -> None:
    fill(server, "flow.orders", 30)
    ask(server, "PUT", "/v0/routers/flow.in", {"source": "flow.source", "dest": "flow.orders"})
    ask(server, "PUT", "/v0/topics/flow.full", {"cap_records": 1, "discard": "reject"})
    ask(server, "PUT", "/v0/routers/flow.out", {"source": "flow.orders", "dest": "flow.full", "backfill": True})
    ask(
        server,
        "POST",
        "/v0/topics/flow.orders/groups/billing/consume",
        {"consumer": "c1", "limit": 5, "from": "earliest"},
    )
    go(page, "/topics/flow.orders?tab=flow")
    expect(page.get_by_role("table", name="Routers in").get_by_role("row").nth(1)).to_contain_text("flow.source")
    out = page.get_by_role("table", name="Routers out").get_by_role("row").nth(1)
    expect(out).to_contain_text("29, ")
    group = page.get_by_role("table", name="Groups").get_by_role("row").nth(1)
    expect(group).to_contain_text("billing")
    expect(group.get_by_role("link")).to_have_attribute("href", "/groups/flow.orders/billing")
    with server.connect() as caller:
        lag = caller.ask("GET", "/v0/topics/flow.orders/groups/billing")[1]["lag"]
    expect(group.get_by_role("cell").nth(2)).to_have_text(str(lag))
    axe(page)


def test_a_partition_is_chosen(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/topics/parts.orders", {"partitions": 3})
    ask(server, "POST", "/v0/topics/parts.orders", {"records": [{"data": "only here"}], "partition": 2})
    go(page, "/topics/parts.orders")
    expect(page.get_by_text("No records yet")).to_be_visible()
    page.get_by_label("Partition", exact=True).select_option("2")
    expect(page.locator(".record")).to_contain_text("only here")
    assert page.url.endswith("/topics/parts.orders?partition=2")
