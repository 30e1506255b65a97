"""Canaries: secrets that are told to a server in every way, looked for in everything that a server says or keeps."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.client.rig import on_loop, soon
from tests.security.pipelined import Asked, ask_all
from tests.server.accountrig import Browser, Served, accounts_served
from topics.proto.messages import DISHEAP, HEAPS, methods_of
from topics.server.table import ROUTES

STATIC_KEY = "canary-static-key-Zx81"
PASSWORD = "canary password Zx82"
WRONG_PASSWORD = "canary wrong password Zx83"
TOKEN_SECRET = "canary-token-secret-Zx84"


class Heard(logging.Handler):
    """All that is logged, with every field of it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{self.format(record)}\n{vars(record)!r}\n"


@pytest.fixture
def heard() -> Iterator[Heard]:
    log, handler = logging.getLogger(), Heard()
    level = log.level
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


async def signed_up(served: Served) -> tuple[Browser, str]:
    browser = served.browser()
    link = served.server.set_up_link.partition("/set-up#")[2]
    body = {"token": link, "email": "ada@example.org", "password": PASSWORD}
    assert (await browser.post("/v1/auth/setup", body)).status == 201
    return browser, link


def everywhere(secret: str) -> list[Asked]:
    """A secret in each place of a request in which somebody may put it by mistake, of each route."""
    found = []
    for route in ROUTES:
        path = route.path.replace("{", "").replace("}", "")
        if route.streams or path.startswith("/v1/auth"):
            continue
        body = b"" if route.method in ("GET", "DELETE") else json.dumps({secret: secret}).encode()
        for headers in (
            {"Authorization": f"Bearer {secret}"},
            {"Authorization": f"Basic {secret}"},
            {"Cookie": f"topics_session={secret}"},
        ):
            found.append(Asked(route.method, path, headers, body if "Cookie" not in headers else b""))
    return found


@on_loop
async def test_no_secret_comes_out(tmp_path: Path, heard: Heard) -> None:
    said: list[bytes] = []
    async with accounts_served(
        tmp_path, api_keys=STATIC_KEY, stream_token_secret=TOKEN_SECRET, access_log="1"
    ) as served:
        browser, link = await signed_up(served)
        served.api.key = STATIC_KEY
        managed = (await served.api.post("/v1/keys", {"name": "ci", "scopes": ["read"]})).body["key"]
        token = (await served.api.post("/v0/watch/token", {})).body["token"]
        secret = managed.rpartition("_")[2]
        canaries = [STATIC_KEY, PASSWORD, WRONG_PASSWORD, TOKEN_SECRET, secret, link, token]
        canaries += [value for value in browser.cookies.values() if value != browser.cookies["topics_csrf"]]
        for body in (
            {"email": "ada@example.org", "password": WRONG_PASSWORD},
            {"email": "nobody@example.org", "password": WRONG_PASSWORD},
            {"email": 5, "password": WRONG_PASSWORD},
            {"email": "ada@example.org", "password": [WRONG_PASSWORD]},
        ):
            said.append((await served.browser().post("/v1/auth/login", body)).raw)
        changed = {"current_password": WRONG_PASSWORD, "new_password": PASSWORD + "2"}
        said.append((await browser.post("/v1/auth/password", changed)).raw)
        said.append((await served.browser().post("/v1/auth/setup", {"token": link, "password": "short"})).raw)
        said.append((await served.api.get(f"/v0/watch/none?token={token}x")).raw)
        for canary in (STATIC_KEY, managed, token):
            said += [told.body for told in await ask_all(served.server.url, everywhere(canary)) if told.status != 400]
        served.api.key = STATIC_KEY
        for path in ("/v0/metrics", "/v0/settings", "/v0/overview", "/v1/audit", "/v1/keys", "/v1/users", "/v0/topics"):
            said.append((await served.api.get(path)).raw)
        assert len(said) > 100
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for canary in canaries:
        for place, texts in (("an answer", said), ("a log", [heard.text.encode()]), ("a file", kept)):
            assert not [text for text in texts if canary.encode() in text], f"{canary[:16]}… is in {place}"
    assert "request" in heard.text and kept


@on_loop
async def test_no_secret_comes_out_over_grpc(tmp_path: Path, heard: Heard) -> None:
    said = ""
    async with (
        accounts_served(tmp_path, api_keys=STATIC_KEY, access_log="1", no_grpc=None, grpc_port="0") as served,
        grpc.aio.insecure_channel(served.server.grpc_address) as channel,
    ):
        for method in (*methods_of(DISHEAP).values(), *methods_of(HEAPS).values()):
            if method.client_streams:
                continue
            call = channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
            for metadata in (
                ("authorization", f"Bearer {STATIC_KEY}"),
                ("authorization", f"Basic {STATIC_KEY}"),
                ("authorization", f"Bearer {STATIC_KEY}x"),
                ("x-api-key", STATIC_KEY),
                ("grpc-consumer", STATIC_KEY),
            ):
                try:
                    said += str(await soon(call(method.request(), metadata=(metadata,))))
                except grpc.aio.AioRpcError as error:
                    said += f"{error.code()} {error.details()} {error.trailing_metadata()}"
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert "UNAUTHENTICATED" in said and heard.text and kept
    for place, text in (("an answer", said), ("a log", heard.text), ("a file", repr(kept))):
        assert STATIC_KEY not in text, f"the key is in {place}"
