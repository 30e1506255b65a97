from __future__ import annotations

from pathlib import Path

from tests.client.rig import on_loop
from tests.server.api import serving
from topics.server.openapi import document
from topics.server.reference import page
from topics.server.table import ROUTES


@on_loop
async def test_both_forms_are_served_to_everybody(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="secret") as api:
        found = await api.get("/v0/openapi.json")
        assert (found.status, found.headers["content-type"]) == (200, "application/json")
        assert set(found.body["paths"]) == set(document(ROUTES)["paths"])
        shown = await api.get("/v0/docs")
        assert (shown.status, shown.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert shown.raw == page(document(ROUTES))
