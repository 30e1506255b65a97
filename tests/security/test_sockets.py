"""Every command of a WebSocket by everybody: the handshake takes anybody who is somebody, each command asks anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.client.rig import on_loop, soon
from tests.security.askers import NAME, STATIC_KEYS, Asker, everybody
from tests.security.counting import Count
from tests.server.accountrig import accounts_served
from topics.server.principal import NO_SCOPE, Scope
from topics.wire.wscommand import OPS

COMMANDS: Final[dict[str, tuple[dict[str, Any], Scope]]] = {
    "subscribe": ({"op": "subscribe", "topic": NAME}, Scope.READ),
    "unsubscribe": ({"op": "unsubscribe", "topic": NAME}, NO_SCOPE),
    "publish": ({"op": "publish", "topic": NAME, "records": [{"data": 1}]}, Scope.WRITE),
    "publish with a config": (
        {"op": "publish", "topic": NAME, "records": [{"data": 1}], "config": {"ttl_ms": 5_000}},
        Scope.WRITE | Scope.ADMIN,
    ),
    "ping": ({"op": "ping"}, NO_SCOPE),
}
"""What each command is, and the scope it takes."""


def test_every_command_is_asked() -> None:
    assert {command["op"] for command, _ in COMMANDS.values()} == set(OPS)


async def refused(url: str, headers: dict[str, str]) -> int:
    """How a handshake is turned away; 0 when it is not."""
    try:
        async with connect(url, additional_headers=headers, compression=None):
            return 0
    except InvalidStatus as error:
        return error.response.status_code


async def codes_of(url: str, asker: Asker) -> dict[str, str]:
    """What each command is answered with: the code of an error, or nothing."""
    found = {}
    async with connect(url, additional_headers=asker.headers, compression=None) as socket:
        for name, (command, _) in COMMANDS.items():
            await socket.send(json.dumps({**command, "request_id": name}))
            while (heard := json.loads(await soon(socket.recv()))).get("request_id") != name:
                pass
            found[name] = heard.get("code", "")
    return found


@on_loop
async def test_every_command_by_everybody(tmp_path: Path, record_property: Count) -> None:
    surprises, count = [], 0
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS) as served:
        url = served.server.url.replace("http", "ws", 1) + "/v0/ws"
        askers = await everybody(served)
        await served.api.write(NAME, 0)
        for asker in askers:
            count += len(COMMANDS)
            if not asker.known:
                assert await refused(url, asker.headers) == 401, asker.name
                continue
            for name, code in (await codes_of(url, asker)).items():
                command, scope = COMMANDS[name]
                # A socket is opened by a GET, so what a forger lacks is the origin and not a token.
                expected = asker.expected("GET", scope, "topic" in command and scope is not NO_SCOPE)
                if code != ("forbidden" if expected else ""):
                    surprises.append(f"{name} by {asker.name}: {code or 'let in'}, expected {expected or 'let in'}")
    if surprises:
        pytest.fail("\n".join(surprises))
    assert count == len(COMMANDS) * len(askers)
    record_property("commands", len(COMMANDS))
    record_property("asked", count)


@on_loop
async def test_a_page_of_another_origin_gets_no_socket_with_somebodys_session(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS) as served:
        browser = await served.signed_up()
        url = served.server.url.replace("http", "ws", 1) + "/v0/ws"
        cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        own = f"http://{urlsplit(url).netloc}"
        for origin in ("https://evil.example", "null", own.replace("127.0.0.1", "127.0.0.1.evil.example")):
            assert await refused(url, cookies | {"Origin": origin}) == 403, origin
        assert await refused(url, cookies | {"Origin": own}) == 0
