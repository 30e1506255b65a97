"""Charts in a real browser: what they draw, and what they tell who cannot see them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.web.kitpage import made
from tests.web.rig import axe


def test_a_chart_reads_out_its_values_and_keeps_its_gaps(kit: Page) -> None:
    body = """
      const times = Array.from({ length: 10 }, (_, n) => Date.UTC(2026, 0, 2, 3, 4, n));
      const series = (last) => [
        { name: "w", label: "writes", values: [1, 2, null, 4, 5, 6, 7, 8, 9, last] },
        { name: "r", label: "reads", values: Array(10).fill(100) },
      ];
      window.chart = kit.lineChart({ label: "Requests", unit: "per_s", series: series(10), times });
      window.next = () => window.chart.update({ series: series(50), times });
      put(window.chart);
    """
    made(kit, "chart", body)
    axe(kit)
    lines = kit.locator(".chart-line")
    path = lines.first.get_attribute("d") or ""
    assert path.count("M") == 2, "a gap lifts the pen"
    slider = kit.get_by_role("slider", name="Requests, a moment")
    slider.focus()
    expect(slider).to_have_attribute("aria-valuetext", "03:04:09: writes 10/s, reads 100/s")
    kit.keyboard.press("Home")
    kit.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "03:04:01: writes 2/s, reads 100/s")
    expect(kit.locator(".chart-readout")).to_contain_text("writes 2/s")
    drawn = kit.locator(".chart-drawing").element_handle()
    reads = kit.get_by_role("button", name="reads")
    reads.click()
    expect(reads).to_have_attribute("aria-pressed", "false")
    assert lines.nth(1).get_attribute("d") == "" and lines.first.get_attribute("d") != path, "the scale is its own now"
    kit.evaluate("window.next()")
    expect(kit.get_by_role("button", name="writes")).to_contain_text("50/s")
    assert kit.evaluate("(drawn) => drawn.isConnected", drawn), "updated, not built anew"
    expect(kit.locator(".chart .unseen")).to_contain_text("writes is 50/s, at most 50/s; reads is 100/s")


def test_small_charts_have_words_too(kit: Page) -> None:
    body = """
      put(kit.sparkline([1, 3, 2], "Rate of orders"));
      put(kit.bars({ values: [3, 0, 9], labels: ["low", "mid", "high"], label: "Priorities" }));
      const parts = [{ name: "hot", label: "Hot", value: 1024 }, { name: "free", label: "Free", value: 3072 }];
      put(kit.stack({ parts, label: "Disk" }));
    """
    made(kit, "chart", body)
    axe(kit)
    expect(kit.get_by_role("img", name="Rate of orders")).to_be_visible()
    expect(kit.get_by_role("table", name="Priorities")).to_contain_text("high")
    boxes = [bar.bounding_box() for bar in kit.locator(".bars-bar").all()]
    heights = [0 if box is None else box["height"] for box in boxes]
    assert heights[0] == pytest.approx(heights[2] / 3, abs=2) and heights[1] < 1 < 50 < heights[2]
    expect(kit.locator(".stack-list")).to_contain_text("1 KiB25%")
