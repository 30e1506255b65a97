"""Hostile text in every string that a user can choose, on every view: it is shown as what it is, and nothing runs."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.web import hostile
from tests.web.hostile import (
    ADDRESS,
    COPY,
    EMAIL,
    EVIL,
    FOUND,
    GROUP,
    HEAP,
    NOTHING,
    PIPELINE,
    QUEUE,
    TEXTS,
    TOPIC,
)
from tests.web.rig import Lab, go, ready, views, visit

PATHS = sorted({path for path, _ in views()})
SHOWN = {
    "/account": [EVIL],
    "/audit": [EVIL, TOPIC],
    "/dead": [HEAP],
    "/dead/:topic": [EVIL],
    "/groups": [TOPIC, GROUP],
    "/groups/:topic/:group": [EVIL],
    "/heaps": [HEAP],
    "/heaps/:topic": [EVIL, "</script><script>canary()</script>", "<svg/onload=canary()>"],
    "/keys": [EVIL],
    "/pipelines": [EVIL, PIPELINE, ADDRESS],
    "/pipelines/:name": [*TEXTS, ADDRESS],
    "/queues": [QUEUE],
    "/queues/:topic": [EVIL],
    "/routers": [TOPIC, COPY],
    "/settings": [EVIL],
    "/topics": [TOPIC],
    "/topics/:topic": [*TEXTS],
    "/users": [EMAIL],
}
"""What must be there to be read, of the views that show what users chose."""
_TEXT = """() => [
    document.querySelector("main").innerText,
    ...[...document.querySelectorAll("input, textarea")].map((field) => field.value),
].join("\\n")"""
_GO = "(path) => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }"
_UNFOLD = "() => document.querySelectorAll('main details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def victim(lab: Lab) -> Iterator[Page]:
    """An admin of a server that is full of hostile text, with a canary in the page."""
    guarded = lab.guarded
    with guarded.client() as client:
        hostile.fill(client)
    with visit(lab.browser, guarded.url) as page:
        page.context.add_init_script(hostile.CANARY)
        wrong = {"email": EVIL, "password": EVIL}
        page.request.post("/v1/auth/login", data=wrong, headers={"User-Agent": EVIL, "X-Forwarded-For": EVIL})
        evil = lab.browser.new_context(user_agent=EVIL)
        guarded.sign_in(evil)
        evil.close()
        guarded.sign_in(page.context)
        yield page


def looked_at(page: Page) -> str:
    """All that a view has to show, behind its tabs and folds as well; nothing of it may have become more than text."""
    seen = []
    for tab in [None, *page.locator("main [role=tab]").all()]:
        if tab is not None:
            tab.click()
            ready(page)
        page.evaluate(_UNFOLD)
        seen.append(page.evaluate(_TEXT))
        assert page.evaluate(FOUND) == NOTHING
    return "\n".join(seen)


@pytest.mark.parametrize("path", PATHS)
def test_a_view_shows_it_as_text(victim: Page, path: str) -> None:
    go(victim, hostile.ADDRESSES.get(path, path))
    seen = looked_at(victim)
    assert [text for text in SHOWN.get(path, []) if text not in seen] == []


def test_details_results_and_errors_show_it_as_text(victim: Page) -> None:
    go(victim, "/audit?outcome=unauthorized&action=sign_in")
    victim.get_by_role("button", name="Details").first.click()
    expect(victim.get_by_role("dialog")).to_contain_text(EVIL)
    assert victim.evaluate(FOUND) == NOTHING
    for text, shown in ((f"SELECT '{EVIL}' AS \"{TEXTS[4]}\"", TEXTS[4]), (f"SELECT {EVIL}", "<img")):
        go(victim, f"/sql?sql={quote(text)}")
        victim.get_by_role("button", name="Run", exact=True).click()
        expect(victim.locator(".output")).to_contain_text(shown)
        assert victim.evaluate(FOUND) == NOTHING


def test_the_palette_shows_it_as_text(victim: Page) -> None:
    go(victim, "/settings")
    for text in ("javascript", "constructor", EVIL):
        victim.keyboard.press("Control+k")
        victim.get_by_role("combobox", name="Search").fill(text)
        expect(victim.locator(".palette-list, .palette-said").filter(has_text="o").first).to_be_visible()
        assert victim.evaluate(FOUND) == NOTHING
        victim.keyboard.press("Escape")


def test_an_address_that_is_hostile_itself_is_shown_as_text(victim: Page) -> None:
    go(victim, "/settings")
    name = quote(EVIL, safe="")
    for path in (f"/topics/{name}", f"/queues/{name}", f"/pipelines/{name}", f"/nowhere/{name}", f"/audit?text={name}"):
        victim.evaluate(_GO, path)
        ready(victim)
        assert victim.evaluate(FOUND) == NOTHING
        assert "img" in victim.evaluate(_TEXT)
