from __future__ import annotations

import asyncio
import hmac
import io
import logging
import subprocess
import sys
import traceback
from collections.abc import Iterator
from os import environ
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.clock import SystemClock
from topics.core.records import RecordLimits
from topics.errors import Forbidden, InvalidSetting, TopicsError, Unauthorized
from topics.secret import Secret
from topics.server import auth
from topics.server.app import Server
from topics.server.auth import Authenticator, check_bind, check_config, check_name, check_scope, is_loopback, parse_keys
from topics.server.context import Context
from topics.server.dispatch import Dispatcher
from topics.server.message import Reply, Request, Response
from topics.server.principal import ALL_SCOPES, EVERYBODY, Principal, Scope
from topics.server.route import Operation, Route
from topics.server.table import Table
from topics.settings import Settings, load
from topics.testing import SimClock

SECRET = "s3cr3t-of-the-house"


def keys(text: str) -> Authenticator:
    return Authenticator.of(Settings(api_keys=Secret(text)))


def request(authorization: str | None = None) -> Request:
    headers = {} if authorization is None else {"authorization": authorization}
    return Request("GET", "/v0/topics", "", headers, b"", 0)


def principal(text: str) -> Principal:
    """Who the first key of `TOPICS_API_KEYS` is."""
    return keys(text).authenticate(request(f"Bearer {text.partition(':')[0]}"))


# ---- the syntax


@pytest.mark.parametrize(
    ("entry", "scopes", "prefixes"),
    [
        ("k", ALL_SCOPES, ()),
        ("k:", ALL_SCOPES, ()),
        ("k::", ALL_SCOPES, ()),
        ("k:read", Scope.READ, ()),
        ("k:r", Scope.READ, ()),
        ("k:w", Scope.WRITE, ()),
        ("k:d", Scope.DELETE, ()),
        ("k:a", Scope.ADMIN, ()),
        ("k:rw", Scope.READ | Scope.WRITE, ()),
        ("k:read+write+delete+admin", ALL_SCOPES, ()),
        ("k:rw+d", Scope.READ | Scope.WRITE | Scope.DELETE, ()),
        ("k:read:tenant42:", Scope.READ, ("tenant42:",)),
        ("k::tenant42:|shared.", ALL_SCOPES, ("tenant42:", "shared.")),
        ("k:write+admin:a:b|a->", Scope.WRITE | Scope.ADMIN, ("a:b", "a->")),
    ],
)
def test_an_entry_says_what_its_key_may_do(entry: str, scopes: Scope, prefixes: tuple[str, ...]) -> None:
    assert principal(entry) == Principal("key-1", scopes, prefixes)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{SECRET}:reed", "entry 1 has an unknown scope (word 1 of 1)"),
        (f"{SECRET}:read+", "entry 1 has an unknown scope (word 2 of 2)"),
        (f"{SECRET}:read+wr", "entry 1 has an unknown scope (word 2 of 2)"),
        (f"{SECRET}:READ", "entry 1 has an unknown scope (word 1 of 1)"),
        (f"fine,{SECRET}:x", "entry 2 has an unknown scope"),
        (f"part:{SECRET}", "entry 1 has an unknown scope"),
        (f":{SECRET}", "entry 1 has no key before its first colon"),
        (f"{SECRET},", "entry 2 is empty"),
        (f"{SECRET},,other", "entry 2 is empty"),
        (f"{SECRET},{SECRET}:read", "entry 2 has the same key as entry 1"),
        (f"{SECRET} x", "entry 1 has a key that no header can carry"),
        (f"{SECRET}é", "entry 1 has a key that no header can carry"),
        (f"{SECRET}::a|", "entry 1 has a prefix that no name begins with (prefix 2 of 2)"),
        (f"{SECRET}::{SECRET}/", "entry 1 has a prefix that no name begins with (prefix 1 of 1)"),
        (f"x::*,{SECRET}", "entry 1 has a prefix that no name begins with"),
    ],
)
def test_a_malformed_entry_refuses_the_start_and_shows_nothing_of_it(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        keys(text)
    assert caught.value.message.startswith(f"TOPICS_API_KEYS: {complaint}")
    assert "expected" in caught.value.message or "name each key once" in caught.value.message
    assert caught.value.detail == {"settings": ["TOPICS_API_KEYS"]}
    assert_hidden(caught.value)


def assert_hidden(error: BaseException) -> None:
    """The secret is not in the message, nor in what a debugger would print of the frames."""
    out = io.StringIO()
    captured = traceback.TracebackException.from_exception(error, capture_locals=True)
    # The frame of the test itself has the text, of course.
    captured.stack = traceback.StackSummary.from_list([f for f in captured.stack if "/tests/" not in f.filename])
    captured.print(file=out)
    assert SECRET not in out.getvalue()


@given(st.text(alphabet=st.sampled_from("abr:+|,. rwé>"), max_size=20))
def test_any_text_gives_keys_or_problems(text: str) -> None:
    found, problems = parse_keys(text)
    assert len(found) + len(problems) == text.count(",") + 1
    for key in found:
        assert key.principal.scopes and all(key.principal.prefixes)


def test_an_empty_variable_is_no_keys() -> None:
    assert len(Authenticator.of(load({"TOPICS_API_KEYS": ""}))) == 0


# ---- asking


def test_without_keys_everybody_may_do_everything() -> None:
    assert Authenticator().authenticate(request()) is EVERYBODY
    assert Authenticator().authenticate(request("Bearer whatever")) is EVERYBODY


@pytest.mark.parametrize("header", [f"Bearer {SECRET}", f"bearer {SECRET}", f"BEARER   {SECRET}  "])
def test_a_known_key_is_found(header: str) -> None:
    found = keys(f"first,{SECRET}:read,last").authenticate(request(header))
    assert found == Principal("key-2", Scope.READ)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        SECRET,
        f"Basic {SECRET}",
        f"Bearer{SECRET}",
        f"Bearer {SECRET}x",
        f"Bearer x{SECRET}",
        f"Bearer {SECRET.upper()}",
        f"Bearer {SECRET[:-1]}",
        f"Bearer {SECRET}:read",
        "Bearer \udcff\xff",
        "Bearer ,",
    ],
)
def test_anything_else_is_unauthorized(header: str | None) -> None:
    with pytest.raises(Unauthorized, match="Authorization: Bearer <key>") as caught:
        keys(f"{SECRET}:read").authenticate(request(header))
    assert caught.value.http_status == 401
    assert SECRET not in str(caught.value) + str(caught.value.detail)


def test_every_key_is_compared_wherever_the_right_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(auth, "compare_digest", compare)
    known = keys("a,b,c,d")
    for token in ("a", "d"):
        known.authenticate(request(f"Bearer {token}"))
        assert len(set(compared)) == len(compared) == 4
        compared.clear()
    with pytest.raises(Unauthorized):
        known.authenticate(request("Bearer e"))
    assert len(compared) == 4


def test_no_plaintext_is_kept() -> None:
    settings = load({"TOPICS_API_KEYS": f"{SECRET}:read:a."})
    known = Authenticator.of(settings)
    assert settings.api_keys is not None and settings.api_keys.take() == ""
    assert SECRET not in repr(vars(known)) + repr(settings) + str(settings)
    assert SECRET.encode() not in b"".join(key.digest for key in known._keys)


def test_a_request_does_not_show_its_key_or_its_body() -> None:
    asked = request(f"Bearer {SECRET}")
    asked.body = b"payload"
    assert SECRET not in repr(asked) and "payload" not in repr(asked)


# ---- what a key may do


def test_a_missing_scope_is_forbidden() -> None:
    reader = Principal("key-1", Scope.READ)
    check_scope(reader, Scope.READ)
    with pytest.raises(Forbidden, match=r"lacks the scope write$") as caught:
        check_scope(reader, Scope.READ | Scope.WRITE)
    assert caught.value.http_status == 403
    assert caught.value.detail == {"scope": ["write"]}
    with pytest.raises(Forbidden, match="delete and admin"):
        check_scope(reader, Scope.DELETE | Scope.ADMIN)


def test_a_name_outside_the_prefixes_is_forbidden() -> None:
    tenant = Principal("key-1", ALL_SCOPES, ("tenant42:", "shared."))
    check_name(tenant, "tenant42:jobs")
    check_name(tenant, "shared.")
    check_name(EVERYBODY, "anything")
    for name in ("tenant4", "tenant42", "tenant421:jobs", "Shared.x", "x.shared."):
        with pytest.raises(Forbidden, match=f'may not touch dest "{name}"') as caught:
            check_name(tenant, name, "dest")
        assert caught.value.detail == {"field": "dest", "name": name}


@pytest.mark.parametrize(
    ("config", "fine"),
    [({}, True), ({"dead_letter": None}, True), ({"dead_letter": "a.dlq"}, True), ({"dead_letter": "b.dlq"}, False)],
)
def test_the_names_in_a_config_are_checked(config: dict[str, Any], fine: bool) -> None:
    try:
        check_config(Principal("key-1", ALL_SCOPES, ("a.",)), config)
        assert fine
    except TopicsError as error:
        assert not fine and isinstance(error, Forbidden) and error.detail["field"] == "dead_letter"


# ---- the address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert is_loopback(host)
    check_bind(Settings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com", "localhost.example.com", "1270.0.1"])
def test_an_address_that_others_reach_does(host: str) -> None:
    with pytest.raises(InvalidSetting, match="TOPICS_ALLOW_INSECURE_NO_AUTH=1") as caught:
        check_bind(Settings(host=host))
    assert caught.value.detail == {"settings": ["TOPICS_HOST", "TOPICS_API_KEYS"]}
    check_bind(Settings(host=host, allow_insecure_no_auth=True))
    with_keys = Settings(host=host, api_keys=Secret(SECRET))
    check_bind(with_keys)
    Authenticator.of(with_keys)
    check_bind(with_keys)


# ---- nothing tells


class Heard(logging.Handler):
    """All that is logged, with everything that hangs on a line, before anybody strikes something out of it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{self.format(record)}\n{vars(record)!r}\n"


@pytest.fixture
def heard() -> Iterator[Heard]:
    log = logging.getLogger("topics")
    level, handler = log.level, Heard()
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


def test_no_output_of_a_server_has_a_key_in_it(tmp_path: Path, heard: Heard) -> None:
    """Whatever is asked with it, in whatever place of a request a key may stand."""
    settings = load(
        {"TOPICS_API_KEYS": f"{SECRET}:rw:a.,other", "TOPICS_ACCESS_LOG": "1", "TOPICS_PROBE_AUTH": "1"},
        flags={"data_dir": str(tmp_path), "port": "0", "no_grpc": True, "throttle_lag_ms": "0"},
    )
    said: list[bytes] = []

    async def run() -> None:
        async with Server(settings, SystemClock()) as server:
            await server.ready()
            for header in (
                f"Bearer {SECRET}",
                f"Bearer {SECRET}x",
                f"Basic {SECRET}",
                SECRET,
                f"Bearer {SECRET} {SECRET}",
            ):
                for target, body in (
                    ("GET /v0/health", b""),
                    ("GET /v0/metrics", b""),
                    ("GET /v0/topics/a.b", b""),
                    ("GET /v0/topics/b", b""),
                    ("DELETE /v0/topics/a.b", b""),
                    ("POST /v0/topics/a.b", b'{"records":[{"data":1}]}'),
                    ("POST /v0/topics/a.b", b"{"),
                    ("BREW /v0/nowhere", b""),
                    ("broken", b""),
                ):
                    said.append(await ask(server.url, target, header, body))
            said.append(repr(vars(server)).encode())

    asyncio.run(asyncio.wait_for(run(), 60))
    assert {int(answer.split()[1]) for answer in said[:-1]} >= {200, 201, 400, 401, 403}
    assert "key-1" in heard.text, "the log does say which key it was"
    for output in (*said, heard.text.encode()):
        assert SECRET.encode() not in output


async def ask(url: str, target: str, authorization: str, body: bytes) -> bytes:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {authorization}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    return answer


def test_a_traceback_in_the_log_has_no_key_in_it(heard: Heard) -> None:
    def fail(context: Context, request: Request, reply: Reply) -> None:
        raise RuntimeError(f"a bug in {request}")

    context = Context(Settings(api_keys=Secret(SECRET)), RecordLimits(), SimClock(), 0)
    table = Table([Route("GET", "/v0/topics", Scope.READ, fail, Operation("", "", ""))])
    answers: list[Response] = []
    dispatch = Dispatcher(context, table, context.authenticator, context.quota)
    dispatch(request(f"Bearer {SECRET}"), answers.append)
    assert [answer.status for answer in answers] == [500]
    assert "Traceback" in heard.text and "a bug in Request(" in heard.text
    assert SECRET not in heard.text and SECRET.encode() not in answers[0].body


def test_a_server_that_refuses_its_keys_does_not_show_them(tmp_path: Path) -> None:
    environment = {name: value for name, value in environ.items() if not name.startswith("TOPICS_")}
    done = subprocess.run(
        [sys.executable, "-m", "topics", "serve", "--port", "0", "--data-dir", str(tmp_path / "data")],
        env=environment | {"TOPICS_API_KEYS": f"other,{SECRET}:reed"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "TOPICS_API_KEYS: entry 2 has an unknown scope" in " ".join(done.stderr.split())
    assert SECRET not in done.stdout + done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("owner", ["key:k1", "session:s1", "nothing:n1"])
def test_an_owner_that_only_accounts_know_is_nobody_without_them(owner: str) -> None:
    with pytest.raises(Unauthorized, match="not known any more"):
        keys("k").owned(owner)
