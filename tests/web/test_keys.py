"""Keys in the dashboard: made, shown once, used, revoked."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.web.guarded import Guarded
from tests.web.rig import Lab, as_phone, axe, fits, go, in_theme, shot, visit

_KEPT = (
    "() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, location.href, document.cookie])"
)


def make(page: Page, name: str, *scopes: str, prefix: str = "", days: str = "It does not end") -> str:
    """Make a key by the form; the key as it is shown."""
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name", exact=False).first.fill(name)
    for scope in scopes:
        page.get_by_label(f"May {scope}").check()
    page.get_by_label("Only names that begin with").fill(prefix)
    page.get_by_label("Ends after").select_option(label=days)
    page.get_by_role("button", name="Make the key").click()
    shown = page.get_by_label("Key", exact=True)
    expect(shown).to_be_focused()
    return shown.input_value()


def test_a_key_is_made_shown_once_and_works(admin: Page, guarded: Guarded) -> None:
    addresses: list[str] = []
    admin.on("request", lambda request: addresses.append(request.url))
    admin.context.grant_permissions(["clipboard-read", "clipboard-write"])
    go(admin, "/keys")
    key = make(admin, "shop writer", "write", prefix="shop.", days="90 days")
    assert key.startswith("dh_")
    admin.get_by_role("button", name="Copy the key").click()
    expect(admin.get_by_text("Copied.")).to_be_visible()
    assert admin.evaluate("navigator.clipboard.readText()") == key
    axe(admin)
    shot(admin, "key-once")
    admin.get_by_role("button", name="I have kept it").click()
    line = admin.get_by_role("row").filter(has_text="shop writer")
    for text in ("active", "read", "write", "shop.*", "never", "by ada@example.org", "in 89 d"):
        expect(line).to_contain_text(text)
    assert guarded.ask("POST", "/v0/topics/shop.orders", {"records": [{"data": 1}]}, key)[0] == 201
    assert guarded.ask("POST", "/v0/topics/other", {"records": [{"data": 1}]}, key)[0] == 403
    assert key not in admin.content() and key not in admin.evaluate(_KEPT)
    assert not [address for address in addresses if key in address]


def test_a_key_is_revoked_by_its_name(admin: Page, guarded: Guarded) -> None:
    with guarded.client() as client:
        made = client.keys.create('a "quoted" name', ["read"])
    go(admin, "/keys")
    admin.get_by_role("button", name='Revoke a "quoted" name').click()
    go_on = admin.get_by_role("button", name="Revoke", exact=True)
    expect(go_on).to_be_disabled()
    admin.get_by_label("Type").fill("a quoted name")
    expect(go_on).to_be_disabled()
    expect(admin.get_by_role("dialog")).to_contain_text("It was never used.")
    admin.get_by_label("Type").fill('a "quoted" name')
    go_on.click()
    line = admin.get_by_role("row").filter(has_text='a "quoted" name')
    expect(line).to_contain_text("revoked")
    expect(line.get_by_role("button")).to_have_count(0)
    assert guarded.ask("GET", "/v0/topics", None, made.key)[0] == 401


def test_what_the_server_refuses_stands_in_the_form(admin: Page) -> None:
    go(admin, "/keys")
    admin.get_by_role("button", name="New key").click()
    admin.get_by_role("button", name="Make the key").click()
    expect(admin.get_by_text("This is needed.")).to_be_visible()
    admin.get_by_label("Name", exact=False).first.fill("nothing")
    admin.get_by_label("May read").uncheck()
    admin.get_by_role("button", name="Make the key").click()
    expect(admin.get_by_role("dialog").get_by_role("alert").filter(has_text="scopes")).to_be_visible()
    admin.keyboard.press("Escape")
    expect(admin.get_by_role("dialog")).to_have_count(0)
    expect(admin.get_by_role("button", name="New key")).to_be_focused()


def test_by_keyboard_alone(admin: Page, guarded: Guarded) -> None:
    go(admin, "/")
    admin.keyboard.press("g")
    admin.keyboard.press("k")
    expect(admin.get_by_role("heading", name="Keys", level=1)).to_be_visible()
    new = admin.get_by_role("button", name="New key")
    new.focus()
    admin.keyboard.press("Enter")
    admin.keyboard.type("typed")
    admin.keyboard.press("Tab")
    admin.keyboard.press("Tab")
    admin.keyboard.press("Space")
    admin.keyboard.press("Enter")
    expect(admin.get_by_label("Key", exact=True)).to_be_focused()
    admin.keyboard.press("Escape")
    expect(admin.get_by_role("row").filter(has_text="typed")).to_be_visible()
    with guarded.client() as client:
        assert [key.scopes for key in client.keys.list() if key.name == "typed"] == [("read", "write")]


def test_who_is_no_admin_sees_what_is_missing(lab: Lab, guarded: Guarded) -> None:
    guarded.add("viewer.of.keys@example.org", "viewer")
    with visit(lab.browser, guarded.url) as page:
        guarded.sign_in(page.context, "viewer.of.keys@example.org")
        go(page, "/keys")
        expect(page.get_by_role("alert")).to_contain_text("scope admin")
        expect(page.get_by_role("link", name="Keys", exact=True)).to_have_count(0)


def test_it_looks_right_in_the_dark_and_on_a_phone(admin: Page, guarded: Guarded) -> None:
    with guarded.client() as client:
        scopes = ["read", "write", "delete", "admin"]
        client.keys.create("the nightly export of all orders", scopes, prefixes=["a.", "b."])
    in_theme(admin, "dark")
    go(admin, "/keys")
    axe(admin)
    fits(admin)
    as_phone(admin)
    fits(admin)
    shot(admin, "keys-guarded-phone")


def test_where_nobody_is_asked_it_says_so(page: Page) -> None:
    go(page, "/keys")
    expect(page.get_by_text("Authentication is off")).to_be_visible()
    axe(page)
