"""Signing in and out: passwords checked, sessions begun, refreshed and ended.

Who guesses passwords waits: after some failures of an account from one address, of an address, or of an account from
anywhere, each next attempt has to wait twice as long. An e-mail that nobody has gets the same answer, after the same
work, as a wrong password. A sign-in always begins a session with a new id, whatever cookies came with it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from topics.accountmodel import Role, UserState
from topics.clock import Clock
from topics.core.accountcommands import BeginSession, EndSession, RefreshSession
from topics.core.accountfacts import SessionPut
from topics.core.signins import Refreshed
from topics.engine.host import Host
from topics.errors import InvalidRequest, Unauthorized
from topics.limits import SECOND_MS
from topics.server.attempts import Attempts
from topics.server.desk import SET_UP_MS, Desk
from topics.server.hashing import Hashing
from topics.server.websessions import GRACE_MS, SESSION_MS

PAIR_FREE: Final = 5
PAIR_WAIT_MS_MAX: Final = 900 * SECOND_MS
ADDRESS_FREE: Final = 30
ADDRESS_WAIT_MS_MAX: Final = 300 * SECOND_MS
ACCOUNT_FREE: Final = 50
ACCOUNT_WAIT_MS_MAX: Final = 30 * SECOND_MS
"""Small, because others can make somebody wait with it."""


@dataclass(slots=True)
class _Outcome:
    good: bool = False


class Door:
    """Where people sign in."""

    def __init__(self, hashing: Hashing, clock: Clock) -> None:
        self._hashing = hashing
        self._clock = clock
        self._by_pair = Attempts(clock, "sign-ins", PAIR_FREE, PAIR_WAIT_MS_MAX)
        self._by_address = Attempts(clock, "sign-ins", ADDRESS_FREE, ADDRESS_WAIT_MS_MAX)
        self._by_account = Attempts(clock, "sign-ins", ACCOUNT_FREE, ACCOUNT_WAIT_MS_MAX)
        self._set_up_token = ""
        self._set_up_until_ms = 0
        self.on_set_up: Callable[[], None] = lambda: None
        """Called when the first user was made, on a thread: the link is of no more use."""

    # ---- the first user

    def offer_set_up(self) -> str:
        """A token by which the first user is made, once, within the hour."""
        self._set_up_token = secrets.token_urlsafe(24)
        self._set_up_until_ms = self._clock.now_ms() + SET_UP_MS
        return self._set_up_token

    def look(self, host: Host, token: str, address: str) -> tuple[str, int]:
        """Whose password a link is for, empty for the first user, and until when it may be used."""
        self._by_address.check(address)
        if self._is_offered(token):
            return "", self._set_up_until_ms
        try:
            return Desk(host, self._hashing, self._clock).look_at_link(token)
        except Unauthorized:
            self._by_address.failed(address)
            raise

    def _is_offered(self, token: str) -> bool:
        offered = self._set_up_token and self._clock.now_ms() < self._set_up_until_ms
        return bool(offered) and secrets.compare_digest(
            self._set_up_token.encode(), token.encode("utf-8", "backslashreplace")
        )

    async def set_up(self, host: Host, token: str, email: str | None, password: str, address: str) -> UserState:
        """Choose a password by a link: that of the first user, or an invitation."""
        self._by_address.check(address)
        desk = Desk(host, self._hashing, self._clock)
        try:
            if self._is_offered(token):
                if not email:
                    raise InvalidRequest("the first user needs an e-mail", field="email", expected="an e-mail address")
                user = await desk.add_user(email, Role.ADMIN, password, first=True)
                self._set_up_token = ""
                await asyncio.to_thread(self.on_set_up)
                return user
            return await desk.use_link(token, password)
        except Unauthorized:
            self._by_address.failed(address)
            raise

    # ---- sessions

    async def sign_in(self, host: Host, email: str, password: str, address: str, agent: str) -> SessionPut:
        email = email.strip().lower()[:300]
        pair = f"{address} {email}"
        checks = ((self._by_pair, pair), (self._by_address, address), (self._by_account, email))
        with self._counted(checks) as outcome:
            user = host.engine.machine.accounts.user_of(email)
            if user is None or user.disabled or not user.password_hash:
                await self._hashing.match_nobody(password)
            else:
                outcome.good = await self._hashing.matches(user.password_hash, password)
        if not outcome.good or user is None:
            raise Unauthorized("the e-mail or the password is wrong")
        self._by_pair.succeeded(pair)
        return await self.begin(host, user.user_id, address, agent)

    async def begin(self, host: Host, user_id: str, address: str, agent: str) -> SessionPut:
        session = await host.submit(BeginSession(secrets.token_hex(16), user_id, SESSION_MS, address, agent))
        assert isinstance(session, SessionPut)
        return session

    async def refresh(self, host: Host, session_id: str, generation: int) -> Refreshed:
        refreshed = await host.submit(RefreshSession(session_id, generation, SESSION_MS, GRACE_MS))
        assert isinstance(refreshed, Refreshed)
        return refreshed

    async def end(self, host: Host, session_id: str) -> None:
        await host.submit(EndSession(session_id))

    async def check_password(self, host: Host, user_id: str, password: str, address: str) -> None:
        """The password of somebody who is signed in already, before something that takes more than a session."""
        user = host.engine.machine.accounts.users[user_id]
        pair = f"{address} {user.email}"
        with self._counted(((self._by_pair, pair),)) as outcome:
            outcome.good = await self._hashing.matches(user.password_hash, password)
        if not outcome.good:
            raise Unauthorized("the current password is wrong")
        self._by_pair.succeeded(pair)

    @contextmanager
    def _counted(self, checks: Sequence[tuple[Attempts, str]]) -> Iterator[_Outcome]:
        """An attempt, which counts from before its password is compared. One that is given up has failed."""
        for attempts, name in checks:
            attempts.check(name)
        for attempts, name in checks:
            attempts.begin(name)
        outcome = _Outcome()
        try:
            yield outcome
        finally:
            for attempts, name in checks:
                attempts.end(name, failed=not outcome.good)
