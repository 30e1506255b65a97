"""What a snapshot holds of accounts: of each user, managed key and session the fact that says how it is."""

from __future__ import annotations

from typing import Final

import msgspec

from topics.core.accountfacts import AccountFact, KeyPut, SessionPut, UserPut
from topics.core.accounts import KEYS, SESSIONS, USERS, Accounts

_DECODERS: Final[dict[bytes, msgspec.msgpack.Decoder[AccountFact]]] = {
    USERS: msgspec.msgpack.Decoder(UserPut),
    KEYS: msgspec.msgpack.Decoder(KeyPut),
    SESSIONS: msgspec.msgpack.Decoder(SessionPut),
}


def restore(accounts: Accounts, key: bytes, value: bytes) -> None:
    """Put what a snapshot holds under a key into accounts; keys of other things are passed over."""
    decoder = _DECODERS.get(key[:2])
    if decoder is not None:
        accounts.apply(decoder.decode(value))
        accounts.changed.discard(key)
