"""Accounts as users see them, and finding one or saying that there is none."""

from __future__ import annotations

import re
from typing import Final

from topics.accountmodel import KeyState, KeyStatus, Role, SessionState, UserState, UserStatus
from topics.core.accountfacts import KeyPut, SessionPut, UserPut
from topics.core.accounts import Accounts
from topics.core.names import shorten
from topics.errors import InvalidRequest, KeyNotFound, SessionNotFound, UserNotFound
from topics.limits import EMAIL_CHARS_MAX

_EMAIL: Final = re.compile(r"[^\s@<>\"'`,;:()\\&\x00-\x1f\x7f]+@[^\s@<>\"'`,;:()\\&\x00-\x1f\x7f]+")


def check_email(text: str, field: str = "email") -> str:
    """An e-mail as it is stored: in lower case, without spaces around it."""
    email = text.strip().lower()
    if len(email) <= EMAIL_CHARS_MAX and _EMAIL.fullmatch(email):
        return email
    shown = shorten(text)
    expected = f"an e-mail address like ada@example.org, at most {EMAIL_CHARS_MAX} characters"
    raise InvalidRequest(f'{field} must be {expected}, not "{shown}"', field=field, value=shown, expected=expected)


# ---- finding


def find_user(accounts: Accounts, who: str) -> UserPut:
    """A user by id, or by e-mail."""
    found = accounts.users.get(who) or accounts.user_of(who.strip().lower())
    if found is None:
        shown = shorten(who)
        raise UserNotFound(f'there is no user "{shown}"; `topics user ls` shows who there is', user=shown)
    return found


def find_key(accounts: Accounts, key_id: str) -> KeyPut:
    found = accounts.keys.get(key_id)
    if found is None:
        shown = shorten(key_id)
        raise KeyNotFound(f'there is no managed key "{shown}"; `topics key ls` shows their ids', key=shown)
    return found


def find_session(accounts: Accounts, session_id: str) -> SessionPut:
    found = accounts.sessions.get(session_id)
    if found is None:
        raise SessionNotFound("there is no such session; it may have ended", session=shorten(session_id))
    return found


# ---- what is shown


def user_state(accounts: Accounts, user: UserPut, now_ms: int) -> UserState:
    return UserState(
        id=user.user_id,
        email=user.email,
        role=Role(user.role),
        status=_user_status(user),
        created_ts=user.created_ms,
        changed_ts=user.changed_ms,
        signed_in_ts=user.signed_in_ms or None,
        link_expires_ts=user.link_expires_ms if user.link_hash and user.link_expires_ms > now_ms else None,
        session_count=sum(session.expires_ms > now_ms for session in accounts.sessions_of(user.user_id)),
    )


def _user_status(user: UserPut) -> UserStatus:
    if user.disabled:
        return UserStatus.DISABLED
    return UserStatus.ACTIVE if user.password_hash else UserStatus.INVITED


def key_status(key: KeyPut, now_ms: int) -> KeyStatus:
    if key.revoked_ms:
        return KeyStatus.REVOKED
    return KeyStatus.EXPIRED if 0 < key.expires_ms <= now_ms else KeyStatus.ACTIVE


def key_state(key: KeyPut, now_ms: int) -> KeyState:
    return KeyState(
        id=key.key_id,
        name=key.name,
        scopes=key.scopes,
        prefixes=key.prefixes,
        status=key_status(key, now_ms),
        created_by=key.created_by,
        created_ts=key.created_ms,
        expires_ts=key.expires_ms or None,
        last_used_ts=key.used_ms or None,
        revoked_ts=key.revoked_ms or None,
    )


def session_state(accounts: Accounts, session: SessionPut) -> SessionState:
    return SessionState(
        id=session.session_id,
        user_id=session.user_id,
        email=user.email if (user := accounts.users.get(session.user_id)) is not None else "",
        created_ts=session.created_ms,
        refreshed_ts=session.refreshed_ms,
        expires_ts=session.expires_ms,
        address=session.address,
        agent=session.agent,
    )
