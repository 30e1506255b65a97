"""Users made, changed and removed, each decided completely before the first change.

A user has a password, or a link by which one may be chosen once, or both. The last admin who can sign in stays one:
nobody else could make another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from topics.accountmodel import Role
from topics.core.accountcommands import AddUser, ChangeUser, DropUser, UseLink
from topics.core.accountfacts import AccountFact, SessionGone, UserGone, UserPut
from topics.core.accounts import Accounts
from topics.core.accountview import check_email, find_user, user_state
from topics.core.facts import encode
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID
from topics.errors import LastAdmin, NameTaken, Throttled, Unauthorized
from topics.limits import USERS_MAX

if TYPE_CHECKING:
    from topics.core.machine import Machine


def add(machine: Machine, command: AddUser, now_ms: int) -> Outcome:
    accounts = machine.accounts
    email = check_email(command.email)
    if command.first and accounts.users:
        raise Unauthorized("this server has been set up already: sign in, or ask an admin for an invitation")
    if accounts.user_of(email) is not None:
        raise NameTaken(f"there is a user {email} already; `topics user passwd {email}` makes a new link", email=email)
    if len(accounts.users) >= USERS_MAX:
        raise Throttled(f"there are {USERS_MAX} users, as many as there may be", limit="users", max=USERS_MAX)
    user = UserPut(
        command.user_id,
        email,
        command.role.value,
        command.password_hash,
        now_ms,
        now_ms,
        link_hash=command.link_hash,
        link_expires_ms=command.link_expires_ms,
    )
    return _stored(machine, user, [user], now_ms)


def change(machine: Machine, command: ChangeUser, now_ms: int) -> Outcome:
    accounts = machine.accounts
    user = find_user(accounts, command.user_id)
    new = replace(
        user,
        role=user.role if command.role is None else command.role.value,
        disabled=user.disabled if command.disabled is None else command.disabled,
        changed_ms=now_ms,
    )
    if command.password_hash is not None:
        new = replace(new, password_hash=command.password_hash, link_hash=b"", link_expires_ms=0)
    if command.link_hash is not None:
        new = replace(new, link_hash=command.link_hash, link_expires_ms=command.link_expires_ms)
    if not _is_ruling(new):
        _check_not_last(accounts, user, "disabled or have another role")
    ends = command.password_hash is not None or command.link_hash is not None or new.disabled
    return _stored(machine, new, [new, *_ends(accounts, user, command.spared_session_id if ends else None)], now_ms)


def use_link(machine: Machine, command: UseLink, now_ms: int) -> Outcome:
    accounts = machine.accounts
    user = accounts.user_of_link(command.link_hash)
    if user is None or user.disabled or user.link_expires_ms <= now_ms:
        raise Unauthorized("this link was used already, or is too old; ask an admin for a new one")
    new = replace(user, password_hash=command.password_hash, link_hash=b"", link_expires_ms=0, changed_ms=now_ms)
    return _stored(machine, new, [new, *_ends(accounts, user, "")], now_ms)


def drop(machine: Machine, command: DropUser, now_ms: int) -> Outcome:
    user = find_user(machine.accounts, command.user_id)
    _check_not_last(machine.accounts, user, "removed")
    state = user_state(machine.accounts, user, now_ms)
    fact = UserGone(user.user_id)
    machine.accounts.apply(fact)
    return stored(state, [fact])


def stored(reply: object, facts: list[AccountFact]) -> Outcome:
    return Outcome(reply, [StoredFact(META_LOG_ID, False, [encode(fact)]) for fact in facts], must_sync=True)


def _stored(machine: Machine, user: UserPut, facts: list[AccountFact], now_ms: int) -> Outcome:
    for fact in facts:
        machine.accounts.apply(fact)
    return stored(user_state(machine.accounts, user, now_ms), facts)


def _ends(accounts: Accounts, user: UserPut, spared_id: str | None) -> list[AccountFact]:
    """The ends of all sessions of a user but a spared one; of none when that is None."""
    if spared_id is None:
        return []
    sessions = accounts.sessions_of(user.user_id)
    return [SessionGone(session.session_id) for session in sessions if session.session_id != spared_id]


def _is_ruling(user: UserPut) -> bool:
    """Whether somebody can sign in and manage the others."""
    return user.role == Role.ADMIN.value and not user.disabled and bool(user.password_hash)


def _check_not_last(accounts: Accounts, user: UserPut, what: str) -> None:
    if _is_ruling(user) and not any(_is_ruling(other) for other in accounts.users.values() if other is not user):
        raise LastAdmin(
            f"{user.email} is the only admin who can sign in and cannot be {what}: make another admin first",
            user=user.email,
        )
