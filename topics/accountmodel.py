"""Accounts as users see them: people, managed keys, sessions and the audit log. See docs/ACCOUNTS.md."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec


class Role(Enum):
    """What a person may do: a viewer reads, an operator also writes and deletes, an admin does everything."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class UserStatus(Enum):
    """Whether somebody can sign in."""

    INVITED = "invited"
    """Has a link, and no password yet."""
    ACTIVE = "active"
    DISABLED = "disabled"


class KeyStatus(Enum):
    """Whether a managed key works."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


SCOPE_NAMES = ("read", "write", "delete", "admin")
"""In the order in which they are shown."""

SCOPES_OF_ROLE: dict[Role, tuple[str, ...]] = {
    Role.VIEWER: ("read",),
    Role.OPERATOR: ("read", "write", "delete"),
    Role.ADMIN: SCOPE_NAMES,
}


class UserState(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who signs in."""

    id: str
    email: str
    role: Role
    status: UserStatus
    created_ts: int
    changed_ts: int
    signed_in_ts: int | None = None
    """When a session of this user last began."""
    link_expires_ts: int | None = None
    """Until when the link that was last made for this user may be used; None when there is none."""
    session_count: int = 0


class KeyState(msgspec.Struct, frozen=True, kw_only=True):
    """A managed key without its secret, which nobody has but who made it."""

    id: str
    name: str
    scopes: tuple[str, ...]
    prefixes: tuple[str, ...]
    """Names must begin with one of these; empty is any name."""
    status: KeyStatus
    created_by: str
    created_ts: int
    expires_ts: int | None = None
    last_used_ts: int | None = None
    """To the minute."""
    revoked_ts: int | None = None


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in that is not over."""

    id: str
    user_id: str
    email: str
    created_ts: int
    refreshed_ts: int
    expires_ts: int
    address: str
    """Where it was begun from."""
    agent: str
    """What the browser called itself then."""


# ---- what is told once


class NewKey(KeyState, frozen=True, kw_only=True):
    """A managed key that was just made: a `KeyState`, and its whole text."""

    key: str
    """What requests carry. Nobody can tell it again; it is not in the `repr`."""
    warning: str = ""
    """Why it keeps nobody out, while authentication is off."""

    def __repr__(self) -> str:
        return f"<NewKey {self.id} {self.name}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("name", self.name)]


class NewLink(UserState, frozen=True, kw_only=True):
    """A user who needs a password: a `UserState`, and the link by which they choose one."""

    link: str
    """Works once, until `link_expires_ts`. Whoever has it can sign in as this user; it is not in the `repr`."""
    warning: str = ""
    """Why there is nothing to sign in to, while authentication is off."""

    def __repr__(self) -> str:
        return f"<NewLink {self.id} {self.email}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("email", self.email)]


class UserDropped(msgspec.Struct, frozen=True, kw_only=True):
    """A user who is gone."""

    id: str
    email: str
    deleted: bool


class SessionEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is over."""

    id: str
    ended: bool


# ---- the audit log


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the audit log: who did what to whom."""

    seq: int
    """Its place in the chain."""
    at: int
    action: str
    name: str
    """What it was done to."""
    key: str
    """With which key or by which user, never the secret."""
    who: str
    """What people call that key or user."""
    over: str
    """`http` or `grpc`."""
    outcome: str
    """`begun`, `done`, or the code of the error that ended it."""
    request_id: str
    address: str
    """Where it came from."""
    detail: dict[str, Any]
    previous: str
    """The hash of the line before."""
    hash: str


class AuditVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the audit log is as it was written."""

    intact: bool
    line_count: int
    first_seq: int
    last_seq: int
    last_hash: str
    """Note it elsewhere: a chain that still has it was not rewritten."""
    problem: str = ""
    """Where it does not hold, and why."""
