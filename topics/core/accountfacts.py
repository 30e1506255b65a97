"""What happened to accounts, as it is stored: facts of the meta log. Of a secret only a hash is ever in one.

To change a struct: only add fields at its end with a default.
"""

from __future__ import annotations

import msgspec


class UserPut(msgspec.Struct, frozen=True, tag="user_put"):
    """There is such a user, or it is like this now."""

    user_id: str
    email: str
    role: str
    password_hash: str
    """Argon2id with its parameters; empty for somebody who has not chosen a password."""
    created_ms: int
    changed_ms: int
    disabled: bool = False
    link_hash: bytes = b""
    """SHA-256 of the secret in a link by which the user may choose a password, once; empty when there is none."""
    link_expires_ms: int = 0
    signed_in_ms: int = 0


class UserGone(msgspec.Struct, frozen=True, tag="user_gone"):
    """With the user go its sessions."""

    user_id: str


class KeyPut(msgspec.Struct, frozen=True, tag="key_put"):
    """There is such a managed key, or it is revoked now."""

    key_id: str
    name: str
    secret_hash: str
    """Argon2id with its parameters."""
    scopes: tuple[str, ...]
    prefixes: tuple[str, ...]
    created_by: str
    created_ms: int
    expires_ms: int = 0
    """0 is never."""
    revoked_ms: int = 0
    """0 when it is not."""
    used_ms: int = 0


class KeyGone(msgspec.Struct, frozen=True, tag="key_gone"):
    """A key that was revoked or had expired long ago is forgotten."""

    key_id: str


class KeysUsed(msgspec.Struct, frozen=True, tag="keys_used"):
    """These keys were used within the last minute; keys that are gone are passed over."""

    key_ids: tuple[str, ...]
    at_ms: int


class SessionPut(msgspec.Struct, frozen=True, tag="session_put"):
    """A session began, or was refreshed."""

    session_id: str
    user_id: str
    generation: int
    """How often it was refreshed; only the refresh token of this generation is good."""
    created_ms: int
    refreshed_ms: int
    expires_ms: int
    address: str = ""
    agent: str = ""


class SessionGone(msgspec.Struct, frozen=True, tag="session_gone"):
    session_id: str


AccountFact = UserPut | UserGone | KeyPut | KeyGone | KeysUsed | SessionPut | SessionGone
