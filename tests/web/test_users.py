"""Users in the dashboard: invited by a link, given roles, disabled, removed."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.web.guarded import ADA, PASSWORD, Guarded
from tests.web.rig import Lab, as_phone, axe, fits, go, in_theme, shot, visit


def line_of(page: Page, email: str) -> Locator:
    return page.get_by_role("row").filter(has_text=email)


def answer(page: Page, email: str, action: str) -> None:
    """Type the name that the dialog asks for, and go on."""
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name=action, exact=True)).to_be_disabled()
    dialog.get_by_label("Type").fill(email)
    dialog.get_by_role("button", name=action, exact=True).click()


def test_an_invitation_is_shown_once_and_leads_to_an_account(admin: Page, lab: Lab, guarded: Guarded) -> None:
    email = "grace@example.org"
    go(admin, "/users")
    admin.get_by_role("button", name="Invite").click()
    admin.get_by_label("E-mail").fill("Grace@Example.org ")
    admin.get_by_label("Role", exact=True).select_option("operator")
    admin.get_by_role("dialog").get_by_role("button", name="Invite").click()
    link = admin.get_by_label("Link", exact=True).input_value()
    assert link.startswith(f"{guarded.url}/set-up#")
    axe(admin)
    admin.get_by_role("button", name="I have kept it").click()
    for text in ("operator", "invited", "link good until"):
        expect(line_of(admin, email)).to_contain_text(text)
    assert link.partition("#")[2] not in admin.content()
    with visit(lab.browser, guarded.url) as page:
        page.goto(link)
        expect(page.get_by_label("E-mail")).to_have_value(email)
        page.get_by_label("Password", exact=False).first.fill(PASSWORD)
        page.get_by_label("Password again").fill(PASSWORD)
        page.get_by_role("button", name="Set the password").click()
        page.wait_for_url(f"{guarded.url}/")
        expect(page.get_by_role("link", name=email)).to_be_visible()
        # What an operator may not see is not offered.
        expect(page.get_by_role("link", name="Users", exact=True)).to_have_count(0)
    expect(line_of(admin, email)).to_contain_text("active")


def test_roles_links_and_the_end_of_an_account(admin: Page, guarded: Guarded) -> None:
    email = guarded.add("edsger@example.org", "viewer")
    go(admin, "/users")
    admin.get_by_role("button", name=f"Role: {email}").click()
    admin.get_by_label("Role", exact=True).select_option("admin")
    admin.get_by_role("button", name="Give this role").click()
    expect(line_of(admin, email)).to_contain_text("admin")
    admin.get_by_role("button", name=f"Disable: {email}").click()
    expect(admin.get_by_role("dialog")).to_contain_text("0 sessions will end now")
    answer(admin, email, "Disable")
    expect(line_of(admin, email)).to_contain_text("disabled")
    assert guarded.ask("POST", "/v1/auth/login", {"email": email, "password": PASSWORD}, None)[0] == 401
    admin.get_by_role("button", name=f"Enable: {email}").click()
    expect(line_of(admin, email)).to_contain_text("active")
    admin.get_by_role("button", name=f"New link: {email}").click()
    admin.get_by_role("button", name="Make the link").click()
    assert admin.get_by_label("Link", exact=True).input_value().startswith(f"{guarded.url}/set-up#")
    admin.keyboard.press("Escape")
    admin.get_by_role("button", name=f"Remove: {email}").click()
    answer(admin, email, "Remove")
    expect(line_of(admin, email)).to_have_count(0)
    assert guarded.ask("GET", f"/v1/users/{email}")[0] == 404


def test_nobody_changes_themselves(admin: Page) -> None:
    go(admin, "/users")
    own = line_of(admin, ADA)
    expect(own).to_contain_text("that is you")
    expect(own.get_by_role("button")).to_have_count(0)
    own.get_by_role("link", name="that is you").click()
    expect(admin.get_by_role("heading", name="Account", level=1)).to_be_visible()


def test_what_is_refused_is_said_word_for_word(admin: Page, guarded: Guarded) -> None:
    go(admin, "/users")
    admin.get_by_role("button", name="Invite").click()
    admin.get_by_label("E-mail").fill(ADA)
    admin.get_by_role("dialog").get_by_role("button", name="Invite").click()
    said = guarded.ask("POST", "/v1/users", {"email": ADA})[1]["error"]["message"]
    expect(admin.get_by_role("dialog")).to_contain_text(said)
    admin.get_by_label("E-mail").fill("no address")
    admin.get_by_role("dialog").get_by_role("button", name="Invite").click()
    expect(admin.get_by_label("E-mail")).to_have_attribute("aria-invalid", "true")


def test_it_looks_right_in_the_dark_and_on_a_phone(admin: Page) -> None:
    in_theme(admin, "dark")
    go(admin, "/users")
    axe(admin)
    fits(admin)
    as_phone(admin)
    fits(admin)
    shot(admin, "users-guarded-phone")


def test_without_users_it_teaches_how_to_begin(page: Page) -> None:
    go(page, "/users")
    expect(page.get_by_text("No users yet")).to_be_visible()
    expect(page.get_by_text("topics user add ada@example.org --role admin")).to_be_visible()
    axe(page)
