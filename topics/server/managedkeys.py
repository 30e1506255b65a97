"""Managed keys on requests: `dh_<id>_<secret>`, whose hash is with the accounts.

Comparing a secret with an Argon2id hash takes long on purpose, so it is done once: a text that was found good is
remembered by its SHA-256 digest, a wrong one as well. What the key may do is looked up anew on each request, by its id,
so that a key is dead the moment it is revoked or has expired. Several requests that show a new key at once wait for one
comparison.

Whoever shows wrong secrets has to wait longer and longer for the next comparison, by address.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from topics.clock import Clock
from topics.core.accountfacts import KeyPut
from topics.core.accounts import Accounts
from topics.errors import Unauthorized
from topics.limits import SECOND_MS
from topics.server.attempts import Attempts
from topics.server.hashing import Hashing
from topics.server.principal import Principal, scopes_of

KEY_START: Final = "dh_"
OWNER_START: Final = "key:"
ID_BYTES: Final = 6
SECRET_BYTES: Final = 24
REMEMBERED_MAX: Final = 10_000
FREE_FAILURES: Final = 10
WAIT_MS_MAX: Final = 60 * SECOND_MS

_FORM: Final = re.compile(r"dh_([0-9a-f]{12})_([0-9a-f]{48})")


class Unverified(Unauthorized):
    """A key whose secret was never compared: `ManagedKeys.verify` it, and ask again."""

    def __init__(self, token: str, digest: bytes) -> None:
        super().__init__("this key was not verified yet")
        self.token = token
        self.digest = digest


class ManagedKeys:
    def __init__(self, accounts: Callable[[], Accounts], hashing: Hashing, clock: Clock) -> None:
        self._accounts = accounts
        self._hashing = hashing
        self._clock = clock
        self._verified: OrderedDict[bytes, str] = OrderedDict()
        """By digest of a whole text, the id of the key."""
        self._refused: OrderedDict[bytes, None] = OrderedDict()
        self._principals: dict[str, tuple[KeyPut, Principal]] = {}
        self._running: dict[bytes, asyncio.Task[bool]] = {}
        self._failures = Attempts(clock, "keys", FREE_FAILURES, WAIT_MS_MAX)

    def owner(self, token: str, digest: bytes) -> Principal:
        """Whose key a text is. `Unverified` when that takes a comparison, `Unauthorized` when it is nobody's."""
        key_id = self._verified.get(digest)
        if key_id is not None:
            return self.by_id(key_id)
        form = _FORM.fullmatch(token)
        if form is None or digest in self._refused or form[1] not in self._accounts().keys:
            raise _unknown()
        raise Unverified(token, digest)

    def by_id(self, key_id: str) -> Principal:
        """What a key allows now."""
        key = self._accounts().keys.get(key_id)
        if key is None:
            raise _unknown()
        if key.revoked_ms:
            raise Unauthorized("this key was revoked; make a new one with `topics key create`", key=key_id)
        if 0 < key.expires_ms <= self._clock.now_ms():
            raise Unauthorized("this key has expired; make a new one with `topics key create`", key=key_id)
        known = self._principals.get(key_id)
        if known is None or known[0] is not key:
            known = self._principals[key_id] = (key, _principal(key))
        return known[1]

    async def verify(self, unverified: Unverified, address: str) -> None:
        """Compare the secret; returns when it is the key's, and raises `Unauthorized` when it is not."""
        self._failures.check(address)
        digest = unverified.digest
        running = self._running.get(digest)
        if running is None:
            running = asyncio.create_task(self._compare(unverified.token, digest))
            self._running[digest] = running
            running.add_done_callback(lambda _: self._running.pop(digest, None))
        # Who gives up waiting does not stop it for the others.
        if not await asyncio.shield(running):
            self._failures.failed(address)
            raise _unknown()

    async def _compare(self, token: str, digest: bytes) -> bool:
        form = _FORM.fullmatch(token)
        assert form is not None, "only what looks like a key is compared"
        key_id, secret = form.groups()
        key = self._accounts().keys.get(key_id)
        good = key is not None and await self._hashing.matches(key.secret_hash, secret)
        if good:
            self._verified[digest] = key_id
            _bound(self._verified)
        else:
            self._refused[digest] = None
            _bound(self._refused)
        return good


def _principal(key: KeyPut) -> Principal:
    return Principal(
        f"{KEY_START}{key.key_id}",
        scopes_of(key.scopes),
        key.prefixes,
        name=key.name,
        owner=f"{OWNER_START}{key.key_id}",
        expires_ms=key.expires_ms,
    )


def _bound(remembered: OrderedDict[bytes, str] | OrderedDict[bytes, None]) -> None:
    if len(remembered) > REMEMBERED_MAX:
        remembered.popitem(last=False)


def _unknown() -> Unauthorized:
    return Unauthorized("a known key is needed: send it as `Authorization: Bearer <key>`")
