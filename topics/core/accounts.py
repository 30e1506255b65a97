"""The accounts that exist: users by id and e-mail, managed keys and sessions by id.

What is held is the fact that last said how each is, so that a snapshot holds just these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from msgspec.structs import replace

from topics.core.accountfacts import (
    AccountFact,
    KeyGone,
    KeyPut,
    KeysUsed,
    SessionGone,
    SessionPut,
    UserGone,
    UserPut,
)

USERS = b"u/"
KEYS = b"k/"
SESSIONS = b"i/"


class Accounts:
    def __init__(self) -> None:
        self.users: dict[str, UserPut] = {}
        self.keys: dict[str, KeyPut] = {}
        self.sessions: dict[str, SessionPut] = {}
        self.changed: set[bytes] = set()
        """Snapshot keys of what came, changed or went since a checkpoint last looked."""
        self.version = 0
        """Another number after each change that may take a right away or give one."""
        self._by_email: dict[str, str] = {}
        self._by_link: dict[bytes, str] = {}
        self._sessions_of: dict[str, set[str]] = {}

    def user_of(self, email: str) -> UserPut | None:
        """The user with this e-mail, which is in lower case."""
        user_id = self._by_email.get(email)
        return None if user_id is None else self.users[user_id]

    def user_of_link(self, link_hash: bytes) -> UserPut | None:
        user_id = self._by_link.get(link_hash)
        return None if user_id is None else self.users[user_id]

    def sessions_of(self, user_id: str) -> list[SessionPut]:
        """In the order in which they began."""
        found = [self.sessions[session_id] for session_id in self._sessions_of.get(user_id, ())]
        return sorted(found, key=lambda session: (session.created_ms, session.session_id))

    def apply(self, fact: AccountFact) -> None:
        match fact:
            case UserPut():
                self._forget_user(fact.user_id)
                self._add_user(fact)
            case UserGone():
                for session in self.sessions_of(fact.user_id):
                    self._end(session.session_id)
                self._forget_user(fact.user_id)
            case KeyPut():
                self.keys[fact.key_id] = fact
                self.changed.add(KEYS + fact.key_id.encode())
            case KeyGone():
                self.keys.pop(fact.key_id, None)
                self.changed.add(KEYS + fact.key_id.encode())
            case KeysUsed():
                self._use(fact)
                return
            case SessionPut():
                self.sessions[fact.session_id] = fact
                self._sessions_of.setdefault(fact.user_id, set()).add(fact.session_id)
                self.changed.add(SESSIONS + fact.session_id.encode())
            case SessionGone():
                self._end(fact.session_id)
            case _:
                assert_never(fact)
        self.version += 1

    def _add_user(self, user: UserPut) -> None:
        self.users[user.user_id] = user
        self._by_email[user.email] = user.user_id
        if user.link_hash:
            self._by_link[user.link_hash] = user.user_id
        self.changed.add(USERS + user.user_id.encode())

    def _forget_user(self, user_id: str) -> None:
        user = self.users.pop(user_id, None)
        if user is not None:
            self._by_email.pop(user.email, None)
            self._by_link.pop(user.link_hash, None)
        self.changed.add(USERS + user_id.encode())

    def _use(self, fact: KeysUsed) -> None:
        for key_id in fact.key_ids:
            key = self.keys.get(key_id)
            if key is not None:
                self.keys[key_id] = replace(key, used_ms=max(key.used_ms, fact.at_ms))
                self.changed.add(KEYS + key_id.encode())

    def _end(self, session_id: str) -> None:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            left = self._sessions_of[session.user_id]
            left.discard(session_id)
            if not left:
                del self._sessions_of[session.user_id]
        self.changed.add(SESSIONS + session_id.encode())

    # ---- snapshots

    def image(self, key: bytes) -> UserPut | KeyPut | SessionPut | None:
        """What a snapshot holds under a key; None for what is gone."""
        name = key[len(USERS) :].decode()
        if key.startswith(USERS):
            return self.users.get(name)
        return self.keys.get(name) if key.startswith(KEYS) else self.sessions.get(name)

    def all_keys(self) -> Iterator[bytes]:
        """The snapshot keys of all that is there."""
        for start, names in ((USERS, self.users), (KEYS, self.keys), (SESSIONS, self.sessions)):
            yield from (start + name.encode() for name in names)
