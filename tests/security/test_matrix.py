"""Every route and every rpc, asked by everybody: what the table says is what a server does.

What is expected follows from the table alone, so a route that is new is in the matrix the moment it is in the table.
Where a handler refuses by itself whom the table lets in, it is named here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.security.askers import NAME, STATIC_KEYS, Asker, everybody
from tests.security.counting import Count
from tests.security.pipelined import Asked, Told, ask_all, ask_head
from tests.server.accountrig import accounts_served
from topics.server.principal import NO_SCOPE
from topics.server.route import Route
from topics.server.table import EVERYTHING, ROUTES

KEYED = [route for route in ROUTES if route.scope is not NO_SCOPE or route.keyed]
OPEN = [route for route in ROUTES if route not in KEYED]
KNOWN_OPEN = {
    *("GET /v0/health", "GET /healthz", "GET /v0/ready", "GET /readyz", "GET /v0/openapi.json", "GET /v0/docs"),
    *(f"POST /v1/auth/{verb}" for verb in ("login", "setup", "link", "refresh", "logout")),
}
"""What anybody may ask: probes, the documentation, and the ways to sign in."""

SOME_NAMES = {"a managed key", "a key for other names"}
STRICTER = {
    # Who may touch some names only may not manage or see what knows no names.
    re.compile(r"\w+ /v1/(keys|users|audit)\b.*|GET /v0/(settings|backup)"): SOME_NAMES,
    # Keys have no sessions of their own, so they ask for those of others.
    re.compile("GET /v1/auth/sessions"): {f"a key for {scope}" for scope in ("read", "write", "delete")} | SOME_NAMES,
    # Dead letters go back to whichever queue they came from, so it has to be named.
    re.compile("POST /v0/topics/{topic}/redrive"): {"a managed key"},
    # `routes:TABLE` is no name of its own, so the table of routes cannot look at the names of pipelines.
    re.compile(r"\w+ /v0/pipelines/{pipeline}.*"): {"a key for other names"},
    # A runner reads and writes places with its own rights.
    re.compile("PUT /v0/tables/{table}"): {"a managed key"},
}


def request(route: Route, asker: Asker) -> Asked:
    path = re.sub(r"{\w+}", NAME, route.path)
    body = b"{}" if route.method in ("POST", "PUT", "PATCH") else b""
    return Asked(route.method, path, asker.headers, body)


def title(route: Route) -> str:
    return f"{route.method} {route.path}"


def wrong(route: Route, asker: Asker, told: Told) -> str:
    """What is wrong with an answer; empty when nothing is."""
    expected = asker.expected(route.method, route.scope, route.name_param is not None)
    if expected is None:
        stricter = any(pattern.fullmatch(title(route)) and asker.name in who for pattern, who in STRICTER.items())
        good = told.status == 403 if stricter else told.status not in (401, 403) and told.status < 500
        expected_text = "403 by its own rule" if stricter else "to be let in"
    else:
        good, expected_text = told.status == expected, str(expected)
    return "" if good else f"{title(route)} by {asker.name}: {told.status} {told.message!r}, expected {expected_text}"


def test_what_is_open_to_anybody_is_meant_to_be() -> None:
    assert {title(route) for route in OPEN} == KNOWN_OPEN
    files = [route for route in EVERYTHING if route not in ROUTES]
    assert all(route.method == "GET" for route in files), "the dashboard is files, and does nothing"


@on_loop
async def test_every_route_by_everybody(tmp_path: Path, record_property: Count) -> None:
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS) as served:
        askers = await everybody(served)
        plain = [(route, asker) for asker in askers for route in KEYED if not route.streams]
        told = await ask_all(served.server.url, [request(*each) for each in plain])
        found = [wrong(*each, answer) for each, answer in zip(plain, told, strict=True)]
        for route in KEYED:
            for asker in askers if route.streams else ():
                found.append(wrong(route, asker, await ask_head(served.server.url, request(route, asker))))
        if surprises := [each for each in found if each]:
            pytest.fail("\n".join(surprises))
        assert len(found) == len(KEYED) * len(askers) > 1_000
        record_property("routes", len(KEYED))
        record_property("askers", len(askers))
        record_property("asked", len(found))
