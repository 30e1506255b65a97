from __future__ import annotations

import pytest

from topics.errors import MethodNotAllowed, NotFound
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.principal import NO_SCOPE, Scope
from topics.server.route import Operation, Route
from topics.server.table import FOUND_CHARS_MAX, ROUTES, Table

OPEN_PATHS = {"/v0/health", "/healthz", "/v0/ready", "/readyz", "/v0/openapi.json", "/v0/docs"}
SCOPES = {
    "GET /v0/topics": Scope.READ,
    "GET /v0/topics/{topic}": Scope.READ,
    "PUT /v0/topics/{topic}": Scope.ADMIN,
    "PATCH /v0/topics/{topic}": Scope.ADMIN,
    "DELETE /v0/topics/{topic}": Scope.DELETE,
    "POST /v0/topics/{topic}": Scope.WRITE,
    "POST /v0/topics/{topic}/diff": Scope.READ,
    "POST /v0/topics/{topic}/delete": Scope.DELETE,
    "POST /v0/topics/{topic}/claim": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/ack": Scope.WRITE,
    "POST /v0/topics/{topic}/nack": Scope.WRITE,
    "POST /v0/topics/{topic}/extend": Scope.WRITE,
    "GET /v0/topics/{topic}/work": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/redrive": Scope.READ | Scope.WRITE,
    "GET /v0/topics/{topic}/groups": Scope.READ,
    "GET /v0/topics/{topic}/groups/{group}": Scope.READ,
    "DELETE /v0/topics/{topic}/groups/{group}": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/groups/{group}/consume": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/groups/{group}/ack": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/groups/{group}/nack": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/groups/{group}/extend": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/groups/{group}/reset": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/groups/{group}/pause": Scope.READ | Scope.WRITE,
    "POST /v0/topics/{topic}/groups/{group}/resume": Scope.READ | Scope.WRITE,
    "GET /v0/topics/{topic}/groups/{group}/watch": Scope.READ | Scope.WRITE,
    "GET /v0/topics/{topic}/archives": Scope.READ,
    "PUT /v0/topics/{topic}/archives/{archive}": Scope.WRITE,
    "DELETE /v0/topics/{topic}/archives/{archive}": Scope.ADMIN,
    "GET /v0/routers": Scope.READ,
    "GET /v0/routers/{router}": Scope.READ,
    "PUT /v0/routers/{router}": Scope.ADMIN,
    "DELETE /v0/routers/{router}": Scope.DELETE,
    "POST /v0/topics/{topic}/stage": Scope.WRITE,
    "POST /v0/publish": Scope.WRITE,
    "POST /v0/abort": Scope.WRITE,
    "POST /v0/sql": NO_SCOPE,
    "POST /v0/watch": Scope.READ,
    "POST /v0/watch/token": Scope.READ,
    "GET /v0/watch/{wid}": Scope.READ,
    "GET /v0/ws": NO_SCOPE,
    "GET /v0/metrics": Scope.READ,
    "GET /v0/backup": Scope.ADMIN,
}


def handler(context: Context, request: Request, reply: Reply) -> None:
    raise AssertionError


def route(method: str, path: str) -> Route:
    return Route(method, path, NO_SCOPE, handler, Operation("", "", ""))


TABLE = Table(
    [
        route("GET", "/a"),
        route("POST", "/a"),
        route("GET", "/a/{x}"),
        route("GET", "/a/b"),
        route("POST", "/a/{x}/c/{y}"),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "found", "params"),
    [
        ("GET", "/a", "/a", {}),
        ("POST", "/a", "/a", {}),
        ("GET", "/a/1", "/a/{x}", {"x": "1"}),
        ("GET", "/a/b", "/a/b", {}),
        ("POST", "/a/1/c/2", "/a/{x}/c/{y}", {"x": "1", "y": "2"}),
        ("HEAD", "/a/1", "/a/{x}", {"x": "1"}),
    ],
)
def test_a_path_leads_to_its_route(method: str, path: str, found: str, params: dict[str, str]) -> None:
    for _ in range(2):
        matched, captured = TABLE.find(method, path)
        assert (matched.path, captured) == (found, params)


@pytest.mark.parametrize(
    "path", ["", "/", "/b", "/a/", "/a/1/", "/a/1/c", "/a/1/c/", "/a//c/2", "/a/1/c/2/3", "*", "/A"]
)
def test_a_path_that_leads_nowhere(path: str) -> None:
    with pytest.raises(NotFound) as caught:
        TABLE.find("GET", path)
    assert caught.value.code == "not_found"
    with pytest.raises(NotFound):
        TABLE.allowed(path)


def test_a_method_that_a_path_lacks() -> None:
    with pytest.raises(MethodNotAllowed) as caught:
        TABLE.find("PUT", "/a")
    assert caught.value.detail["allow"] == ["GET", "HEAD", "OPTIONS", "POST"]
    with pytest.raises(MethodNotAllowed):
        TABLE.find("HEAD", "/a/1/c/2")
    assert TABLE.allowed("/a/1/c/2") == ["OPTIONS", "POST"]


def test_a_route_is_there_once() -> None:
    with pytest.raises(AssertionError):
        Table([route("GET", "/a"), route("GET", "/a")])
    with pytest.raises(AssertionError):
        Table([route("GET", "/a/{x}"), route("POST", "/a/{y}")])


def test_the_routes_and_their_scopes() -> None:
    """A route that is new here is one whose scope somebody has to think about."""
    found = {f"{each.method} {each.path}": each.scope for each in ROUTES if each.path not in OPEN_PATHS}
    assert found == SCOPES
    assert {each.path for each in ROUTES if each.scope is NO_SCOPE and not each.keyed} == OPEN_PATHS
    assert {each.path for each in ROUTES if each.query_token} == {"/v0/watch/{wid}", "/v0/topics/{topic}/work"}


def test_every_route_is_whole() -> None:
    for each in ROUTES:
        about = each.operation
        assert callable(each.handler), each.path
        assert about.summary and about.description.endswith("."), each.path
        assert about.responses and any(status.startswith(("2", "101")) for status in about.responses), each.path
        captured = {part.strip("{}") for part in each.path.split("/") if part.startswith("{")}
        described = {parameter["name"] for parameter in about.parameters if parameter["in"] == "path"}
        assert captured == described, each.path
        named = [name for name in ("topic", "router") if name in captured]
        assert each.name_param == (named[0] if named else None), each.path


def test_long_paths_are_not_remembered() -> None:
    table = Table([route("GET", "/a/{x}")])
    long = "/a/" + "x" * FOUND_CHARS_MAX
    assert table.find("GET", long)[1] == {"x": long[3:]}
    with pytest.raises(NotFound) as caught:
        table.find("GET", long + "/y")
    assert len(caught.value.message) < 200
    with pytest.raises(MethodNotAllowed) as refused:
        table.find("PUT", long)
    assert len(refused.value.message) < 200
