"""The site that `make site` builds: whole, and made of nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from shutil import copy, copytree

import pytest

ROOT = Path(__file__).parents[1]
FETCHES = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("use", "href")}


class Fetched(HTMLParser):
    """What a browser gets by itself to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses |= {value or "" for name, value in attrs if (tag, name) in FETCHES}


def build(project: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """Strictly: a page that is not in the menu and a link or anchor that leads nowhere are errors."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", directory],
        cwd=project,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    done = build(ROOT, directory)
    assert done.returncode == 0, done.stderr
    return directory


def test_every_document_is_on_it(site: Path) -> None:
    documents = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert len(documents) >= 20
    assert documents <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = Fetched()
        page.feed(path.read_text())
        assert page.addresses
        assert not [address for address in page.addresses if re.match(r"\w+:|//", address)], path
    for path in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(?:https?:)?//", path.read_text()), path


def test_an_address_elsewhere_would_be_found() -> None:
    page = Fetched()
    page.feed('<a href="https://a.example"><script src="https://b.example/x.js"></script></a>')
    assert page.addresses == {"https://b.example/x.js"}


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    copytree(ROOT / "docs", tmp_path / "docs")
    copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write("\n[nowhere](concepts.md#nowhere) and [nobody](nobody.md)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "'#nowhere'" in done.stderr and "'nobody.md'" in done.stderr
