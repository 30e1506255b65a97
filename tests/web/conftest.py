"""What tests of the dashboard share. They run one after the other in one worker, and the browser is closed behind the
last: its event loop would be in the way of every other test that has one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import LONG_MS, MISSING, PROGRAM
from tests.e2e.served import Served
from tests.web.guarded import Guarded
from tests.web.kitpage import clear
from tests.web.rig import Lab, visit

HERE = Path(__file__).parent
_LABS: list[Lab] = []
expect.set_options(timeout=LONG_MS)


# Before xdist looks at the groups, which it does in this hook as well.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("web"))
            item.add_marker(pytest.mark.skipif(PROGRAM is None, reason=MISSING))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or HERE not in nextitem.path.parents:
        for each in _LABS:
            each.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The browser, and the server that all tests share."""
    made = Lab(tmp_path_factory.mktemp("dashboard"))
    _LABS.append(made)
    return made


@pytest.fixture(scope="session")
def server(lab: Lab) -> Served:
    """The server that all tests share: give your topics names of their own."""
    return lab.server


@pytest.fixture
def page(lab: Lab, server: Served) -> Iterator[Page]:
    """A new visitor of the server, on whose page nothing may go wrong."""
    with visit(lab.browser, server.url) as opened:
        yield opened


@pytest.fixture(scope="module")
def _kit_page(lab: Lab, server: Served) -> Iterator[Page]:
    with visit(lab.browser, server.url) as opened:
        yield opened


@pytest.fixture
def kit(_kit_page: Page) -> Page:
    """A page with an empty view, into which `kitpage.made` puts parts."""
    clear(_kit_page)
    return _kit_page


@pytest.fixture
def guarded(lab: Lab) -> Guarded:
    """The server that asks everybody who they are, which all tests share as well."""
    return lab.guarded


@pytest.fixture
def admin(lab: Lab, guarded: Guarded) -> Iterator[Page]:
    """A new visitor of that server, signed in as its admin."""
    with visit(lab.browser, guarded.url) as opened:
        guarded.let_in(opened.context)
        yield opened
