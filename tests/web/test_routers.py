"""Routers in the dashboard: the net with what lags, made, refused, deleted."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.served import Served, served
from tests.web.calls import ask
from tests.web.rig import Lab, axe, go, shot, visit
from tests.web.writer import writing

LAYOUT = """async (edges) => {
  const { layout } = await import("/web/views/routers/layout.js");
  const { places, backward } = layout(edges);
  return { layers: Object.fromEntries([...places].map(([name, { layer }]) => [name, layer])),
           rows: Object.fromEntries([...places].map(([name, { row }]) => [name, row])),
           backward: [...backward].map(({ source, dest }) => source + dest) };
}"""


def test_the_net_has_what_lags_and_what_is_stalled(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/topics/net.full", {"cap_records": 2, "discard": "reject"})
    for name, source, dest in (
        ("net.1", "net.a", "net.b"),
        ("net.2", "net.b", "net.c"),
        ("net.3", "net.a", "net.full"),
    ):
        ask(server, "PUT", f"/v0/routers/{name}", {"source": source, "dest": dest})
    with writing(server, "net.a"):
        go(page, "/routers?search=net.")
        stalled = page.locator('.net-line[data-router="net.3"]')
        expect(stalled).to_contain_text("stalled")
        expect(stalled).to_have_attribute("class", "net-line bad")
        expect(page.get_by_role("link", name="Topic net.c")).to_be_visible()
        line = page.get_by_role("table", name="Routers").get_by_role("row").filter(has_text="net.3")
        expect(line).to_contain_text("stalled")
        before = page.locator(".net").get_attribute("viewBox")
        page.get_by_role("group", name="Net of routers").focus()
        for key in ("+", "ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
            after = page.locator(".net").get_attribute("viewBox")
            assert after != before
            before = after
        page.keyboard.press("0")
        axe(page)
        shot(page, "routers-net")
        box = page.locator(".viewport-field").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 20, box["y"] + box["height"] - 20)
        page.mouse.down()
        page.mouse.move(box["x"] + 120, box["y"] + box["height"] - 60)
        page.mouse.up()
        assert page.locator(".net").get_attribute("viewBox") != before
    page.get_by_role("searchbox", name="Search routers").fill("net.c")
    expect(page.locator(".net-line")).to_have_count(1)
    page.get_by_role("link", name="Topic net.c").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("net.c")


def test_a_router_is_made_refused_and_deleted(page: Page, server: Served) -> None:
    ask(server, "PUT", "/v0/routers/ring.1", {"source": "ring.a", "dest": "ring.b"})
    go(page, "/routers")
    page.get_by_role("button", name="New router").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From").fill("ring.b")
    dialog.get_by_label("To", exact=False).first.fill("ring.a")
    dialog.get_by_role("button", name="Make the router").click()
    expect(dialog.locator(".wrong").filter(has_text="ring.b → ring.a → ring.b")).to_be_visible()
    dialog.get_by_label("Name").fill("ring.1")
    dialog.get_by_role("button", name="Make the router").click()
    expect(dialog.get_by_text("There is a router ring.1 already.")).to_be_visible()
    dialog.get_by_label("Name").fill("")
    dialog.get_by_label("Records may come back").check()
    dialog.get_by_label("Only with the tag").fill("public*")
    dialog.get_by_label("Guarantee").select_option("exactly_once")
    axe(page)
    dialog.get_by_role("button", name="Make the router").click()
    expect(page.get_by_text("The router ring.b->ring.a copies ring.b to ring.a.")).to_be_visible()
    made = ask(server, "GET", "/v0/routers/ring.b-%3Ering.a")
    assert (made["filter"], made["allow_cycle"], made["guarantee"]) == (
        ["tag", "Glob", "public*"],
        True,
        "exactly_once",
    )
    page.get_by_role("button", name="Delete ring.b->ring.a").click()
    expect(dialog).to_contain_text("From now on nothing is copied from ring.b to ring.a.")
    dialog.get_by_label("Type").fill("ring.b->ring.a")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("The router ring.b->ring.a is gone.")).to_be_visible()
    with server.connect() as caller:
        assert caller.ask("GET", "/v0/routers/ring.b-%3Ering.a")[0] == 404
    expect(page.get_by_role("button", name="Delete ring.b->ring.a")).to_have_count(0)


def test_layers_follow_the_flow_and_ways_around_are_drawn_back(page: Page) -> None:
    go(page, "/routers")
    edges = [{"source": pair[0], "dest": pair[1]} for pair in ("ab", "bc", "ca", "cd", "ax", "xd", "ey", "fz")]
    found = page.evaluate(LAYOUT, edges)
    assert found["backward"] == ["ca"]
    assert found["layers"] == {"a": 0, "b": 1, "c": 2, "d": 3, "x": 1, "e": 0, "f": 0, "y": 1, "z": 1}
    crossed = page.evaluate(LAYOUT, [{"source": pair[0], "dest": pair[1]} for pair in ("pv", "qu", "rt")])
    order = sorted("tuv", key=lambda name: crossed["rows"][name])
    assert order == ["v", "u", "t"], "neighbours are side by side, so that no lines cross"
    long = [{"source": f"n{at}", "dest": f"n{at + 1}"} for at in range(5000)]
    assert page.evaluate(LAYOUT, long)["layers"]["n5000"] == 5000


def test_the_first_router_is_made_where_there_is_none(lab: Lab, tmp_path: Path) -> None:
    with served(tmp_path / "data") as server, visit(lab.browser, server.url) as page:
        go(page, "/routers")
        expect(page.get_by_text("No routers yet")).to_be_visible()
        page.locator(".empty").get_by_role("button", name="New router").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("From").fill("first.a")
        dialog.get_by_label("To", exact=False).first.fill("first.b")
        dialog.get_by_role("button", name="Make the router").click()
        expect(page.get_by_role("link", name="Topic first.b")).to_be_visible()
        assert ask(server, "GET", "/v0/routers")["routers"][0]["router"] == "first.a->first.b"
