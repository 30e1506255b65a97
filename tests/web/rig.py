"""The dashboard in a real browser over a real server: opening pages, and looking at them as people do.

One Chromium and one server serve all tests of this folder, see `conftest.py`. The fixture `page` is a fresh visitor, on
whose page no script may fail and nothing may be refused by the page's policy. Helpers:

    go(page, "/topics")            open a view, and wait until it has what it shows
    axe(page)                      no violation of an accessibility rule
    fits(page)                     nothing sticks out at the side, no text lies over another
    shot(page, "topics")           a picture, kept under build/screenshots
    in_theme(page, "dark")         the other theme, of the same page
    as_phone(page)                 the same page, on a phone
    visit(lab.browser, url)        a visitor of another server

While a browser is open its event loop runs in this thread: ask the server with `server.connect()` or a client of
`topics.sync`, not with `asyncio.run`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os import environ
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, sync_playwright

from tests.e2e.browser import FLAGS, LONG_MS, PROGRAM
from tests.e2e.served import ROOT, Served, served
from tests.web.guarded import Guarded, guarded_server

SCREEN: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
THEMES = ("light", "dark")
ARTEFACTS = ROOT / "build" / "screenshots"
PICTURES = ROOT / "docs" / "images" / "dashboard"
DOCUMENTED = {"overview-live", "topic", "heap-dark"}
"""Those that the documents show."""
ROUTES_FILE = ROOT / "topics" / "web" / "routes.js"

AXE = Axe()

# A browser says on its console that an answer was an error, which for a call of the API is no failure of the page.
_API_ANSWER = re.compile(r"/(?:v0|v1)/|/readyz")

_LOOKS = (Path(__file__).parent / "looks.js").read_text()


class Lab:
    """What all tests share, made when first asked for: a browser, and a server that asks nobody for a key."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open = ExitStack()
        self._browser: Browser | None = None
        self._server: Served | None = None
        self._guarded: Guarded | None = None

    @property
    def browser(self) -> Browser:
        if self._browser is None:
            playwright = self._open.enter_context(sync_playwright())
            self._browser = playwright.chromium.launch(executable_path=PROGRAM, headless=True, args=FLAGS)
            self._open.callback(self._browser.close)
        return self._browser

    @property
    def server(self) -> Served:
        if self._server is None:
            self._server = self._open.enter_context(served(self._directory / "data"))
        return self._server

    @property
    def guarded(self) -> Guarded:
        """Another one, that asks everybody. Its directory has a name that is a script wherever it is taken for HTML."""
        if self._guarded is None:
            directory = self._directory / "guarded <img src=x onerror=canary()>"
            self._guarded = self._open.enter_context(guarded_server(directory))
        return self._guarded

    def close(self) -> None:
        self._browser = self._server = self._guarded = None
        self._open.close()


@contextmanager
def visit(
    browser: Browser, url: str, *, theme: str = "light", size: ViewportSize = SCREEN, **options: Any
) -> Iterator[Page]:
    """A visitor with nothing of earlier ones, on whose page nothing may go wrong. `options` are the context's."""
    context = browser.new_context(
        base_url=url,
        viewport=size,
        color_scheme=theme,  # type: ignore[arg-type]
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
        **options,
    )
    context.set_default_timeout(LONG_MS)
    try:
        page = context.new_page()
        problems = watch(page)
        yield page
    finally:
        context.close()
    assert problems == []


def watch(page: Page) -> list[str]:
    """What goes wrong on a page from now on: scripts that fail, files that are missing, what the policy refuses."""
    problems: list[str] = []

    def said(message: ConsoleMessage) -> None:
        of_api = message.text.startswith("Failed to load resource") and _API_ANSWER.search(message.location["url"])
        if message.type in ("error", "warning") and not of_api:
            problems.append(f"{message.type}: {message.text} ({message.location['url']})")

    page.on("console", said)
    page.on("pageerror", lambda error: problems.append(f"script: {error}"))
    return problems


def go(page: Page, path: str) -> None:
    """Open a view, and wait until it has what it shows."""
    page.goto(path)
    ready(page)


def ready(page: Page) -> None:
    page.wait_for_function(f"() => ({_LOOKS}).ready()")


def look(page: Page, what: str, argument: object = None) -> Any:
    """One of the functions of `looks.js`, called on a page."""
    return page.evaluate(f"(argument) => ({_LOOKS}).{what}(argument)", argument)


def in_theme(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]


def as_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)


def as_screen(page: Page) -> None:
    page.set_viewport_size(SCREEN)


def axe(page: Page, *, rules: tuple[str, ...] = ()) -> None:
    """No violation of accessibility, by all rules or by some."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = AXE.run(page, options=options).response["violations"]
    told = [f"{each['id']}: {each['help']}: {node['html'][:200]}" for each in found for node in each["nodes"][:3]]
    assert told == [], "\n".join(told)


def fits(page: Page) -> None:
    """Nothing sticks out at the side, and no line of text lies over another."""
    assert look(page, "sticksOut") == []
    assert look(page, "overlaps") == []


def shot(page: Page, name: str, *, whole: bool = False) -> bytes:
    """A picture of a page, kept as an artefact; with `TOPICS_SCREENSHOTS=1` those of `DOCUMENTED` also go there."""
    shown = name in DOCUMENTED and bool(environ.get("TOPICS_SCREENSHOTS"))
    for directory in (ARTEFACTS, PICTURES) if shown else (ARTEFACTS,):
        directory.mkdir(parents=True, exist_ok=True)
        picture = page.screenshot(path=directory / f"{name}.png", full_page=whole, animations="disabled", caret="hide")
    return picture


def difference(page: Page, one: bytes, other: bytes) -> float:
    """Which share of two pictures' points can be told apart; 1.0 when they are not of one size."""
    share: float = look(page, "difference", [b64encode(each).decode() for each in (one, other)])
    return share


def views() -> list[tuple[str, str]]:
    """Path and name of every view, as the dashboard itself lists them."""
    return re.findall(r'path: "([^"]+)", name: "([^"]+)"', ROUTES_FILE.read_text())
