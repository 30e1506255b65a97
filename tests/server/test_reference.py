from __future__ import annotations

import re
from html.parser import HTMLParser

from topics.server.openapi import document
from topics.server.reference import page
from topics.server.table import ROUTES

HTML = page(document(ROUTES)).decode()


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.hrefs: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if name == "href" and value:
                self.hrefs.add(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_link_leads_somewhere_and_every_tag_is_closed() -> None:
    links = Links()
    links.feed(HTML)
    assert links.open == []
    assert {href.removeprefix("#") for href in links.hrefs if href.startswith("#")} <= links.ids
    assert {href for href in links.hrefs if not href.startswith("#")} == {"/v0/openapi.json"}


def test_nothing_is_fetched_from_elsewhere() -> None:
    assert not re.search(r"https?://|src=|@import|url\(", HTML)


def test_every_route_is_on_the_page() -> None:
    for route in ROUTES:
        assert f"{route.method}</span> <code>{route.path}</code>" in HTML
