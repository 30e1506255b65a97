from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable

import pytest

from topics.errors import Forbidden, InvalidSetting, Unauthorized
from topics.secret import Secret
from topics.server.auth import Authenticator
from topics.server.message import Request
from topics.server.principal import ALL_SCOPES, EVERYBODY, Principal, Scope
from topics.server.streamtokens import StreamTokens
from topics.settings import Settings
from topics.testing import SimClock

KEYS = "ann-secret,bob-secret:read:tenant42:"
SECRET = "a secret for tokens"


class Desk:
    """Tokens as a server with these keys makes and takes them."""

    def __init__(self, keys: str = KEYS, secret: str | None = SECRET, clock: SimClock | None = None) -> None:
        self.clock = clock or SimClock()
        settings = Settings(
            api_keys=Secret(keys) if keys else None, stream_token_secret=None if secret is None else Secret(secret)
        )
        self.authenticator = Authenticator.of(settings)
        self.tokens = StreamTokens.of(settings, self.authenticator, self.clock)

    def token(self, key: str = "ann-secret", *patterns: str, wid: str = "", ttl_ms: int = 1000) -> str:
        principal = self.authenticator.owner(key)
        return self.tokens.make(principal, Scope.READ, self.clock.now_ms() + ttl_ms, patterns, wid)

    def open(self, query: str, wid: str = "wid_1", **headers: str) -> Principal:
        request = Request("GET", f"/v0/watch/{wid}", query, headers, b"", 0, params={"wid": wid})
        return self.tokens.authenticate(request)


def test_a_token_stands_for_its_key_with_less() -> None:
    desk = Desk()
    ann = desk.open(f"token={desk.token('ann-secret', 'a', 'b:*')}")
    assert (ann.key_id, ann.scopes, ann.prefixes) == ("key-1", Scope.READ, ())
    assert [ann.may_touch(name) for name in ("a", "ab", "b:", "b:1", "c")] == [True, False, True, True, False]
    bob = desk.open(f"token={desk.token('bob-secret', '*')}")
    assert [bob.may_touch(name) for name in ("tenant42:x", "a")] == [True, False], "never more than its key"


def test_a_token_is_for_a_time() -> None:
    desk = Desk()
    token = desk.token(ttl_ms=1000)
    desk.clock.advance(999)
    desk.open(f"token={token}")
    desk.clock.advance(1)
    with pytest.raises(Unauthorized, match="expired"):
        desk.open(f"token={token}")


def test_a_token_may_be_for_one_stream() -> None:
    desk = Desk()
    token = desk.token(wid="wid_1")
    assert desk.open(f"token={token}", "wid_1").key_id == "key-1"
    with pytest.raises(Forbidden, match="another stream"):
        desk.open(f"token={token}", "wid_2")


def test_a_token_of_a_server_with_the_same_secret_is_good_and_of_any_other_is_not() -> None:
    first = Desk()
    token = first.token()
    assert Desk(clock=first.clock).open(f"token={token}").key_id == "key-1"
    for other in (Desk(secret="another secret ...", clock=first.clock), Desk(secret=None, clock=first.clock)):
        with pytest.raises(Unauthorized):
            other.open(f"token={token}")


def test_a_token_follows_its_key_and_not_the_place_of_its_key() -> None:
    first = Desk()
    token = first.token("bob-secret")
    moved = Desk("new-secret,bob-secret:read+write:tenant42:,ann-secret", clock=first.clock).open(f"token={token}")
    assert (moved.key_id, moved.scopes, moved.prefixes) == ("key-2", Scope.READ, ("tenant42:",))
    with pytest.raises(Unauthorized, match="not configured any more"):
        Desk("ann-secret,new-secret", clock=first.clock).open(f"token={token}")
    weaker = Desk("bob-secret:write:tenant42:", clock=first.clock).open(f"token={token}")
    assert weaker.scopes == Scope(0), "what the key may not do any more, its tokens may not"


def test_a_key_may_come_in_its_place() -> None:
    desk = Desk()
    assert desk.open("token=ann-secret") == Principal("key-1", ALL_SCOPES)
    assert desk.open("x=1&token=ann%2Dsecret&token=nonsense").key_id == "key-1", "the first of several"
    assert desk.open("", authorization="Bearer ann-secret").key_id == "key-1"
    assert desk.open("token=nonsense", authorization="Bearer bob-secret").key_id == "key-2", "the header goes first"
    for query in ("", "token=", "token=nonsense", "token=st_", "token=st_a.b", "token=nonsense&token=ann-secret"):
        with pytest.raises(Unauthorized):
            desk.open(query)
    with pytest.raises(Unauthorized):
        desk.open("token=ann-secret", authorization="Bearer nonsense")


def test_without_keys_everybody_may_whatever_they_bring() -> None:
    desk = Desk(keys="")
    assert desk.open("") is desk.open("token=nonsense") is EVERYBODY
    token = desk.tokens.make(EVERYBODY, Scope.READ, desk.clock.now_ms() + 1000, (), "")
    assert desk.open(f"token={token}") is EVERYBODY
    with pytest.raises(Unauthorized):
        Desk(clock=desk.clock).open(f"token={token}")


def flip(text: str, at: int) -> str:
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


def test_a_token_that_was_changed_anywhere_is_refused() -> None:
    desk = Desk()
    token = desk.token("ann-secret", "a", wid="wid_1")
    # The last character of base64 may have bits that do not count.
    for at in range(len(token) - 1):
        with pytest.raises(Unauthorized):
            desk.open(f"token={flip(token, at)}")
    claims = urlsafe_b64decode(token[3:].partition(".")[0] + "==").replace(b'"a"', b'"*"')
    forged = "st_" + urlsafe_b64encode(claims).decode().rstrip("=") + "." + token.partition(".")[2]
    with pytest.raises(Unauthorized):
        desk.open(f"token={forged}")
    with pytest.raises(Unauthorized):
        desk.open(f"token=st_{'A' * 100_000}.{'A' * 43}")


def test_a_token_shows_nothing_of_its_key() -> None:
    desk = Desk()
    token = desk.token()
    shown = urlsafe_b64decode(token[3:].partition(".")[0] + "==")
    for key in desk.authenticator:
        assert key.digest not in shown and key.digest.hex().encode() not in shown
    assert b"ann" not in shown and b"key-1" not in shown


@pytest.mark.parametrize("make", [lambda: Desk(secret="short"), lambda: Desk(secret="x" * 15)])
def test_a_secret_that_is_none_is_refused_and_not_shown(make: Callable[[], Desk]) -> None:
    with pytest.raises(InvalidSetting, match="TOPICS_STREAM_TOKEN_SECRET is too short") as caught:
        make()
    assert "short:" not in str(caught.value) and "xxx" not in str(caught.value)


@pytest.mark.parametrize(
    "claims", ["!", "A", "bm90IGpzb24", "e30", "W10"], ids=["no base64", "cut", "no JSON", "{}", "[]"]
)
def test_what_we_signed_and_do_not_understand_is_no_token(claims: str) -> None:
    """As another version of the server may have made it, with the same secret."""
    desk = Desk()
    token = f"st_{claims}.{desk.tokens._signature(claims)}"
    with pytest.raises(Unauthorized, match="a known key is needed"):
        desk.open(f"token={token}")
