"""The dashboard's files and pages over plain HTTP."""

from __future__ import annotations

import gzip
import re
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest

from tests.e2e.served import ROOT, Served
from tests.web.rig import views

WEB = ROOT / "topics" / "web"
HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
LARGE = "/web/kit/table.js"
"""Large enough that any answer of that size would be packed."""
FILES = sorted(path.relative_to(WEB).as_posix() for path in WEB.rglob("*") if path.is_file())


def ask(server: Served, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(urlsplit(server.url).hostname or "", urlsplit(server.url).port, timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_every_file_is_served_as_what_it_is(server: Served) -> None:
    types = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for name in FILES:
        answer, body = ask(server, f"/web/{name}")
        assert (answer.status, body) == (200, (WEB / name).read_bytes()), name
        assert answer.headers["Content-Type"].partition(";")[0] == types[name.rpartition(".")[2]]


def test_what_a_browser_has_is_not_sent_again(server: Served) -> None:
    plain, body = ask(server, LARGE)
    packed, squeezed = ask(server, LARGE, accept_encoding="gzip")
    assert gzip.decompress(squeezed) == body and packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["Vary"] and packed.headers["Cache-Control"] == "no-cache"
    tags = {plain.headers["ETag"], packed.headers["ETag"]}
    assert len(tags) == 2 and all(re.fullmatch(r'"[0-9a-f]{32}(-gzip)?"', tag) for tag in tags)
    for given in (plain.headers["ETag"], f'"other", {plain.headers["ETag"]}', f"W/{plain.headers['ETag']}", "*"):
        again, nothing = ask(server, LARGE, if_none_match=given)
        assert (again.status, nothing) == (304, b"") and again.headers["ETag"] == plain.headers["ETag"]
    assert ask(server, LARGE, if_none_match='"other"')[0].status == 200
    assert ask(server, LARGE, if_none_match=packed.headers["ETag"])[0].status == 200


def test_a_head_has_no_body(server: Served) -> None:
    for path in ("/web/app.js", "/topics"):
        whole, body = ask(server, path, accept=HTML)
        head, nothing = ask(server, path, "HEAD", accept=HTML)
        assert (head.status, nothing) == (200, b"") and head.headers["Content-Length"] == str(len(body))
        assert head.headers["ETag"] == whole.headers["ETag"]


@pytest.mark.parametrize("path", ["/", "/topics/a%3Ab", "/nowhere", "/web/app.js", "/web/style/base.css"])
def test_nobody_shows_it_in_a_frame_or_runs_anything_else_in_it(server: Served, path: str) -> None:
    headers = ask(server, path, accept=HTML)[0].headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert headers["X-Frame-Options"] == "DENY" and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_the_reference_is_no_frame_either(server: Served) -> None:
    headers = ask(server, "/v0/docs", accept=HTML)[0].headers
    assert headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_every_view_is_a_page(server: Served) -> None:
    index = (WEB / "index.html").read_bytes()
    for path, _ in views():
        answer, body = ask(server, re.sub(r":\w+", "some.name%3A1", path), accept=HTML)
        assert (answer.status, body) == (200, index), path


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("GET", "/", "application/json", 200),
        ("GET", "/topics", "application/json", 404),
        ("GET", "/topics", "", 404),
        ("GET", "/v0/nothing", HTML, 404),
        ("GET", "/v1/nothing", HTML, 404),
        ("GET", "/v0/topics/none", HTML, 404),
        ("GET", "/web/nothing.js", HTML, 404),
        ("GET", "/web/app.js/more", HTML, 404),
        ("GET", "/web/..%2f..%2fsettings.py", HTML, 404),
        ("GET", "/web/%2e%2e/settings.py", HTML, 404),
        ("POST", "/topics", HTML, 404),
        ("POST", "/web/app.js", HTML, 405),
        ("DELETE", "/", HTML, 404),
        ("GET", "/healthz", HTML, 200),
    ],
)
def test_who_asks_the_api_gets_json(server: Served, method: str, path: str, accept: str, status: int) -> None:
    answer, body = ask(server, path, method, accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json") and body.startswith(b"{")


def test_a_page_that_is_not_there_says_so_as_a_page(server: Served) -> None:
    answer, body = ask(server, "/nowhere", accept=HTML)
    assert (answer.status, answer.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert body == (WEB / "index.html").read_bytes()
    assert ask(server, "/nowhere", accept=HTML, if_none_match=answer.headers["ETag"])[0].status == 404


def test_no_page_needs_anything_from_elsewhere() -> None:
    for name in FILES:
        text = (WEB / name).read_text()
        known = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")
        for address in re.findall(r"https?://[\w.:-]+[^\s\"'`)]*", text):
            assert address.startswith(known), f"{name}: {address}"
        assert "innerHTML" not in text and "document.write" not in text and "eval(" not in text, name
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", text) or name.endswith(".js"), name


def test_every_icon_that_is_named_is_drawn() -> None:
    drawn = set(re.findall(r'^  (\w+): "M', (WEB / "kit" / "icons.js").read_text(), re.MULTILINE))
    named = re.compile(r'\bicon\("(\w+)"\)|\bname: "(\w+)" \}\)|\bname: "(\w+)",\n\s+(?:title|text|commands):')
    for name in FILES:
        if name.endswith(".js") and name != "routes.js":
            for found in named.findall((WEB / name).read_text()):
                assert "".join(found) in drawn, f"{name}: {''.join(found)}"
