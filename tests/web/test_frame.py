"""The frame around the views: moving about, the palette, keys, themes, a phone, and a server that is away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.served import Served, served
from tests.web.guarded import ADA, PASSWORD, Guarded
from tests.web.rig import PHONE, THEMES, Lab, as_phone, axe, difference, fits, go, in_theme, look, ready, shot, visit

MENU = "nav.menu"


def current(page: Page) -> str:
    return page.locator(f"{MENU} [aria-current=page]").inner_text()


def test_the_menu_leads_everywhere_without_loading_the_page_again(page: Page) -> None:
    go(page, "/")
    page.evaluate("window.here = true")
    for name, path in (("Settings", "/settings"), ("Topics", "/topics"), ("Overview", "/")):
        page.locator(MENU).get_by_role("link", name=name, exact=True).click()
        expect(page).to_have_url(re.compile(f"{path}$"))
        ready(page)
        expect(page.locator("main h1")).to_have_text(name)
        expect(page).to_have_title(f"{name} · topics")
        assert current(page) == name and page.evaluate("document.activeElement.id") == "main"
    page.go_back()
    expect(page.locator("main h1")).to_have_text("Topics")
    assert page.evaluate("window.here"), "it was one page all the time"


def test_links_that_lead_out_are_left_alone(page: Page, server: Served) -> None:
    go(page, "/")
    page.evaluate("document.querySelector('main h1').innerHTML = '<a href=\"/v0/docs\">docs</a>'")
    page.get_by_role("link", name="docs").click()
    expect(page).to_have_url(f"{server.url}/v0/docs")
    expect(page.locator("h1")).to_contain_text("topics")


def test_an_address_that_is_no_view(page: Page, server: Served) -> None:
    go(page, "/")
    page.evaluate("history.pushState(null, '', '/nowhere?<b>'); dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.locator("main h1")).to_have_text("Not there")
    expect(page.locator("main")).to_contain_text("Nothing is at /nowhere")
    page.get_by_role("link", name="To the overview").click()
    expect(page).to_have_url(f"{server.url}/")


def test_the_palette_finds_views_topics_and_actions(page: Page, server: Served) -> None:
    with server.connect() as caller:
        caller.ask("POST", "/v0/topics/palette:found", {"records": [{"data": 1}]})
        caller.ask("PUT", "/v0/topics/palette-jobs", {"type": "queue"})
    go(page, "/")
    page.keyboard.press("Control+k")
    options = page.get_by_role("option")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    axe(page)
    page.keyboard.type("palette")
    expect(options).to_have_count(2)
    expect(options.nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]").inner_text()
    page.keyboard.press("Enter")
    place = "/topics/palette%3Afound" if "found" in chosen else "/queues/palette-jobs"
    expect(page).to_have_url(f"{server.url}{place}")
    ready(page)
    page.locator("main").press("/")
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("combobox")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.keyboard.type("nothing is called that")
    expect(page.locator(".palette-said")).to_have_text("Nothing has that in its name.")
    page.keyboard.press("Escape")
    expect(page.get_by_role("combobox")).to_have_count(0)


def test_the_palette_that_is_opened_in_the_moment_it_closes_stays(page: Page) -> None:
    go(page, "/")
    page.keyboard.press("Control+k")
    page.keyboard.type("sett")
    page.evaluate("""() => {
        document.querySelector("dialog.palette").close();
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
        return new Promise((told) => setTimeout(told));
    }""")
    search = page.get_by_role("combobox", name="Search")
    expect(search).to_be_focused()
    expect(search).to_have_value("")
    page.keyboard.type("overv")
    expect(page.get_by_role("option")).to_have_text(["Overviewg o"])
    page.keyboard.press("Escape")
    expect(page.locator("dialog.palette")).to_have_count(0)


def test_keys_lead_to_views_and_are_listed(page: Page, server: Served) -> None:
    go(page, "/")
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page).to_have_url(f"{server.url}/settings")
    ready(page)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Dead letters")
    axe(page)
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    page.locator("main input").first.focus()
    page.keyboard.type("go")
    expect(page).to_have_url(f"{server.url}/settings")
    assert page.locator("main input").first.input_value() == "go", "whoever types is not taken away"


def test_a_theme_is_the_systems_until_one_is_chosen_and_then_kept(page: Page) -> None:
    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

    go(page, "/settings")
    light = ground()
    in_theme(page, "dark")
    dark = ground()
    assert light != dark
    page.get_by_role("button", name="Theme").click()
    expect(page.get_by_role("button", name="Theme")).to_have_text("Theme: light")
    assert ground() == light
    page.reload()
    ready(page)
    assert ground() == light, "kept"
    page.get_by_role("button", name="Theme").click()
    in_theme(page, "light")
    assert ground() == dark
    page.get_by_role("button", name="Theme").click()
    assert ground() == light and page.evaluate("localStorage.getItem('topics-theme')") is None


def test_on_a_phone_the_menu_is_a_drawer(lab: Lab, server: Served) -> None:
    with visit(lab.browser, server.url, size=PHONE) as page:
        go(page, "/settings")
        fits(page)
        expect(page.locator(MENU)).not_to_be_visible()
        page.get_by_role("button", name="Menu").click()
        expect(page.locator(MENU)).to_be_visible()
        axe(page)
        shot(page, "menu-phone")
        page.keyboard.press("Escape")
        expect(page.locator(MENU)).not_to_be_visible()
        expect(page.get_by_role("button", name="Menu")).to_be_focused()
        page.get_by_role("button", name="Menu").click()
        page.locator(MENU).get_by_role("link", name="Topics", exact=True).click()
        ready(page)
        expect(page.locator(MENU)).not_to_be_visible()
        expect(page.locator("main h1")).to_have_text("Topics")


def test_tab_reaches_the_content_first(page: Page) -> None:
    go(page, "/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_server_that_is_away_is_told_and_comes_back(lab: Lab, tmp_path: Path) -> None:
    with served(tmp_path / "data") as first:
        with first.connect() as caller:
            caller.ask("POST", "/v0/topics/orders", {"records": [{"data": 1}]})
        port = int(first.url.rpartition(":")[2])
        with visit(lab.browser, first.url) as page:
            go(page, "/")
            first.kill()
            away = page.locator(".away")
            expect(away).to_contain_text("has not answered since")
            expect(page.locator("main .stat").first).to_be_visible()
            axe(page)
            shot(page, "away")
            with served(tmp_path / "data", port=port):
                expect(away).not_to_be_visible()
                page.locator(MENU).get_by_role("link", name="Topics", exact=True).click()
                expect(page.locator("main")).to_contain_text("orders")


def test_who_is_not_signed_in_is_led_there_and_back(lab: Lab, guarded: Guarded) -> None:
    with visit(lab.browser, guarded.url) as page:
        page.goto("/topics?contains=a")
        expect(page).to_have_url(re.compile(r"/sign-in\?back=%2Ftopics%3Fcontains%3Da$"))
        expect(page.locator(MENU)).not_to_be_visible()
        page.get_by_label("E-mail").fill(ADA)
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/topics\?contains=a$"))
        expect(page.locator(MENU)).to_contain_text(ADA)


def test_a_session_that_ran_out_is_refreshed_once(admin: Page) -> None:
    go(admin, "/topics")
    admin.context.clear_cookies(name="topics_session")
    refreshes: list[str] = []
    admin.on("request", lambda sent: refreshes.append(sent.url) if sent.url.endswith("/refresh") else None)
    admin.locator(MENU).get_by_role("link", name="Overview", exact=True).click()
    expect(admin.locator("main .stat").first).to_be_visible()
    ready(admin)
    assert len(refreshes) == 1, "three requests were refused, and one refresh was enough"


def test_signing_out_is_for_all_tabs(admin: Page, guarded: Guarded) -> None:
    admin.context.clear_cookies()
    guarded.sign_in(admin.context)
    go(admin, "/topics")
    other = admin.context.new_page()
    go(other, "/settings")
    admin.get_by_role("button", name="Sign out").click()
    expect(admin).to_have_url(re.compile("/sign-in"))
    expect(other).to_have_url(re.compile("/sign-in"))


@pytest.mark.parametrize("theme", THEMES)
def test_the_same_page_looks_the_same_twice(lab: Lab, server: Served, theme: str) -> None:
    pictures, regions = [], []
    for _ in range(2):
        with visit(lab.browser, server.url, theme=theme) as page:
            page.clock.set_fixed_time("2026-01-02T03:04:05Z")
            go(page, "/settings")
            regions.append(look(page, "regions"))
            pictures.append(shot(page, f"frame-{theme}"))
            if len(pictures) == 2:
                assert difference(page, *pictures) < 0.001
                page.evaluate("document.querySelector('main h1').remove()")
                assert difference(page, pictures[0], page.screenshot()) > 0.001, "what is missing is seen"
    assert regions[0] == regions[1] and regions[0]["menu"][:2] == [0, 0] and regions[0]["main"][0] >= 216


def test_a_phone_has_the_bar_instead_of_the_menu(page: Page) -> None:
    go(page, "/settings")
    wide = look(page, "regions")
    as_phone(page)
    narrow = look(page, "regions")
    assert wide["bar"][2] == 0 and narrow["bar"][2] == narrow["main"][2] == PHONE["width"]
