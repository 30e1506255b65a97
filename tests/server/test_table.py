from __future__ import annotations

import pytest

from topics.errors import MethodNotAllowed, NotFound
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.principal import NO_SCOPE, Scope
from topics.server.route import Operation, Route
from topics.server.table import FOUND_CHARS_MAX, ROUTES, Table

OPEN_PATHS = {"/v0/health", "/healthz", "/v0/ready", "/readyz", "/v0/openapi.json", "/v0/docs"}
SIGN_IN_PATHS = {"/v1/auth/login", "/v1/auth/setup", "/v1/auth/link", "/v1/auth/refresh", "/v1/auth/logout"}
"""Whoever comes here has no key yet, or is about to give theirs back."""
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
    "GET /v0/dead_letters": Scope.READ,
    "POST /v0/topics/{topic}/dead_letters/delete": Scope.DELETE,
    "GET /v0/groups": Scope.READ,
    "GET /v0/topics/{topic}/map": Scope.READ,
    "GET /v0/topics/{topic}/leases": Scope.READ,
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
    "POST /v1/heaps": Scope.ADMIN,
    "GET /v1/heaps": Scope.READ,
    "GET /v1/heaps/{topic}": Scope.READ,
    "PATCH /v1/heaps/{topic}": Scope.ADMIN,
    "DELETE /v1/heaps/{topic}": Scope.DELETE,
    "POST /v1/heaps/{topic}/purge": Scope.DELETE,
    "GET /v1/heaps/{topic}/priorities": Scope.READ,
    "GET /v1/stats": Scope.READ,
    "POST /v1/enqueue": Scope.WRITE,
    "POST /v1/enqueue:batch": Scope.WRITE,
    "POST /v1/enqueue/batch": Scope.WRITE,
    "POST /v1/pop": Scope.READ | Scope.WRITE,
    "POST /v1/ack": Scope.WRITE,
    "POST /v1/nack": Scope.WRITE,
    "POST /v1/extend": Scope.WRITE,
    "GET /v1/peek": Scope.READ,
    "POST /v1/heaps/{topic}/reprioritize": Scope.WRITE,
    "POST /v1/heaps/{topic}/cancel": Scope.WRITE,
    "POST /v1/heaps/{topic}/move_to_dlq": Scope.WRITE,
    "GET /v1/heaps/{topic}/dlq": Scope.READ,
    "GET /v1/heaps/{topic}/dlq/{message}": Scope.READ,
    "POST /v1/heaps/{topic}/dlq/replay": Scope.READ | Scope.WRITE,
    "POST /v1/heaps/{topic}/dlq/delete": Scope.DELETE,
    "DELETE /v1/heaps/{topic}/dlq/{message}": Scope.DELETE,
    "POST /v1/snapshot": Scope.ADMIN,
    "GET /v0/routers": Scope.READ,
    "GET /v0/routers/{router}": Scope.READ,
    "PUT /v0/routers/{router}": Scope.ADMIN,
    "DELETE /v0/routers/{router}": Scope.DELETE,
    "GET /v0/tables": Scope.READ,
    "PUT /v0/tables/{table}": Scope.ADMIN,
    "GET /v0/tables/{table}": Scope.READ,
    "DELETE /v0/tables/{table}": Scope.ADMIN,
    "GET /v0/pipelines": Scope.READ,
    "PUT /v0/pipelines/{pipeline}": Scope.ADMIN,
    "GET /v0/pipelines/{pipeline}": Scope.READ,
    "DELETE /v0/pipelines/{pipeline}": Scope.ADMIN,
    "POST /v0/pipelines/{pipeline}/pause": Scope.ADMIN,
    "POST /v0/pipelines/{pipeline}/resume": Scope.ADMIN,
    "POST /v0/pipelines/{pipeline}/report": Scope.WRITE,
    "GET /v0/pipelines/{pipeline}/logs": Scope.READ,
    "POST /v0/topics/{topic}/stage": Scope.WRITE,
    "POST /v0/publish": Scope.WRITE,
    "GET /v0/producers": Scope.ADMIN,
    "DELETE /v0/producers": Scope.ADMIN,
    "POST /v0/abort": Scope.WRITE,
    "POST /v0/sql": NO_SCOPE,
    "POST /v0/watch": Scope.READ,
    "POST /v0/watch/token": Scope.READ,
    "GET /v0/watch/{wid}": Scope.READ,
    "GET /v0/ws": NO_SCOPE,
    "POST /v1/keys": Scope.ADMIN,
    "GET /v1/keys": Scope.ADMIN,
    "GET /v1/keys/{key}": Scope.ADMIN,
    "DELETE /v1/keys/{key}": Scope.ADMIN,
    "POST /v1/users": Scope.ADMIN,
    "GET /v1/users": Scope.ADMIN,
    "GET /v1/users/{user}": Scope.ADMIN,
    "PATCH /v1/users/{user}": Scope.ADMIN,
    "DELETE /v1/users/{user}": Scope.ADMIN,
    "GET /v0/series": Scope.READ,
    "GET /v0/overview": Scope.READ,
    "GET /v0/settings": Scope.ADMIN,
    "GET /v1/audit": Scope.ADMIN,
    "GET /v1/audit/verify": Scope.ADMIN,
    "POST /v1/auth/login": NO_SCOPE,
    "POST /v1/auth/setup": NO_SCOPE,
    "POST /v1/auth/link": NO_SCOPE,
    "POST /v1/auth/refresh": NO_SCOPE,
    "POST /v1/auth/logout": NO_SCOPE,
    "GET /v1/auth/me": NO_SCOPE,
    "POST /v1/auth/password": NO_SCOPE,
    "GET /v1/auth/sessions": NO_SCOPE,
    "DELETE /v1/auth/sessions/{session}": NO_SCOPE,
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
    assert {each.path for each in ROUTES if each.scope is NO_SCOPE and not each.keyed} == OPEN_PATHS | SIGN_IN_PATHS
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
        named = [name for name in ("topic", "router", "table") if name in captured]
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
