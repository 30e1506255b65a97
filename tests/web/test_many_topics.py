"""Ten thousand topics in one list: only what is seen is in the page, all of it can be reached, and frames are measured.

How long frames take says as much about the machine as about the page, so nothing is asserted about it. The figures are
in `build/frames.json`, and printed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from threading import Thread
from typing import Final

import pytest
from playwright.sync_api import Page, expect

import topics
from tests.e2e.served import ROOT, served
from tests.web.rig import Lab, go, visit

MANY: Final = 10_000
AT_ONCE: Final = 500
STEPS: Final = 120
ROWS_MAX: Final = 60
FIGURES: Final = ROOT / "build" / "frames.json"

_SCROLL = """async (steps) => {
  const list = document.querySelector(".virtual");
  const seen = {};
  const gaps = [];
  let rows = 0;
  let last = performance.now();
  for (let step = 0; step <= steps; step += 1) {
    list.scrollTop = ((list.scrollHeight - list.clientHeight) * step) / steps;
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push((now - last) / 2);
    last = now;
    const lines = [...list.querySelectorAll(".virtual-shown [role=row]")];
    rows = Math.max(rows, lines.length);
    for (const line of lines) seen[line.getAttribute("aria-rowindex")] = line.querySelector("a").textContent;
  }
  return { gaps, rows, seen };
}"""
_WATCH = """() => {
  window.gaps = [];
  let last = performance.now();
  const next = (now) => {
    window.gaps.push(now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""


async def make(directory: Path) -> None:
    async with topics.open(directory) as client:
        for first in range(0, MANY, AT_ONCE):
            await asyncio.gather(*(client.topic(name(first + number)).create() for number in range(AT_ONCE)))


def name(number: int) -> str:
    return f"shop.{number:05d}"


@pytest.fixture
def crowded(lab: Lab, tmp_path: Path) -> Iterator[Page]:
    # The browser has the event loop of this thread.
    making = Thread(target=lambda: asyncio.run(make(tmp_path / "data")))
    making.start()
    making.join()
    with served(tmp_path / "data") as server, visit(lab.browser, server.url) as page:
        yield page


def test_ten_thousand_topics_are_scrolled_and_searched(crowded: Page) -> None:
    go(crowded, "/topics")
    grid = crowded.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(MANY + 1))
    scrolled = crowded.evaluate(_SCROLL, STEPS)
    assert scrolled["rows"] <= ROWS_MAX
    # The head is the first row.
    assert all(shown == name(int(index) - 2) for index, shown in scrolled["seen"].items())
    assert {"2", str(MANY + 1)} <= scrolled["seen"].keys()
    assert len(scrolled["seen"]) > STEPS
    grid.focus()
    crowded.keyboard.press("Home")
    expect(grid.get_by_role("link", name=name(0))).to_be_visible()
    crowded.keyboard.press("End")
    expect(grid.get_by_role("link", name=name(MANY - 1))).to_be_visible()
    crowded.evaluate(_WATCH)
    crowded.get_by_role("searchbox").press_sequentially("0999")
    found = [name(number) for number in range(MANY) if "0999" in name(number)]
    expect(grid).to_have_attribute("aria-rowcount", str(len(found) + 1))
    assert grid.get_by_role("link").all_inner_texts() == found
    searched = crowded.evaluate("() => window.gaps")
    write_figures(scrolling=scrolled["gaps"], searching=searched)


def write_figures(**gaps: list[float]) -> None:
    figures = {
        doing: {
            "frames": len(each),
            "median_ms": round(median(each), 1),
            "p95_ms": round(quantiles(each, n=20, method="inclusive")[-1], 1),
            "longest_ms": round(max(each), 1),
        }
        for doing, each in gaps.items()
    }
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps({"topics": MANY, **figures}, indent=2) + "\n")
    sys.stdout.write(f"frames with {MANY} topics: {json.dumps(figures)}\n")
