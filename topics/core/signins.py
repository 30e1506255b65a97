"""Sessions: begun by a sign-in, refreshed, ended.

Refresh tokens are numbered. A refresh is good with the number that is current, and raises it. The number before is
still answered for a moment, since two tabs of one browser may refresh at once, but raises nothing. Any older one means
that a token was copied: the session ends, for whoever has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec.structs import replace

from topics.core.accountcommands import BeginSession, EndSession, RefreshSession
from topics.core.accountfacts import AccountFact, SessionGone, SessionPut
from topics.core.accountview import find_session, find_user
from topics.core.outcome import Outcome
from topics.core.people import stored
from topics.errors import Unauthorized
from topics.limits import AGENT_CHARS_MAX, SESSIONS_PER_USER_MAX

if TYPE_CHECKING:
    from topics.core.machine import Machine


class Refresh(Enum):
    ROTATED = auto()
    """There is a new refresh token."""
    REPEATED = auto()
    """Somebody else has it, a moment ago."""
    REUSED = auto()
    """The session was ended."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    how: Refresh
    session: SessionPut


def begin(machine: Machine, command: BeginSession, now_ms: int) -> Outcome:
    accounts = machine.accounts
    user = find_user(accounts, command.user_id)
    if user.disabled or not user.password_hash:
        raise Unauthorized("this user cannot sign in")
    live = [session for session in accounts.sessions_of(user.user_id) if session.expires_ms > now_ms]
    kept = {session.session_id for session in live[max(0, len(live) + 1 - SESSIONS_PER_USER_MAX) :]}
    facts: list[AccountFact] = [
        SessionGone(session.session_id)
        for session in accounts.sessions_of(user.user_id)
        if session.session_id not in kept
    ]
    session = SessionPut(
        command.session_id,
        user.user_id,
        0,
        now_ms,
        now_ms,
        now_ms + command.life_ms,
        command.address,
        command.agent[:AGENT_CHARS_MAX],
    )
    facts += [session, replace(user, signed_in_ms=now_ms)]
    for fact in facts:
        accounts.apply(fact)
    return stored(session, facts)


def refresh(machine: Machine, command: RefreshSession, now_ms: int) -> Outcome:
    accounts = machine.accounts
    session = accounts.sessions.get(command.session_id)
    if session is None or session.expires_ms <= now_ms:
        raise Unauthorized("this session is over; sign in again")
    if command.generation == session.generation:
        fact = replace(
            session,
            generation=session.generation + 1,
            refreshed_ms=now_ms,
            expires_ms=now_ms + command.life_ms,
        )
        accounts.apply(fact)
        return stored(Refreshed(Refresh.ROTATED, fact), [fact])
    if command.generation == session.generation - 1 and now_ms - session.refreshed_ms <= command.grace_ms:
        return Outcome(Refreshed(Refresh.REPEATED, session))
    gone = SessionGone(session.session_id)
    accounts.apply(gone)
    return stored(Refreshed(Refresh.REUSED, session), [gone])


def end(machine: Machine, command: EndSession) -> Outcome:
    session = find_session(machine.accounts, command.session_id)
    fact = SessionGone(session.session_id)
    machine.accounts.apply(fact)
    return stored(session, [fact])
