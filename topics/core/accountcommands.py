"""Commands about accounts. Ids and hashes are made at the edge: the core knows no chance, and never sees a secret."""

from __future__ import annotations

from dataclasses import dataclass

from topics.accountmodel import Role


class OfAccounts:
    """What all these have in common, so that one look tells them from the commands of records."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AddUser(OfAccounts):
    user_id: str
    email: str
    role: Role
    password_hash: str = ""
    link_hash: bytes = b""
    link_expires_ms: int = 0
    first: bool = False
    """Only when there is no user yet."""


@dataclass(frozen=True, slots=True)
class ChangeUser(OfAccounts):
    """What is None stays. A new password, a new link and being disabled end all sessions but one that is spared."""

    user_id: str
    role: Role | None = None
    disabled: bool | None = None
    password_hash: str | None = None
    link_hash: bytes | None = None
    link_expires_ms: int = 0
    spared_session_id: str = ""


@dataclass(frozen=True, slots=True)
class UseLink(OfAccounts):
    """Choose a password by a link, which is used up by it."""

    link_hash: bytes
    password_hash: str


@dataclass(frozen=True, slots=True)
class DropUser(OfAccounts):
    user_id: str


@dataclass(frozen=True, slots=True)
class AddKey(OfAccounts):
    key_id: str
    name: str
    secret_hash: str
    scopes: tuple[str, ...]
    prefixes: tuple[str, ...]
    created_by: str
    expires_ms: int = 0


@dataclass(frozen=True, slots=True)
class RevokeKey(OfAccounts):
    key_id: str


@dataclass(frozen=True, slots=True)
class NoteKeysUsed(OfAccounts):
    key_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginSession(OfAccounts):
    session_id: str
    user_id: str
    life_ms: int
    address: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class RefreshSession(OfAccounts):
    """With the generation of the refresh token that was shown."""

    session_id: str
    generation: int
    life_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True)
class EndSession(OfAccounts):
    session_id: str


@dataclass(frozen=True, slots=True)
class OpenAudit(OfAccounts):
    """Make the topic that holds a copy of the audit log, if there is none."""


UserCommand = AddUser | ChangeUser | UseLink | DropUser
KeyCommand = AddKey | RevokeKey | NoteKeysUsed
SessionCommand = BeginSession | RefreshSession | EndSession
AccountCommand = UserCommand | KeyCommand | SessionCommand | OpenAudit
