"""What a session allows, by its id: for streams and sockets, which outlive the cookie that opened them."""

from __future__ import annotations

import msgspec
import pytest

from topics.accountmodel import Role
from topics.core.accountfacts import SessionPut, UserPut
from topics.core.accounts import Accounts
from topics.errors import Unauthorized
from topics.server.principal import Scope
from topics.server.signing import Signing
from topics.server.websessions import WebSessions
from topics.testing import FakeDisk, SimClock

LIFE_MS = 3_600_000


def test_a_session_is_good_until_it_is_over() -> None:
    clock, accounts = SimClock(), Accounts()
    now_ms = clock.now_ms()
    user = UserPut("ada", "ada@example.org", Role.VIEWER.value, "$argon2id$", now_ms, now_ms)
    accounts.apply(user)
    accounts.apply(SessionPut("s1", "ada", 0, now_ms, now_ms, now_ms + LIFE_MS))
    sessions = WebSessions(lambda: accounts, Signing(FakeDisk(), "/d", clock), clock, forwarded=False)
    principal = sessions.by_id("s1")
    assert (principal.user_id, principal.session_id, principal.scopes) == ("ada", "s1", Scope.READ)
    assert principal.expires_ms == now_ms + LIFE_MS
    with pytest.raises(Unauthorized):
        sessions.by_id("s2")
    accounts.apply(msgspec.structs.replace(user, disabled=True))
    with pytest.raises(Unauthorized):
        sessions.by_id("s1")
    accounts.apply(user)
    clock.advance(LIFE_MS - 1)
    assert sessions.by_id("s1") == principal
    clock.advance(1)
    with pytest.raises(Unauthorized, match="over"):
        sessions.by_id("s1")
