"""Secrets are compared in constant time by construction: whatever decides on a secret goes through `compare_digest`.

Measured times would prove little on a busy machine. So the comparison itself is watched: that it takes place, that no
key of several is left out, and that the code has no other.
"""

from __future__ import annotations

import ast
import hmac
from collections.abc import Callable
from pathlib import Path

import pytest

import topics.server
from tests.client.rig import on_loop
from tests.security.askers import SCOPE_KEYS, STATIC_KEYS
from tests.server.accountrig import ADMIN_KEY, accounts_served
from topics.server import auth, signing, streamtokens

SECRETS = {
    "token",
    "signature",
    "secret",
    "digest",
    "presented",
    "password",
    "csrf",
    "mac",
    "key_digest",
    "secret_hash",
}
"""Names under which secrets go."""


class Spy:
    """Counts, and compares as ever."""

    def __init__(self) -> None:
        self.pairs: list[tuple[bytes | str, bytes | str]] = []
        self._compare: Callable[..., bool] = hmac.compare_digest

    def __call__(self, one: bytes | str, other: bytes | str) -> bool:
        self.pairs.append((one, other))
        return self._compare(one, other)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    found = Spy()
    monkeypatch.setattr(auth, "compare_digest", found)
    monkeypatch.setattr(hmac, "compare_digest", found)
    assert signing.hmac is hmac and streamtokens.hmac is hmac
    return found


@on_loop
async def test_every_static_key_is_compared_whichever_comes(tmp_path: Path, spy: Spy) -> None:
    count = STATIC_KEYS.count(",") + 1
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS) as served:
        for key, status in ((ADMIN_KEY, 200), (next(iter(SCOPE_KEYS)), 200), ("nobody", 401), ("", 401)):
            spy.pairs.clear()
            served.api.key = key
            assert (await served.api.get("/v0/topics")).status == status
            assert len(spy.pairs) == count, "as many comparisons for the first key as for none"
            assert all(len(one) == len(other) for one, other in spy.pairs), "digests, whose length says nothing"


@on_loop
async def test_tokens_sessions_and_their_csrf_are_compared_so(tmp_path: Path, spy: Spy) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        browser = await served.signed_up()
        spy.pairs.clear()
        assert (await browser.get("/v0/topics")).status == 200
        assert spy.pairs, "the signature of a session"
        spy.pairs.clear()
        browser.csrf = "forged"
        assert (await browser.post("/v1/snapshot")).status == 403
        assert len(spy.pairs) >= 2, "the signature, and the CSRF token"
        served.api.key = ADMIN_KEY
        token = (await served.api.post("/v0/watch/token", {})).body["token"]
        served.api.key = None
        spy.pairs.clear()
        assert (await served.api.get(f"/v0/watch/none?token={token[:-1]}x")).status == 401
        assert spy.pairs, "the signature of a stream token"


def test_no_secret_is_compared_in_another_way() -> None:
    """An `==` between two things that are called like secrets would tell by its time how far they agree."""
    found = []
    for path in sorted(Path(next(iter(topics.server.__path__))).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
                sides = [node.left, *node.comparators]
                named = [_name(side) in SECRETS for side in sides]
                if any(named) and not any(isinstance(side, ast.Constant) for side in sides):
                    found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert not found


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
