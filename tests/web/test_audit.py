"""The audit log in the dashboard: searched, paged back, looked at, verified."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.web.guarded import Guarded
from tests.web.rig import as_phone, axe, fits, go, in_theme, shot

_LINES = """async (pages) => {
  const { Lines } = await import("/web/views/audit/lines.js");
  const lines = new Lines();
  return pages.map(([verb, seqs, cursor]) => {
    lines[verb]({ entries: seqs.map((seq) => ({ seq })), next_cursor: cursor });
    return [lines.entries.map(({ seq }) => seq), lines.cursor];
  });
}"""


def search(page: Page, **fields: str) -> None:
    form = page.get_by_role("search")
    for label, text in fields.items():
        form.get_by_label(label, exact=True).fill(text)
    form.get_by_role("button", name="Search").click()


def test_lines_are_found_by_any_of_their_parts(admin: Page, guarded: Guarded) -> None:
    with guarded.client() as client:
        client.keys.create("audited one")
        client.keys.create("audited two", ["write"])
        client.topic("audited.topic").create()
        client.topic("audited.topic").drop()
    go(admin, "/audit")
    rows = admin.locator("tbody tr")
    search(admin, Action="create_key", Anywhere="AUDITED")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("audited two")
    assert "action=create_key" in admin.url and "text=AUDITED" in admin.url
    admin.get_by_role("button", name="Clear").click()
    search(admin, To="audited.topic", Who="key-1")
    expect(rows.filter(has_text="DELETE /v0/topics/{topic}")).to_have_count(2)
    admin.go_back()
    admin.go_back()
    expect(rows).to_have_count(4)
    go(admin, "/audit?outcome=no_such_outcome")
    expect(admin.get_by_text("Nothing fits")).to_be_visible()
    search(admin, Outcome="", **{"Not before": "2001-01-01T00:00:00", "Before": "2001-01-02T00:00:00"})
    expect(admin.get_by_text("Nothing fits")).to_be_visible()
    assert "from_ts=978307200000" in admin.url


def test_a_line_is_shown_whole(admin: Page, guarded: Guarded) -> None:
    with guarded.client() as client:
        client.keys.create("shown whole", ["read", "write"], prefixes=["a."])
    go(admin, "/audit?action=create_key&name=shown%20whole&outcome=done")
    admin.get_by_role("button", name="Details").click()
    dialog = admin.get_by_role("dialog")
    for text in ('"scopes"', '"write"', '"previous"', '"hash"', '"request_id"'):
        expect(dialog).to_contain_text(text)
    axe(admin)


def test_older_lines_come_by_pages(admin: Page, guarded: Guarded) -> None:
    with guarded.client() as client:
        for number in range(120):
            client.topic(f"paged.{number:03d}").create()
    go(admin, "/audit?action=PUT%20%2Fv0%2Ftopics&text=paged.&outcome=done")
    rows = admin.locator("tbody tr")
    expect(rows).to_have_count(100)
    expect(rows.first).to_contain_text("paged.119")
    admin.get_by_role("button", name="Older").click()
    expect(rows).to_have_count(120)
    expect(rows.last).to_contain_text("paged.000")
    expect(admin.get_by_text("That is all there is.")).to_be_visible()
    expect(admin.get_by_role("button", name="Older")).to_be_hidden()


def test_new_lines_join_what_is_there_or_begin_it_anew(admin: Page) -> None:
    go(admin, "/audit")
    pages = [
        ("takeNewest", [5, 4], "4"),
        ("takeOlder", [3, 2], "2"),
        ("takeNewest", [6, 5], "5"),
        ("takeNewest", [], "7"),
        ("takeNewest", [9, 8], "8"),
    ]
    assert admin.evaluate(_LINES, pages) == [
        [[5, 4], "4"],
        [[5, 4, 3, 2], "2"],
        [[6, 5, 4, 3, 2], "2"],
        [[6, 5, 4, 3, 2], "2"],
        [[9, 8], "8"],
    ]


def test_the_chain_is_verified_and_drawn(admin: Page, guarded: Guarded) -> None:
    go(admin, "/audit")
    admin.get_by_role("button", name="Verify").click()
    expect(admin.get_by_role("img", name="A chain without a gap")).to_be_visible()
    expect(admin.locator(".verdict code")).to_contain_text(guarded.ask("GET", "/v1/audit/verify")[1]["last_hash"])
    axe(admin)
    shot(admin, "audit-verified")
    file = guarded.directory / "audit" / "audit.jsonl"
    written = file.read_bytes()
    try:
        file.write_bytes(written.replace(b'"action":"set_up"', b'"action":"set_uq"', 1))
        admin.get_by_role("button", name="Verify").click()
        expect(admin.get_by_role("img", name="A chain that is broken")).to_be_visible()
        expect(admin.get_by_text("not intact")).to_be_visible()
        expect(admin.locator(".verdict .problem")).to_contain_text("audit.jsonl, line 1")
        axe(admin)
        shot(admin, "audit-broken")
    finally:
        file.write_bytes(written)


def test_it_looks_right_in_the_dark_and_on_a_phone(admin: Page) -> None:
    in_theme(admin, "dark")
    go(admin, "/audit")
    axe(admin)
    fits(admin)
    as_phone(admin)
    fits(admin)
    shot(admin, "audit-guarded-phone")
