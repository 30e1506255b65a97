"""The settings in the dashboard: values in effect, where they came from, and nothing of secrets."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.web.guarded import ADMIN_KEY, Guarded
from tests.web.rig import go
from topics.settings import TABLE


def test_every_setting_has_its_value_and_where_that_came_from(admin: Page, guarded: Guarded) -> None:
    go(admin, "/settings")
    rows = admin.get_by_role("row")
    expect(rows).to_have_count(len(TABLE) + 1)
    expect(admin.get_by_text(f"{len(TABLE)} settings of {len(TABLE)}")).to_be_visible()
    for setting, texts in (
        ("TOPICS_DATA_DIR", (str(guarded.directory), "path", "--data-dir", "./data")),
        ("TOPICS_AUTH", ("true", "TOPICS_AUTH", "false")),
        ("TOPICS_API_KEYS", ("secret", "set", "TOPICS_API_KEYS")),
        ("TOPICS_DISK_SYNC_MS", ("time", "default")),
    ):
        line = rows.filter(has=admin.get_by_text(setting, exact=True)).first
        for text in texts:
            expect(line).to_contain_text(text)


def test_no_secret_is_anywhere(admin: Page) -> None:
    with admin.expect_response("**/v0/settings") as waited:
        go(admin, "/settings")
    assert ADMIN_KEY not in waited.value.text() and ADMIN_KEY not in admin.content()
    assert waited.value.headers["cache-control"] == "no-store"


def test_they_are_searched(admin: Page) -> None:
    go(admin, "/settings")
    search = admin.get_by_label("Search", exact=True).last
    search.fill("disk sync")
    shown = admin.locator("tbody tr")
    expect(shown.first).to_contain_text("sync")
    assert all("sync" in text.lower() and "disk" in text.lower() for text in shown.all_inner_texts())
    search.fill("no such setting")
    expect(admin.get_by_text("No setting fits.")).to_be_visible()
    search.fill("")
    admin.get_by_label("Only what is not the default").check()
    expect(admin.get_by_role("row").filter(has_text="TOPICS_HOST")).to_have_count(0)
    expect(admin.get_by_role("row").filter(has_text="TOPICS_DATA_DIR")).to_be_visible()
