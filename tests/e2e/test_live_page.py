"""`examples/live` in a real browser against a real server: the page shows everything once, whatever breaks.

`TOPICS_SAVE_IMAGES=1` also saves the picture that the documents show.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from os import environ
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.browser import LONG_MS, MISSING, PROGRAM, VIEW, browser, pages
from tests.e2e.served import ROOT, Caller, Served, served

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=MISSING)

TOPIC = "orders"
KEY = "dashboard-secret"
PICTURE = ROOT / "docs" / "images" / "live.png"
PNG_HEAD = struct.Struct(">8s4x4sII")

via_both = pytest.mark.parametrize("via", ["eventsource", "websocket"])


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with pages(ROOT / "examples" / "live") as found:
        yield found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(chromium: BrowserContext) -> Iterator[Page]:
    """A new page, on which no script may fail."""
    opened = chromium.new_page()
    failures: list[str] = []
    opened.on("pageerror", lambda error: failures.append(str(error)))
    try:
        yield opened
    finally:
        opened.close()
    assert failures == []


@pytest.fixture
def server(tmp_path: Path, origin: str) -> Iterator[Served]:
    with served(tmp_path / "data", f"--cors-origins={origin}") as running:
        yield running


def show(page: Page, origin: str, server: Served, via: str, topic: str = TOPIC) -> None:
    page.goto(f"{origin}/?{urlencode({'server': server.url, 'topic': topic, 'via': via})}")


def write(caller: Caller, *data: object, topic: str = TOPIC) -> None:
    status, answer = caller.ask("POST", f"/v0/topics/{topic}", {"records": [{"data": each} for each in data]})
    assert status in (200, 201), answer


def shown(page: Page) -> list[int]:
    """The seqs on the page, in its order."""
    seqs: list[int] = page.eval_on_selector_all("#events .record", "rows => rows.map(row => Number(row.dataset.seq))")
    return seqs


def await_state(page: Page, state: str) -> None:
    expect(page.locator("#state")).to_have_attribute("data-state", state, timeout=LONG_MS)


def await_count(page: Page, count: int) -> None:
    """Until so many records have come; more than that is never right, and the test sees it next."""
    page.wait_for_function("count => document.getElementById('count').dataset.records >= count", arg=count)


@via_both
def test_records_appear_as_they_come(page: Page, origin: str, server: Served, via: str) -> None:
    with server.connect() as caller:
        write(caller, {"sku": "A1"}, "plain")
        show(page, origin, server, via)
        await_state(page, "live")
        write(caller, [1, 2])
        await_count(page, 3)
    assert shown(page) == [1, 2, 3]
    assert page.locator("#events .record code").all_inner_texts() == ['{"sku":"A1"}', '"plain"', "[1,2]"]


@via_both
def test_what_is_written_on_the_page_comes_back_to_it(page: Page, origin: str, server: Served, via: str) -> None:
    show(page, origin, server, via, "not-there-yet")
    await_state(page, "stopped")
    expect(page.locator("#state")).to_contain_text("write its first record")
    for text, stored in (('{"sku": "B2"}', '{"sku":"B2"}'), ("two words", '"two words"')):
        page.fill("#write input", text)
        page.click("#write button")
        expect(page.locator("#events .record code").last).to_have_text(stored, timeout=LONG_MS)
        expect(page.locator("#write input")).to_have_value("")
    assert shown(page) == [1, 2]
    expect(page.locator("#written")).to_have_text("written as 2")


@via_both
def test_a_killed_server_costs_the_page_nothing(page: Page, tmp_path: Path, origin: str, via: str) -> None:
    cors = f"--cors-origins={origin}"
    with served(tmp_path / "data", cors) as first:
        with first.connect() as caller:
            write(caller, *range(5))
            show(page, origin, first, via)
            await_count(page, 5)
            await_state(page, "live")
            write(caller, *range(5, 10))
        first.kill()
    await_state(page, "waiting")
    port = int(first.url.rpartition(":")[2])
    with served(tmp_path / "data", cors, port=port) as second, second.connect() as caller:
        write(caller, *range(10, 20))
        await_count(page, 20)
        await_state(page, "live")
        write(caller, "after")
        await_count(page, 21)
    assert shown(page) == list(range(1, 22))
    assert page.locator("#events .gap").count() == 0


@via_both
def test_a_stream_that_ends_politely_goes_on(page: Page, tmp_path: Path, origin: str, via: str) -> None:
    cors = f"--cors-origins={origin}"
    with served(tmp_path / "data", cors) as first:
        with first.connect() as caller:
            write(caller, "before")
        show(page, origin, first, via)
        await_state(page, "live")
        assert first.stop() == 0
    await_state(page, "waiting")
    with served(tmp_path / "data", cors, port=int(first.url.rpartition(":")[2])) as second, second.connect() as caller:
        write(caller, "after")
        await_count(page, 2)
    assert shown(page) == [1, 2]


@via_both
def test_a_gap_is_shown_with_its_range(page: Page, origin: str, server: Served, via: str) -> None:
    with server.connect() as caller:
        caller.ask("PUT", "/v0/topics/ticks", {"cap_records": 5})
        write(caller, *range(12), topic="ticks")
        show(page, origin, server, via, "ticks")
        await_count(page, 5)
        await_state(page, "live")
        # More at once than the topic keeps: the page is too slow, however fast it is.
        write(caller, *range(8), topic="ticks")
        await_count(page, 10)
    assert shown(page) == [8, 9, 10, 11, 12, 16, 17, 18, 19, 20]
    gaps = page.locator("#events .gap")
    assert gaps.all_inner_texts() == [
        "Records 1 to 7 are lost: they were gone before this page connected.",
        "Records 13 to 15 are lost: the topic keeps only so many.",
    ]
    assert page.eval_on_selector_all("#events li", "rows => rows.map(row => row.className)") == [
        *["gap", *["record"] * 5] * 2
    ]


def test_another_kind_of_line_goes_on_where_the_first_was(page: Page, origin: str, server: Served) -> None:
    with server.connect() as caller:
        write(caller, 1, 2)
        show(page, origin, server, "eventsource")
        await_state(page, "live")
        for count, via in ((3, "WebSocket"), (4, "EventSource"), (5, "WebSocket")):
            page.get_by_label(via).check()
            write(caller, count)
            await_count(page, count)
            await_state(page, "live")
    assert shown(page) == [1, 2, 3, 4, 5]


@via_both
def test_the_end_of_a_topic_is_told(page: Page, origin: str, server: Served, via: str) -> None:
    with server.connect() as caller:
        write(caller, "only")
        show(page, origin, server, via)
        await_state(page, "live")
        caller.ask("DELETE", f"/v0/topics/{TOPIC}")
    expect(page.locator("#events .notice")).to_have_text("The topic was deleted.", timeout=LONG_MS)
    await_state(page, "stopped")


def test_a_key_never_stands_in_an_address(page: Page, tmp_path: Path, origin: str) -> None:
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    variables = {"TOPICS_API_KEYS": KEY}
    with served(tmp_path / "data", f"--cors-origins={origin}", variables=variables) as server:
        with Caller(server.url, KEY) as caller:
            write(caller, "secret")
            show(page, origin, server, "eventsource")
            await_state(page, "stopped")
            page.fill("#watch input[name=key]", KEY)
            page.click("#watch button")
            await_count(page, 1)
            await_state(page, "live")
            write(caller, "more")
            await_count(page, 2)
        page.fill("#write input", "from the page")
        page.click("#write button")
        await_count(page, 3)
        page.get_by_label("WebSocket").check()
        await_state(page, "stopped")
    assert shown(page) == [1, 2, 3]
    expect(page.locator("#state")).to_contain_text("a browser cannot send a key with a WebSocket")
    streams = [address for address in addresses if "/v0/watch/wid_" in address]
    assert len(streams) == 1 and "?token=st_" in streams[0]
    assert not any(KEY in address for address in addresses)


def test_a_picture_of_it(page: Page, tmp_path: Path, origin: str, server: Served) -> None:
    with server.connect() as caller:
        caller.ask("PUT", f"/v0/topics/{TOPIC}", {"cap_records": 6})
        write(caller, *({"sku": f"A{number}", "cents": 125 * number} for number in range(1, 10)))
        show(page, origin, server, "eventsource")
        await_count(page, 6)
        await_state(page, "live")
    rows = page.locator("#events li")
    assert rows.count() == 7
    for row in rows.all():
        box = row.bounding_box()
        assert box is not None and box["y"] >= 0 and box["y"] + box["height"] <= VIEW["height"], "all of it is seen"
    # Times of day differ from run to run.
    page.eval_on_selector_all("#events time", "times => times.forEach(time => { time.textContent = '17:06:40'; })")
    page.fill("#watch input[name=server]", "http://localhost:4000")
    page.locator("#watch input[name=server]").blur()
    path = PICTURE if environ.get("TOPICS_SAVE_IMAGES") else tmp_path / "live.png"
    picture = page.screenshot(path=path, animations="disabled", caret="hide")
    _, kind, width, height = PNG_HEAD.unpack_from(picture)
    assert (kind, width, height) == (b"IHDR", VIEW["width"], VIEW["height"])
    page.eval_on_selector_all("#events .gap", "gaps => gaps.forEach(gap => gap.remove())")
    assert page.screenshot(animations="disabled", caret="hide") != picture, "the gap is in the picture"
