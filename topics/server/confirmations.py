"""Confirmation tokens: what a destructive call has to be repeated with.

A token is bound to an action, to what it is done to, to the key that asked and to a short time, so that it is good for
nothing else. It is `<expiry>.<signature>`; the secret is made at each start, so nothing is stored, and a token does not
outlive the server that gave it.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import Final

from topics.clock import Clock
from topics.errors import ConfirmationNeeded
from topics.limits import SECOND_MS
from topics.wire.heapanswers import moment

LIFE_MS: Final = 120 * SECOND_MS
SIGNATURE_CHARS: Final = 32


class Confirmations:
    def __init__(self, clock: Clock, secret: bytes = b"") -> None:
        self._clock = clock
        self._secret = secret or secrets.token_bytes(32)

    def check(self, action: str, name: str, life: int, key_id: str, *, force: bool, token: str) -> None:
        """Returns when the call may go ahead. Otherwise raises `ConfirmationNeeded`, with a token if it was forced.

        `life` tells topics of one name apart, so that a token for one is not good for the next.
        """
        if not force:
            raise ConfirmationNeeded(
                f"{action} of {name} cannot be undone: ask again with ?force=true to be given a confirmation token",
                action=action,
                name=name,
            )
        if not token:
            raise self._asked(action, name, life, key_id, f"{action} of {name} cannot be undone: repeat the call with")
        expiry, _, signature = token.partition(".")
        good = expiry.isascii() and expiry.isdecimal() and len(expiry) <= 20
        expires_ms = int(expiry) if good else 0
        expected = self._signature(action, name, life, key_id, expires_ms)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            why = f"the confirmation token is not one for {action} of {name}, or from before a restart: use"
            raise self._asked(action, name, life, key_id, why)
        if expires_ms <= self._clock.now_ms():
            why = "the confirmation token has expired: repeat the call with"
            raise self._asked(action, name, life, key_id, why)

    def _asked(self, action: str, name: str, life: int, key_id: str, why: str) -> ConfirmationNeeded:
        expires_ms = self._clock.now_ms() + LIFE_MS
        token = f"{expires_ms}.{self._signature(action, name, life, key_id, expires_ms)}"
        return ConfirmationNeeded(
            f"{why} &confirmation_token=… from error.detail, within {LIFE_MS // SECOND_MS} seconds",
            action=action,
            name=name,
            confirmation_token=token,
            expires_at=moment(expires_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        )

    def _signature(self, action: str, name: str, life: int, key_id: str, expires_ms: int) -> str:
        bound = "\n".join((action, name, str(life), key_id, str(expires_ms)))
        return hmac.new(self._secret, bound.encode(), sha256).hexdigest()[:SIGNATURE_CHARS]
