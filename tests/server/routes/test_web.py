"""The dashboard's files: packed for those who take it, bare for the others."""

from __future__ import annotations

from gzip import decompress
from importlib.resources import files
from pathlib import Path

from tests.client.rig import on_loop
from tests.server.api import serving
from topics.server.routes.web import _walk

FILE = "kit/table.js"


@on_loop
async def test_a_file_comes_as_its_reader_takes_it(tmp_path: Path) -> None:
    body = files("topics").joinpath("web", FILE).read_bytes()
    async with serving(tmp_path) as api:
        packed = await api.get(f"/web/{FILE}", **{"Accept-Encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip" and decompress(packed.raw) == body
        bare = await api.get(f"/web/{FILE}")
        assert (bare.status, bare.raw) == (200, body) and "content-encoding" not in bare.headers
        assert bare.headers["etag"] != packed.headers["etag"]
        assert (await api.get("/web/kit/none.js")).refusal == (404, "not_found")


def test_what_is_no_file_of_the_dashboard_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    for name in ("page.html", "notes.txt", "kit/table.js", "kit/.table.js.swp"):
        (tmp_path / name).write_text("x")
    assert sorted(name for name, _ in _walk(tmp_path, "")) == ["kit/table.js", "page.html"]


@on_loop
async def test_root_answers_a_terminal_and_a_program(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        text = await api.get("/", Accept="*/*")
        assert text.status == 200 and text.headers["content-type"].startswith("text/plain")
        lines = text.raw.decode().splitlines()
        assert lines[0].startswith("topics, a durable event engine")
        data = await api.get("/", Accept="application/json")
        assert data.status == 200 and data.body["name"] == "topics"
        paths = [path for name, path in data.body.items() if name != "name"]
        assert [line.split()[-1] for line in lines[1:]] == paths
        for path in paths:
            assert (await api.get(path)).status == 200, path
        page = await api.get("/", Accept="text/html")
        assert page.status == 200 and b"<html" in page.raw
        assert (await api.get("/nothing")).refusal == (404, "not_found")
