from __future__ import annotations

import re
from pathlib import Path

from reference.http import as_markdown
from topics.server.openapi import document
from topics.server.table import ROUTES

TEXT = as_markdown()


def test_the_document_is_fresh() -> None:
    path = Path(__file__).parents[2] / "docs" / "HTTP.md"
    assert path.read_text() == TEXT, "docs/HTTP.md is stale: run `make docs`"


def test_every_route_and_every_shape_is_in_it() -> None:
    for route in ROUTES:
        assert f"\n`{route.method} {route.path}`\n" in TEXT
    for name in document(ROUTES)["components"]["schemas"]:
        assert f"\n### {name}\n" in TEXT


def test_every_link_leads_to_a_shape() -> None:
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", TEXT, re.M)}
    links = set(re.findall(r"\]\(#(\w+)\)", TEXT))
    assert links and links <= headings


def test_a_field_tells_its_type_its_default_and_what_it_is() -> None:
    assert "| `limit` | integer or null | 0 is the default; more than allowed is clamped. Default: `256`. |" in TEXT
    assert "| `tombstone` | [Tombstone](#tombstone) or null | always |" in TEXT
