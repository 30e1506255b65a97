"""Every view that there is, on a server with something of everything and on one with nothing: it comes up without an
error, is called something, is accessible in both themes, and fits a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.served import served
from tests.web import example
from tests.web.rig import Lab, as_phone, as_screen, axe, fits, go, in_theme, shot, views, visit

PATHS = [path for path, _ in views()]
ALIKE = {"/settings", "/sign-in", "/set-up"}
"""They show the same whatever the server has."""
NAMED = {path: "dead-letters" if path == "/dead/:topic" else name for path, name in views()}


@pytest.fixture(scope="module")
def full(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A visitor of a server that has something of everything."""
    with served(tmp_path_factory.mktemp("full") / "data") as server:
        example.fill(server.url)
        with visit(lab.browser, server.url) as page:
            yield page


@pytest.fixture(scope="module")
def bare(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A visitor of a server that has nothing."""
    with served(tmp_path_factory.mktemp("bare") / "data") as server, visit(lab.browser, server.url) as page:
        yield page


@pytest.mark.parametrize("path", PATHS)
def test_a_view_with_something_in_it(full: Page, path: str) -> None:
    as_screen(full)
    in_theme(full, "dark")
    go(full, example.address(path))
    expect(full.locator("main h1").first).to_be_attached()
    assert full.locator("main .failed").count() == 0, full.locator("main .failed").inner_text()
    axe(full)
    shot(full, f"{NAMED[path]}-dark")
    in_theme(full, "light")
    shot(full, NAMED[path])
    as_phone(full)
    fits(full)
    shot(full, f"{NAMED[path]}-phone")


@pytest.mark.parametrize("path", [path for path in PATHS if ":" not in path and path not in ALIKE])
def test_a_view_with_nothing_in_it(bare: Page, path: str) -> None:
    as_screen(bare)
    go(bare, path)
    expect(bare.locator("main h1").first).to_be_attached()
    assert bare.locator("main .failed").count() == 0
    axe(bare)
    as_phone(bare)
    fits(bare)


@pytest.mark.parametrize("path", [path for path in PATHS if ":" in path])
def test_a_view_of_what_is_not_there_says_so(bare: Page, path: str) -> None:
    go(bare, path.replace(":", "no-"))
    expect(bare.locator("main h1").first).to_be_attached()
    expect(bare.locator("main")).to_contain_text("no-topic" if "topic" in path else "no-name")
    as_phone(bare)
    fits(bare)
