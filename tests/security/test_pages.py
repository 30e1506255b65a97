"""What a web page of another site may do with a server that asks nobody for a key: read nothing, and change nothing.

Every route that does more than read is asked in the name of such a page, with all that a browser sends without asking
first. A route that is new is among them the moment it is in the table.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

import pytest

from tests.client.rig import on_loop, soon
from tests.security.askers import NAME, STATIC_KEYS, signed_in
from tests.security.counting import Count
from tests.security.pipelined import Asked, ask_head
from tests.server.accountrig import ADMIN_KEY, accounts_served
from tests.server.api import Api, serving
from tests.server.lanerig import answers as answers_of
from tests.server.lanerig import plain
from tests.server.lanerig import serving as lane_serving
from topics import settings
from topics.accountmodel import Role
from topics.clock import SystemClock
from topics.server.app import Server
from topics.server.pageorigins import SAFE_METHODS
from topics.server.route import Route
from topics.server.table import EVERYTHING, ROUTES

ACTING: Final = [route for route in ROUTES if route.acts]
ACTING_READS: Final = {
    *("GET /v0/topics/{topic}/work", "GET /v0/topics/{topic}/groups/{group}/watch", "GET /v0/ws", "GET /v0/backup"),
}
"""What a GET changes: jobs and records that are taken, commands that follow, a backup that is made."""
FOREIGN: Final = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)
REBOUND: Final = ({"Host": "evil.example"}, {"Host": "evil.example", "Origin": "http://evil.example"})


def title(route: Route) -> str:
    return f"{route.method} {route.path}"


def request(route: Route, headers: dict[str, str]) -> Asked:
    return Asked(route.method, re.sub(r"{\w+}", NAME, route.path), headers, b"")


async def answers(url: str, routes: list[Route], headers: dict[str, str]) -> dict[str, int]:
    return {title(route): (await ask_head(url, request(route, headers))).status for route in routes}


def test_reads_that_act_are_known() -> None:
    assert {title(route) for route in ACTING if route.method in SAFE_METHODS} == ACTING_READS


@on_loop
async def test_foreign_page_changes_nothing_by_any_route(tmp_path: Path, record_property: Count) -> None:
    async with serving(tmp_path) as api:
        url = f"http://{api.address.netloc}"
        await api.write(NAME, 1)
        for headers in FOREIGN:
            found = await answers(url, ACTING, headers)
            assert found == dict.fromkeys(found, 403), headers
        own = await answers(url, ACTING, {"Host": api.address.netloc, "Origin": url, "Sec-Fetch-Site": "same-origin"})
        assert 403 not in own.values(), "its own pages may"
        record_property("routes", len(ACTING))


@on_loop
async def test_rebound_page_gets_no_answer_from_any_route(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        url = f"http://{api.address.netloc}"
        await api.write(NAME, 1)
        for headers in REBOUND:
            found = await answers(url, list(EVERYTHING), headers)
            assert found == dict.fromkeys(found, 403), headers
        assert (await api.diff(NAME))["head_seq"] == 1


@on_loop
async def test_reads_of_foreign_pages_are_answered_and_stay_hidden(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write(NAME, 1)
        told = await api.get("/v0/topics", Origin="http://evil.example", **{"Sec-Fetch-Site": "cross-site"})
        assert told.status == 200
        assert "access-control-allow-origin" not in told.headers


@on_loop
async def test_listed_origins_may_do_all_that_they_could(tmp_path: Path) -> None:
    page = {"Origin": "http://app.example", "Sec-Fetch-Site": "cross-site"}
    async with serving(tmp_path, cors_origins="http://app.example") as api:
        asks = {**page, "Access-Control-Request-Method": "POST"}
        preflight = await api.call("OPTIONS", f"/v0/topics/{NAME}", headers=asks)
        assert preflight.status == 204 and "access-control-allow-methods" in preflight.headers
        written = await api.post(f"/v0/topics/{NAME}", {"records": [{"data": 1}]}, page)
        assert written.status == 201 and written.headers["access-control-allow-origin"] == "http://app.example"
        url = f"http://{api.address.netloc}"
        await api.put("/v0/topics/jobs", {"type": "queue"})
        work = Asked("GET", "/v0/topics/jobs/work?node=w", page, b"")
        assert (await ask_head(url, work)).status == 200, "an event stream that takes jobs"
        assert (await api.post(f"/v0/topics/{NAME}", {"records": []}, {"Origin": "http://evil.example"})).status == 403


@on_loop
async def test_absolute_target_and_missing_host_are_judged_too(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        lines = {
            b"GET http://evil.example/v0/topics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n": 403,
            b"GET http://localhost/v0/topics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n": 200,
            b"GET http://evil.example/v0/topics HTTP/1.0\r\n\r\n": 403,
            b"GET http://a@evil.example?b HTTP/1.0\r\n\r\n": 403,
            b"GET /v0/topics HTTP/1.0\r\n\r\n": 200,
            b"GET /v0/topics HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n": 403,
            b"GET /v0/topics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n": 400,
        }
        assert {sent: await status_of(api, sent) for sent in lines} == lines


async def status_of(api: Api, sent: bytes) -> int:
    reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
    try:
        writer.write(sent)
        return int((await soon(reader.readline())).split()[1])
    finally:
        writer.close()
        await writer.wait_closed()


@on_loop
async def test_body_of_a_foreign_page_is_never_taken_in(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        head = b"POST /v0/topics/t HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
        assert await status_of(api, head + b"Content-Length: 9999\r\n\r\n") == 403, "at the end of the head"


@pytest.mark.parametrize("foreign", ["Origin: http://evil.example", "Sec-Fetch-Site: cross-site"])
@on_loop
async def test_foreign_head_never_gets_on_the_fast_lane(tmp_path: Path, foreign: str) -> None:
    async with lane_serving(tmp_path) as rig:
        caller = await rig.call()
        before = len(await rig.stored())
        for _ in range(3):
            stranger = await rig.call()
            stranger.send(plain(b"666", foreign))
            assert (await stranger.answer()).status == 403
        fresh = await rig.call(known=False)
        fresh.send(plain(b"666", foreign))
        assert (await fresh.answer()).status == 403, "as the first of a connection as well"
        caller.send(plain(b"1"))
        assert (await caller.answer()).status == 200
        stored = await rig.stored()
        assert 666 not in stored and len(stored) == before + 3 + 1
        tracks = rig.server._track_of.__self__._tracks  # type: ignore[attr-defined]
        assert not any(b"evil" in part or b"cross-site" in part for parts in tracks for part in parts)
        own = ("Origin: http://localhost", "Sec-Fetch-Site: same-origin")
        page = await rig.call(*own)
        frames = rig.frames
        page.send(plain(b"2", *own))
        caller.send(plain(b"3"))
        assert [each.status for each in await answers_of([page, caller])] == [200, 200], "the dashboard writes as well"
        assert rig.frames <= frames + 2


@on_loop
async def test_session_changes_nothing_for_a_foreign_page(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS) as served:
        browser = await served.signed_up()
        url = served.server.url
        session = signed_in("somebody", browser, Role.ADMIN).headers
        served.api.key = ADMIN_KEY
        await served.api.put(f"/v0/topics/{NAME}", {"type": "queue"})
        work = f"/v0/topics/{NAME}/work?node=w"
        keyed = {"Authorization": f"Bearer {ADMIN_KEY}"}
        token = (await served.api.post("/v0/watch/token", {"scopes": ["read", "write"]})).body["token"]
        for headers in FOREIGN:
            found = await answers(url, ACTING, session | headers)
            assert found == dict.fromkeys(found, 403), headers
            login = Asked("POST", "/v1/auth/login", headers, b'{"email":"a@b.example","password":"x"}')
            assert (await ask_head(url, login)).status == 403, "nor may it sign somebody in"
            assert (await ask_head(url, Asked("GET", work, keyed | headers))).status == 200, "a key is proof enough"
            assert (await ask_head(url, Asked("GET", f"{work}&token={token}", headers))).status == 200, "or a token"
        assert (await ask_head(url, Asked("GET", work, session | {"Sec-Fetch-Site": "same-origin"}))).status == 200


@on_loop
async def test_grpc_port_answers_nothing_that_a_page_can_send(tmp_path: Path) -> None:
    """A browser speaks HTTP/1.1 without TLS, and lets a page send `application/grpc` only after it has asked."""
    variables = {"TOPICS_DATA_DIR": str(tmp_path), "TOPICS_PORT": "0", "TOPICS_GRPC_PORT": "0"}
    async with Server(settings.load(variables), SystemClock()) as server:
        await soon(server.ready())
        host, _, port = server.grpc_address.rpartition(":")
        for method in (b"POST", b"OPTIONS", b"GET"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(method + b" /disheap.v1.Disheap/Pop HTTP/1.1\r\nHost: evil.example\r\n")
            writer.write(b"Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n")
            assert b"HTTP/1" not in await soon(reader.read())
            writer.close()
            await writer.wait_closed()
