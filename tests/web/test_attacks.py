"""What other pages and other sites may try with the session of somebody who is signed in: nothing of it works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.e2e.browser import pages
from tests.web.guarded import Guarded
from tests.web.rig import Lab, views, visit

HTML = "text/html,application/xhtml+xml"
KEY = {"name": "stolen", "scopes": ["read"]}
_ATTACKS = """async (url) => {
  const body = JSON.stringify({ name: "stolen", scopes: ["read"] });
  const sent = { method: "POST", credentials: "include", body };
  const tried = (work) => work.then((answer) => answer.type + answer.status, (error) => error.name);
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", action: url + "/v1/keys", enctype: "text/plain", target: "nobody" });
  const field = document.createElement("input");
  Object.assign(field, { name: body.slice(0, -1) + ',"x":"', value: '"}' });
  form.append(field);
  document.body.append(form);
  form.submit();
  const socket = new Promise((resolve) => {
    const opened = new WebSocket(url.replace("http", "ws") + "/v0/ws");
    opened.onopen = () => resolve("open");
    opened.onerror = () => resolve("refused");
  });
  return {
    plain: await tried(fetch(url + "/v1/keys", { ...sent, mode: "no-cors" })),
    json: await tried(fetch(url + "/v1/keys", { ...sent, headers: { "Content-Type": "application/json" } })),
    read: await tried(fetch(url + "/v1/auth/me", { credentials: "include" })),
    logout: await tried(fetch(url + "/v1/auth/logout", { method: "POST", credentials: "include", mode: "no-cors" })),
    socket: await socket,
  };
}"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """A page of somebody else's, at the same host: cookies are sent along, whatever SameSite says."""
    (tmp_path / "index.html").write_text("<!doctype html><title>elsewhere</title><iframe name=nobody></iframe>")
    with pages(tmp_path) as origin:
        yield origin


def names(guarded: Guarded) -> list[str]:
    return [key["name"] for key in guarded.ask("GET", "/v1/keys")[1]["keys"]]


def test_a_page_of_another_origin_can_do_nothing_with_a_session(lab: Lab, guarded: Guarded, elsewhere: str) -> None:
    context = lab.browser.new_context()
    try:
        guarded.sign_in(context)
        page = context.new_page()
        page.goto(elsewhere)
        answers = page.evaluate(_ATTACKS, guarded.url)
        assert answers == {
            "plain": "opaque0",
            "json": "TypeError",
            "read": "TypeError",
            "logout": "opaque0",
            "socket": "refused",
        }
        assert "stolen" not in names(guarded)
        assert context.request.get(f"{guarded.url}/v1/auth/me").status == 200, "it was not signed out"
    finally:
        context.close()


def test_what_changes_something_needs_the_token_of_its_session(lab: Lab, guarded: Guarded) -> None:
    with visit(lab.browser, guarded.url) as page, visit(lab.browser, guarded.url) as other:
        token = guarded.sign_in(page.context)
        others = guarded.sign_in(other.context)

        def ask(**headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return page.request.post("/v1/keys", data=KEY, headers=named).status

        assert ask() == 403
        assert ask(X_CSRF_Token="made up") == 403
        assert ask(X_CSRF_Token=others) == 403
        assert ask(X_CSRF_Token=token, Origin="http://evil.example") == 403
        assert "stolen" not in names(guarded)
        assert ask(X_CSRF_Token=token, Origin=guarded.url) == 201


def test_no_other_page_has_the_dashboard_in_a_frame(lab: Lab, guarded: Guarded, elsewhere: str) -> None:
    context = lab.browser.new_context()
    try:
        guarded.sign_in(context)
        page = context.new_page()
        page.goto(elsewhere)
        with page.expect_event("framenavigated", lambda frame: frame != page.main_frame) as shown:
            page.locator("iframe").evaluate("(frame, url) => { frame.src = url; }", f"{guarded.url}/keys")
        assert shown.value.url.startswith("chrome-error:")
    finally:
        context.close()


def test_every_page_says_that_it_is_for_no_frame(page: Page) -> None:
    paths = [path.replace(":", "") for path, _ in views()]
    for path in [*paths, "/nowhere", "/v0/docs"]:
        answer: Any = page.request.get(path, headers={"Accept": HTML})
        assert answer.headers["content-type"].startswith("text/html"), path
        assert answer.headers["x-frame-options"] == "DENY", path
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], path
        assert answer.headers["x-content-type-options"] == "nosniff", path
