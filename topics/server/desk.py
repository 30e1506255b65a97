"""The desk where accounts are managed: what HTTP and `topics … --dir` both do, ids and secrets drawn here.

A secret leaves this file twice: to whoever asked, and as a hash to the engine.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeVar

import msgspec

from topics.accountmodel import KeyState, Role, UserState
from topics.clock import Clock
from topics.core.accountcommands import AddKey, AddUser, ChangeUser, DropUser, RevokeKey, UseLink
from topics.core.accountfacts import KeyPut
from topics.core.accounts import Accounts
from topics.core.accountview import find_key, find_user, key_state, user_state
from topics.core.commands import Command
from topics.engine.host import Host
from topics.errors import Unauthorized
from topics.limits import DAY_MS, SECOND_MS
from topics.server.hashing import Hashing
from topics.server.managedkeys import ID_BYTES, KEY_START, SECRET_BYTES

LINK_BYTES: Final = 24
LINK_MS: Final = 7 * DAY_MS
"""How long an invitation or a new link is good."""
SET_UP_MS: Final = 3600 * SECOND_MS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewKey:
    state: KeyState
    token: str
    """The whole key; nobody can tell it again."""


@dataclass(frozen=True, slots=True)
class NewLink:
    state: UserState
    token: str

    @property
    def link(self) -> str:
        return link_to(self.token)


class Desk:
    def __init__(self, host: Host, hashing: Hashing, clock: Clock, used: Collection[str] = ()) -> None:
        """`used` names the keys that were used since uses were last noted."""
        self._host = host
        self._hashing = hashing
        self._clock = clock
        self._used = used

    @property
    def accounts(self) -> Accounts:
        return self._host.engine.machine.accounts

    # ---- keys

    async def create_key(
        self, name: str, scopes: tuple[str, ...], prefixes: tuple[str, ...], expires_ms: int, created_by: str
    ) -> NewKey:
        key_id, secret = secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES)
        hashed = await self._hashing.key(secret)
        command = AddKey(key_id, name, hashed, scopes, prefixes, created_by, expires_ms)
        return NewKey(await self._submit(command, KeyState), f"{KEY_START}{key_id}_{secret}")

    def list_keys(self) -> list[KeyState]:
        """The newest first."""
        now_ms = self._clock.now_ms()
        found = sorted(self.accounts.keys.values(), key=lambda key: (-key.created_ms, key.key_id))
        return [self._state(key, now_ms) for key in found]

    def key(self, key_id: str) -> KeyState:
        return self._state(find_key(self.accounts, _bare(key_id)), self._clock.now_ms())

    def _state(self, key: KeyPut, now_ms: int) -> KeyState:
        """A key that was used since uses were last noted shows that at once, to the minute."""
        state = key_state(key, now_ms)
        if f"{KEY_START}{key.key_id}" in self._used:
            return msgspec.structs.replace(state, last_used_ts=now_ms)
        return state

    async def revoke_key(self, key_id: str) -> KeyState:
        return await self._submit(RevokeKey(_bare(key_id)), KeyState)

    # ---- users

    async def invite(self, email: str, role: Role) -> NewLink:
        """A user without a password, and the link by which it gets one."""
        token = secrets.token_urlsafe(LINK_BYTES)
        expires_ms = self._clock.now_ms() + LINK_MS
        command = AddUser(secrets.token_hex(8), email, role, link_hash=link_hash(token), link_expires_ms=expires_ms)
        return NewLink(await self._submit(command, UserState), token)

    async def add_user(self, email: str, role: Role, password: str, *, first: bool = False) -> UserState:
        hashed = await self._hashing.password(password)
        return await self._submit(AddUser(secrets.token_hex(8), email, role, hashed, first=first), UserState)

    async def new_link(self, who: str) -> NewLink:
        """For somebody who forgot the password: the old one does not work any more, and sessions end."""
        user = find_user(self.accounts, who)
        token = secrets.token_urlsafe(LINK_BYTES)
        expires_ms = self._clock.now_ms() + LINK_MS
        command = ChangeUser(user.user_id, link_hash=link_hash(token), link_expires_ms=expires_ms)
        return NewLink(await self._submit(command, UserState), token)

    async def use_link(self, token: str, password: str) -> UserState:
        # Looked at before a hash is made: guessing links costs nobody anything.
        self.look_at_link(token)
        return await self._submit(UseLink(link_hash(token), await self._hashing.password(password)), UserState)

    def look_at_link(self, token: str) -> tuple[str, int]:
        """The e-mail of the user whose password is chosen by a link, and until when that is possible."""
        user = self.accounts.user_of_link(link_hash(token))
        if user is None or user.disabled or user.link_expires_ms <= self._clock.now_ms():
            raise Unauthorized("this link was used already, or is too old; ask an admin for a new one")
        return user.email, user.link_expires_ms

    async def change_user(self, who: str, role: Role | None, disabled: bool | None) -> UserState:
        user = find_user(self.accounts, who)
        return await self._submit(ChangeUser(user.user_id, role, disabled), UserState)

    async def set_password(self, who: str, password: str, spared_session_id: str = "") -> UserState:
        user = find_user(self.accounts, who)
        hashed = await self._hashing.password(password)
        command = ChangeUser(user.user_id, password_hash=hashed, spared_session_id=spared_session_id)
        return await self._submit(command, UserState)

    async def drop_user(self, who: str) -> UserState:
        return await self._submit(DropUser(find_user(self.accounts, who).user_id), UserState)

    def list_users(self) -> list[UserState]:
        """In order of their e-mails."""
        now_ms = self._clock.now_ms()
        found = sorted(self.accounts.users.values(), key=lambda user: user.email)
        return [user_state(self.accounts, user, now_ms) for user in found]

    def user(self, who: str) -> UserState:
        return user_state(self.accounts, find_user(self.accounts, who), self._clock.now_ms())

    async def _submit(self, command: Command, kind: type[T]) -> T:
        reply = await self._host.submit(command)
        assert isinstance(reply, kind)
        return reply


def link_to(token: str) -> str:
    """Where a password is chosen. Behind the `#` a secret stays in the browser: no server, proxy or log sees it."""
    return f"/set-up#{token}"


def link_hash(token: str) -> bytes:
    """What is stored of a link. Its secret is 192 bits of chance: a fast hash is as good as a slow one."""
    return sha256(token.encode("utf-8", "backslashreplace")).digest()


def _bare(key_id: str) -> str:
    """The id of a key however it is shown: logs and the audit have it with its beginning."""
    return key_id.removeprefix(KEY_START)
