"""Accounts as users see them: people, managed keys and sessions. See docs/ACCOUNTS.md."""

from __future__ import annotations

from enum import Enum

import msgspec


class Role(Enum):
    """What a person may do: a viewer reads, an operator also writes and deletes, an admin does everything."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class UserStatus(Enum):
    INVITED = "invited"
    """Has a link, and no password yet."""
    ACTIVE = "active"
    DISABLED = "disabled"


class KeyStatus(Enum):
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
