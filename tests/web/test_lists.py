"""Tables, and lists too long for one, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.kitpage import PLACE, made
from tests.web.rig import axe


def test_a_table_sorts_and_keeps_the_focus_and_the_choice_when_rows_change(kit: Page) -> None:
    body = """
      const link = (name) => h("a", { href: "/topics" }, name);
      const doer = (click) => h("button", { type: "button", on: { click } }, "Do");
      window.told = [];
      window.list = kit.table({
        label: "Things", key: (row) => row.name, select: (rows) => { window.told = rows.map((row) => row.name); },
        columns: [
          { name: "name", label: "Name", value: (row) => row.name, cell: (row) => link(row.name) },
          { name: "size", label: "Size", value: (row) => row.size, align: "end" },
          { name: "do", label: "Do", cell: (row) => doer(() => { window.pressed = row.size; }) },
        ],
        rows: [{ name: "b", size: 2 }, { name: "a", size: 10 }, { name: "c", size: 1 }],
      });
      put(window.list);
    """
    made(kit, "table", body)
    rows = kit.locator("tbody tr")
    first = kit.locator("tbody td:nth-child(2)")
    assert first.all_inner_texts() == ["b", "a", "c"]
    axe(kit)
    kit.get_by_role("button", name="Size").click()
    assert first.all_inner_texts() == ["a", "b", "c"], "figures the largest first"
    expect(kit.get_by_role("columnheader", name="Size")).to_have_attribute("aria-sort", "descending")
    kit.get_by_role("button", name="Name").click()
    kit.get_by_label("Choose b").check()
    rows.nth(1).get_by_role("button").focus()
    kit.evaluate("window.list.update([{ name: 'b', size: 20 }, { name: 'd', size: 5 }])")
    assert first.all_inner_texts() == ["b", "d"]
    assert kit.evaluate("document.activeElement.closest('tr').dataset.key") == "b"
    kit.keyboard.press("Enter")
    assert kit.evaluate("window.pressed") == 20, "a listener sees the row as it has become"
    assert kit.evaluate("window.told") == ["b"]
    kit.evaluate("window.list.update([{ name: 'd', size: 5 }])")
    assert kit.evaluate("window.told") == [], "what is gone is not chosen"
    kit.get_by_label("Choose all").check()
    assert kit.evaluate("window.list.selected().map((row) => row.name)") == ["d"]
    kit.evaluate("window.list.update([])")
    expect(kit.locator(PLACE)).to_contain_text("Nothing there.")


@pytest.mark.parametrize("count", [100_000, 3_000_000])
def test_a_long_list_draws_what_is_seen_and_every_row_can_be_reached(kit: Page, count: int) -> None:
    body = """
      window.list = kit.virtualList({
        rowHeight: 32, count: argument, label: "Rows", columns: ["Row", "Twice"],
        row: (index) => [h("a", { href: `/topics/row-${index}` }, `row ${index}`), 2 * index],
      });
      put(window.list);
    """
    made(kit, "virtual", body, count)
    grid = kit.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(count + 1))
    rows = grid.locator(".virtual-shown .virtual-row")
    assert 10 < rows.count() < 60
    grid.focus()
    expect(rows.first).to_have_attribute("aria-rowindex", "2")
    active = grid.locator(".virtual-row.active .virtual-cell").first

    def press(key: str, shown: int) -> None:
        kit.keyboard.press(key)
        expect(active).to_have_text(f"row {shown}")
        box, frame = active.bounding_box(), grid.bounding_box()
        assert box is not None and frame is not None
        assert frame["y"] + 32 <= box["y"] + 1 and box["y"] + box["height"] <= frame["y"] + frame["height"] + 1

    press("ArrowDown", 1)
    press("End", count - 1)
    assert rows.count() < 60
    press("ArrowUp", count - 2)
    press("Home", 0)
    kit.keyboard.press("PageDown")
    assert kit.evaluate("Number(document.querySelector('.virtual-row.active').dataset.index)") > 10
    kit.evaluate("window.list.scrollTo(12345)")
    expect(active).to_have_text("row 12345")
    if count == 100_000:
        axe(kit)
    kit.evaluate("window.list.update({ count: 3 })")
    assert rows.count() == 3
    grid.focus()
    kit.keyboard.press("Home")
    kit.keyboard.press("Enter")
    expect(kit).to_have_url(re.compile("/topics/row-0$"))
