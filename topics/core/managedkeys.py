"""Managed keys made and revoked. A revoked key stays to be seen for a while, then it is forgotten."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from topics.accountmodel import SCOPE_NAMES
from topics.core.accountcommands import AddKey, NoteKeysUsed, RevokeKey
from topics.core.accountfacts import AccountFact, KeyGone, KeyPut, KeysUsed
from topics.core.accounts import Accounts
from topics.core.accountview import find_key, key_state
from topics.core.facts import encode
from topics.core.names import ROUTER_RULE, shorten
from topics.core.outcome import Outcome, StoredFact
from topics.core.people import stored
from topics.core.registry import META_LOG_ID
from topics.errors import InvalidRequest, Throttled
from topics.limits import (
    MANAGED_KEY_FORGOTTEN_MS,
    MANAGED_KEY_NAME_CHARS_MAX,
    MANAGED_KEY_PREFIXES_MAX,
    MANAGED_KEYS_MAX,
)

if TYPE_CHECKING:
    from topics.core.machine import Machine

_PREFIX: Final = re.compile(ROUTER_RULE.strip("^$"))


def add(machine: Machine, command: AddKey, now_ms: int) -> Outcome:
    accounts = machine.accounts
    facts: list[AccountFact] = [KeyGone(key.key_id) for key in _forgotten(accounts, now_ms)]
    key = KeyPut(
        command.key_id,
        check_name(command.name),
        command.secret_hash,
        check_scopes(command.scopes),
        check_prefixes(command.prefixes),
        command.created_by,
        now_ms,
        _check_expiry(command.expires_ms, now_ms),
    )
    if len(accounts.keys) - len(facts) >= MANAGED_KEYS_MAX:
        raise Throttled(
            f"there are {MANAGED_KEYS_MAX} managed keys, as many as there may be: revoke some",
            limit="managed_keys",
            max=MANAGED_KEYS_MAX,
        )
    facts.append(key)
    for fact in facts:
        accounts.apply(fact)
    return stored(key_state(key, now_ms), facts)


def revoke(machine: Machine, command: RevokeKey, now_ms: int) -> Outcome:
    """Revoking twice is no error: the key is as dead as it was."""
    key = find_key(machine.accounts, command.key_id)
    if key.revoked_ms:
        return Outcome(key_state(key, now_ms))
    fact = replace(key, revoked_ms=now_ms)
    machine.accounts.apply(fact)
    return stored(key_state(fact, now_ms), [fact])


def note_used(machine: Machine, command: NoteKeysUsed, now_ms: int) -> Outcome:
    """Not synced: what a crash forgets is a minute of a time that is told to the minute."""
    known = tuple(key_id for key_id in command.key_ids if key_id in machine.accounts.keys)
    if not known:
        return Outcome(None)
    fact = KeysUsed(known, now_ms)
    machine.accounts.apply(fact)
    return Outcome(None, [StoredFact(META_LOG_ID, False, [encode(fact)])])


def _forgotten(accounts: Accounts, now_ms: int) -> list[KeyPut]:
    def ended_ms(key: KeyPut) -> int:
        return key.revoked_ms or key.expires_ms

    return [key for key in accounts.keys.values() if 0 < ended_ms(key) <= now_ms - MANAGED_KEY_FORGOTTEN_MS]


# ---- what a key may be


def check_name(name: str) -> str:
    text = name.strip()
    if 1 <= len(text) <= MANAGED_KEY_NAME_CHARS_MAX and text.isprintable():
        return text
    expected = f"1 to {MANAGED_KEY_NAME_CHARS_MAX} printable characters that say what the key is for"
    raise InvalidRequest(f'name must be {expected}, not "{shorten(name)}"', field="name", expected=expected)


def check_scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """In their order, each once."""
    unknown = [scope for scope in scopes if scope not in SCOPE_NAMES]
    if unknown or not scopes:
        expected = f"at least one of {', '.join(SCOPE_NAMES)}"
        found = f'not "{shorten(unknown[0])}"' if unknown else "and there is none"
        raise InvalidRequest(f"scopes must be {expected}, {found}", field="scopes", expected=expected)
    return tuple(scope for scope in SCOPE_NAMES if scope in scopes)


def check_prefixes(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    if len(prefixes) > MANAGED_KEY_PREFIXES_MAX:
        raise InvalidRequest(f"a key has at most {MANAGED_KEY_PREFIXES_MAX} prefixes", field="prefixes")
    for prefix in prefixes:
        if not _PREFIX.fullmatch(prefix):
            expected = "beginnings of names, like tenant42:"
            raise InvalidRequest(
                f'prefixes must be {expected}; no name begins with "{shorten(prefix)}"',
                field="prefixes",
                value=shorten(prefix),
                expected=expected,
            )
    return tuple(dict.fromkeys(prefixes))


def _check_expiry(expires_ms: int, now_ms: int) -> int:
    if expires_ms == 0 or expires_ms > now_ms:
        return expires_ms
    expected = "a time that is still to come"
    raise InvalidRequest(f"expires_ts must be {expected}", field="expires_ts", value=expires_ms, expected=expected)
