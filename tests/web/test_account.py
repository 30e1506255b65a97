"""One's own account in the dashboard: the password, and where one is signed in."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.web.guarded import PASSWORD, Guarded
from tests.web.rig import Lab, as_phone, axe, fits, go, in_theme, shot, visit

OTHER = "another horse entirely"


def test_sessions_are_seen_and_ended(lab: Lab, guarded: Guarded) -> None:
    email = guarded.add("barbara@example.org", "viewer")
    phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Mobile Safari/604.1"
    with (
        visit(lab.browser, guarded.url) as here,
        visit(lab.browser, guarded.url, user_agent=phone, extra_http_headers={"X-Forwarded-For": "10.9.8.7"}) as there,
        visit(lab.browser, guarded.url, user_agent="<b>curl</b>/8") as third,
    ):
        for page in (here, there, third):
            guarded.sign_in(page.context, email)
        go(here, "/account")
        expect(here.get_by_role("row").filter(has_text="Chrome on Linux")).to_contain_text("this one")
        expect(here.get_by_role("row").filter(has_text="<b>curl</b>/8")).to_contain_text("127.0.0.1")
        expect(here.get_by_role("row").filter(has_text="Safari on iOS")).to_contain_text("10.9.8.7")
        go(there, "/account")
        here.get_by_role("button", name="End the session from 10.9.8.7").click()
        expect(here.get_by_role("row")).to_have_count(3)
        # Whoever had it is at the door with the next thing they do.
        there.get_by_role("link", name="Topics", exact=True).click()
        expect(there.get_by_role("heading", name="Sign in")).to_be_visible()
        here.get_by_role("button", name="End all others").click()
        expect(here.get_by_role("dialog")).to_contain_text("1 session will end")
        here.get_by_role("button", name="End them").click()
        expect(here.get_by_role("row")).to_have_count(2)
        expect(here.get_by_role("button", name="End all others")).to_be_disabled()
        assert third.context.request.get(f"{guarded.url}/v1/auth/me").status == 401


def test_a_new_password_ends_all_other_sessions(lab: Lab, guarded: Guarded) -> None:
    email = guarded.add("donald@example.org", "viewer")
    with visit(lab.browser, guarded.url) as here, visit(lab.browser, guarded.url) as there:
        for page in (here, there):
            guarded.sign_in(page.context, email)
        go(here, "/account")
        change = here.get_by_role("button", name="Change the password")
        here.get_by_label("Current password").fill(OTHER)
        here.get_by_label("New password", exact=False).first.fill(OTHER)
        here.get_by_label("New password again").fill("not that one")
        change.click()
        expect(here.get_by_text("The two passwords are not the same.")).to_be_visible()
        here.get_by_label("New password again").fill(OTHER)
        change.click()
        expect(here.get_by_text("the current password is wrong")).to_be_visible()
        expect(here.get_by_label("Current password")).to_be_focused()
        here.get_by_label("Current password").fill(PASSWORD)
        change.click()
        expect(here.get_by_text("The password is changed")).to_be_visible()
        expect(here.get_by_label("Current password")).to_have_value("")
        assert there.context.request.get(f"{guarded.url}/v1/auth/me").status == 401
        assert here.context.request.get(f"{guarded.url}/v1/auth/me").status == 200
        guarded.sign_in(there.context, email, OTHER)


def test_it_looks_right_in_the_dark_and_on_a_phone(admin: Page) -> None:
    in_theme(admin, "dark")
    go(admin, "/account")
    axe(admin)
    fits(admin)
    as_phone(admin)
    fits(admin)
    shot(admin, "account-guarded-phone")


def test_where_nobody_signs_in_it_teaches_how(page: Page) -> None:
    go(page, "/account")
    expect(page.get_by_text("Nobody is signed in")).to_be_visible()
    expect(page.get_by_text("TOPICS_AUTH=1 topics serve")).to_be_visible()
    axe(page)
