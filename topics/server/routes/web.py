"""The dashboard: its files under `/web/`, and its pages, which are one file whatever their address.

The files are those of the package, read when somebody first asks and kept with their checksums, so what a path names is
looked up and never opened. An address is a page when `routes.js` lists it, and only for who takes HTML: a program that
asks for `/topics` is told that nothing is there. Who takes HTML and asks for what is nowhere gets the page too, with a
404: it says so in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from topics.errors import NotFound
from topics.server.context import Context
from topics.server.encoding import accepts_gzip, gzip
from topics.server.message import Reply, Request, Response
from topics.server.principal import NO_SCOPE
from topics.server.route import Operation, Route

START: Final = "/web/"
INDEX: Final = "index.html"
ROUTES_FILE: Final = "routes.js"
API_STARTS: Final = ("/v0/", "/v1/", START)
TAG_CHARS: Final = 32
TYPES: Final = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}
POLICY: Final = (
    b"default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = (
    (b"Cache-Control", b"no-cache"),
    (b"Content-Security-Policy", POLICY),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"X-Frame-Options", b"DENY"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
    (b"Vary", b"Accept, Accept-Encoding"),
)

POINTERS: Final = {
    "health": "/v0/health",
    "ready": "/v0/ready",
    "topics": "/v0/topics",
    "heaps": "/v1/heaps",
    "metrics": "/v0/metrics",
    "openapi": "/v0/openapi.json",
    "docs": "/v0/docs",
}
TEXT: Final = b"text/plain; charset=utf-8"
ROOT_HEADERS: Final = (
    (b"Cache-Control", b"no-cache"),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Vary", b"Accept, Accept-Encoding"),
)

_PATH = re.compile(r'path: "(/[^"]*)"')
_CAPTURE = re.compile(r":[a-z]+")


@dataclass(frozen=True, slots=True)
class File:
    body: bytes
    packed: bytes
    content_type: bytes
    tag: str
    """Of its bytes; those of the packed ones have another."""


def asset(context: Context, request: Request, reply: Reply) -> None:
    name = request.path.removeprefix(START)
    found = _files().get(name)
    if found is None:
        raise NotFound(f"the dashboard has no file {name[:80]}", path=request.path[:80])
    reply(_answer(request, found, 200))


def page(request: Request) -> Response | None:
    """The answer to a request that no route takes; None when it asks neither for a page nor for the root."""
    if request.method not in ("GET", "HEAD") or request.path.startswith(API_STARTS):
        return None
    accept = request.headers.get("accept", "")
    if not _takes(accept, "text/html"):
        return _root(accept) if request.path == "/" else None
    return _answer(request, _files()[INDEX], 200 if _pages().fullmatch(request.path) else 404)


def _takes(accept: str, kind: str) -> bool:
    """Whether a client asks for a type by name, as browsers do for HTML. `*/*` is what programs say."""
    return any(part.partition(";")[0].strip().lower() == kind for part in accept.split(","))


def _root(accept: str) -> Response:
    """What the root says to a terminal or a program: what this is, and where to go from here."""
    if _takes(accept, "application/json"):
        return Response(200, msgspec.json.encode({"name": "topics"} | POINTERS), headers=ROOT_HEADERS)
    width = max(map(len, POINTERS))
    lines = [f"  {name:<{width}}  {path}" for name, path in POINTERS.items()]
    text = "\n".join(["topics, a durable event engine. Open this address in a browser for the dashboard.", *lines, ""])
    return Response(200, text.encode(), TEXT, ROOT_HEADERS)


def _answer(request: Request, file: File, status: int) -> Response:
    is_packed = accepts_gzip(request.headers.get("accept-encoding", ""))
    tag = f'"{file.tag}-gzip"' if is_packed else f'"{file.tag}"'
    headers = (*HEADERS, (b"ETag", tag.encode()))
    if status == 200 and _knows(request.headers.get("if-none-match", ""), tag):
        return Response(304, b"", file.content_type, headers)
    if is_packed:
        return Response(
            status, file.packed, file.content_type, (*headers, (b"Content-Encoding", b"gzip")), encoded=True
        )
    return Response(status, file.body, file.content_type, headers, encoded=True)


def _knows(if_none_match: str, tag: str) -> bool:
    given = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in given or "*" in given


@cache
def _files() -> Mapping[str, File]:
    return {name: _read(each) for name, each in _walk(files("topics").joinpath("web"), "")}


def _walk(directory: Traversable, start: str) -> Iterator[tuple[str, Traversable]]:
    for each in directory.iterdir():
        if each.is_dir():
            yield from _walk(each, f"{start}{each.name}/")
        elif each.name.rpartition(".")[2] in TYPES:
            yield f"{start}{each.name}", each


def _read(file: Traversable) -> File:
    body = file.read_bytes()
    tag = sha256(body).hexdigest()[:TAG_CHARS]
    return File(body, gzip(body), TYPES[file.name.rpartition(".")[2]], tag)


@cache
def _pages() -> re.Pattern[str]:
    """All addresses of pages, out of the list that the pages themselves go by."""
    paths = _PATH.findall(_files()[ROUTES_FILE].body.decode())
    return re.compile("|".join(_CAPTURE.sub("[^/]+", re.escape(path).replace(r"\:", ":")) for path in paths))


def _route(path: str) -> Route:
    captured = re.findall(r"\{(\w+)\}", path)
    described = tuple(
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "A part of its name.",
            "schema": {"type": "string"},
        }
        for name in captured
    )
    about = Operation(
        "A file of the dashboard",
        "Scripts, styles and pictures.",
        "operations",
        parameters=described,
        responses={"200": {"description": "The file."}},
    )
    return Route("GET", path, NO_SCOPE, asset, about)


ROUTES = tuple(_route(START + rest) for rest in ("{file}", "{folder}/{file}", "{folder}/{part}/{file}"))
"""As deep as the files are. They are no part of the API, so the OpenAPI document does not have them."""
