"""The door of the dashboard: set-up by a link, signing in and out, and what somebody may try at it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.served import Caller, served
from tests.web.guarded import ADA, ADMIN_KEY, PASSWORD, Guarded, cookie_values, set_up_link
from tests.web.rig import Lab, axe, go, shot, visit

_SAFE = """async (paths) => {
  const { safePath } = await import("/web/frame/address.js");
  return paths.map(safePath);
}"""
JSON = "application/json"
_KEPT = "() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, location.href])"


def knock(page: Page, email: str, password: str) -> None:
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def choose(page: Page, password: str) -> None:
    page.get_by_label("Password", exact=False).first.fill(password)
    page.get_by_label("Password again").fill(password)
    page.get_by_role("button", name="and sign in").click()


# ---- links


def test_the_link_of_the_first_start_makes_an_admin_and_leaves_no_trace(lab: Lab, tmp_path: Path) -> None:
    with served(tmp_path / "data", variables={"TOPICS_AUTH": "1"}) as server, visit(lab.browser, server.url) as page:
        addresses: list[str] = []
        page.on("request", lambda request: addresses.append(request.url))
        link = set_up_link(server)
        token = link.partition("/set-up#")[2]
        page.goto(link)
        expect(page.get_by_role("heading", name="Make the first user")).to_be_visible()
        assert page.url == f"{server.url}/set-up"
        axe(page)
        shot(page, "set-up")
        page.get_by_label("E-mail").fill(ADA)
        choose(page, "short")
        expect(page.get_by_text("password must have 10 to 256 characters")).to_be_visible()
        choose(page, PASSWORD)
        page.wait_for_url(f"{server.url}/")
        expect(page.get_by_role("link", name=ADA)).to_be_visible()
        assert token not in page.evaluate(_KEPT) and token not in "".join(cookie_values(page.context).values())
        page.go_back()
        assert token not in page.url
        page.goto(link)
        expect(page.get_by_text("This link does not work any more")).to_be_visible()
        axe(page)
        assert not [address for address in addresses if token in address]
        csrf = cookie_values(page.context)["topics_csrf"]
        body = {"name": "kept nowhere", "scopes": ["read"]}
        key = page.request.post("/v1/keys", data=body, headers={"X-CSRF-Token": csrf}).json()["key"]
        with Caller(server.url, key) as caller:
            assert caller.ask("GET", "/v0/topics")[0] == 200
        assert server.stop() == 0
    secrets = [token, PASSWORD, key.rpartition("_")[2]]
    assert [line["event"] for line in server.said if any(each in json.dumps(line) for each in secrets)] == []
    kept = b"".join(file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file())
    assert b"kept nowhere" in kept and not [each for each in secrets if each.encode() in kept]


def test_a_link_of_the_command_line_leads_to_the_same_door(lab: Lab, guarded: Guarded) -> None:
    command = [sys.executable, "-m", "topics", "user", "add", "tony@example.org", "--url", guarded.url, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"TOPICS_API_KEY": ADMIN_KEY})
    link = json.loads(done.stdout)["link"]
    with visit(lab.browser, guarded.url) as page:
        page.goto(link)
        expect(page.get_by_label("E-mail")).to_have_value("tony@example.org")
        choose(page, PASSWORD)
        page.wait_for_url(f"{guarded.url}/")
        page.goto("/set-up")
        expect(page.get_by_text("This page needs a link")).to_be_visible()
        axe(page)


# ---- signing in


def test_one_is_asked_and_comes_back_to_where_one_was(lab: Lab, guarded: Guarded) -> None:
    with visit(lab.browser, guarded.url) as page:
        page.goto("/audit?action=create_key")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.get_by_label("E-mail")).to_be_focused()
        knock(page, ADA, "not this one at all")
        expect(page.get_by_text("the e-mail or the password is wrong")).to_be_visible()
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url("**/audit?action=create_key")
        expect(page.get_by_role("heading", name="Audit", level=1)).to_be_visible()
        expect(page.get_by_label("Action", exact=True)).to_have_value("create_key")


def test_the_way_back_never_leads_elsewhere(lab: Lab, guarded: Guarded) -> None:
    elsewhere = [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "javascript:canary()",
        "http://[",
        "/v0/topics",
        "\t//evil.example",
    ]
    with visit(lab.browser, guarded.url) as page:
        go(page, "/sign-in")
        assert page.evaluate(_SAFE, elsewhere) == ["/"] * len(elsewhere)
        assert page.evaluate(_SAFE, ["/topics/a%2Fb?from=1", "/keys"]) == ["/topics/a%2Fb?from=1", "/keys"]
        go(page, f"/sign-in?back={quote('//evil.example/')}")
        knock(page, ADA, PASSWORD)
        page.wait_for_url(f"{guarded.url}/")


def test_who_guesses_passwords_waits_and_sees_how_long(lab: Lab, guarded: Guarded) -> None:
    email = guarded.add("guessed@example.org", "viewer")
    with visit(lab.browser, guarded.url, extra_http_headers={"X-Forwarded-For": "10.66.6.6"}) as page:
        body = {"email": email, "password": "a guess that is wrong"}
        answers = [page.request.post("/v1/auth/login", data=body) for _ in range(6)]
        # Five are free; who is slower than the first wait, a second, has failed once more.
        assert [answer.status for answer in answers[:5]] == [401] * 5
        while answers[-1].status != 429:
            answers.append(page.request.post("/v1/auth/login", data=body))
        assert int(answers[-1].headers["retry-after"]) > 0
        # The same answer with a wait that can be seen, on a machine however busy.
        said = answers[-1].text()
        page.route(
            "**/v1/auth/login",
            lambda route: route.fulfill(status=429, body=said, headers={"Content-Type": JSON, "Retry-After": "3"}),
            times=1,
        )
        go(page, "/sign-in")
        knock(page, email, PASSWORD)
        expect(page.get_by_text("too many sign-ins that failed")).to_be_visible()
        expect(page.get_by_role("timer")).to_contain_text("Next attempt in")
        expect(page.get_by_role("button", name="Sign in")).to_be_disabled()
        expect(page.get_by_role("timer")).to_have_count(0)
        expect(page.get_by_role("button", name="Sign in")).to_be_enabled()


# ---- sessions


def test_cookies_are_out_of_reach_of_scripts_and_of_other_sites(lab: Lab, guarded: Guarded) -> None:
    with visit(lab.browser, guarded.url) as page:
        guarded.sign_in(page.context)
        go(page, "/account")
        kept = {each["name"]: each for each in page.context.cookies()}
        assert {each["sameSite"] for each in kept.values()} == {"Strict"}
        assert [name for name, each in kept.items() if not each["httpOnly"]] == ["topics_csrf"]
        assert kept["topics_refresh"]["path"] == "/v1/auth"
        read = page.evaluate("document.cookie")
        assert "topics_csrf=" in read and "topics_session" not in read and "topics_refresh" not in read


def test_a_session_that_was_planted_is_not_used(lab: Lab, guarded: Guarded) -> None:
    """Fixation: somebody's own cookies, or made-up ones, in the browser of another who then signs in."""
    mallory = guarded.add("mallory@example.org", "viewer")
    with visit(lab.browser, guarded.url) as evil, visit(lab.browser, guarded.url) as page:
        guarded.sign_in(evil.context, mallory)
        planted = evil.context.cookies()
        page.context.add_cookies(planted)
        go(page, "/sign-in")
        knock(page, ADA, PASSWORD)
        expect(page.get_by_role("link", name=ADA)).to_be_visible()
        before, after = cookie_values(evil.context), cookie_values(page.context)
        assert all(after[name] != before[name] for name in ("topics_session", "topics_refresh", "topics_csrf"))
        assert evil.request.get("/v1/auth/me").json()["name"] == mallory
        assert page.request.get("/v1/auth/me").json()["name"] == ADA
        assert evil.request.get("/v1/keys").status == 403


def test_signing_out_ends_the_session_in_every_tab_and_for_copies(lab: Lab, guarded: Guarded) -> None:
    with visit(lab.browser, guarded.url) as page, visit(lab.browser, guarded.url) as thief:
        guarded.sign_in(page.context)
        thief.context.add_cookies(page.context.cookies())
        go(page, "/account")
        other = page.context.new_page()
        go(other, "/keys")
        page.get_by_role("button", name="Sign out").click()
        for tab in (page, other):
            expect(tab.get_by_role("heading", name="Sign in")).to_be_visible()
        assert cookie_values(page.context) == {}
        assert thief.request.get("/v1/auth/me").status == 401
        assert refreshed(thief.context, guarded) == 401


def refreshed(context: BrowserContext, guarded: Guarded) -> int:
    token = cookie_values(context).get("topics_csrf", "")
    return context.request.post(f"{guarded.url}/v1/auth/refresh", data={}, headers={"X-CSRF-Token": token}).status


def test_a_session_whose_first_minutes_are_over_goes_on_by_itself(lab: Lab, guarded: Guarded) -> None:
    with visit(lab.browser, guarded.url) as page:
        guarded.sign_in(page.context)
        page.context.clear_cookies(name="topics_session")
        go(page, "/keys")
        expect(page.get_by_role("button", name="New key")).to_be_visible()
        assert "topics_session" in cookie_values(page.context)
