"""Stream tokens: what a browser puts into the address of an event stream in place of a key.

An EventSource cannot send headers, and an address ends up in histories and logs. So who has a key makes a token with
it: it opens streams only, for a short time, and may be narrowed to one watch session and to some topics. Where a token
may come, on the event streams and nowhere else, a whole key may come as well: a fallback for development.

A token is `st_<claims>.<signature>`, both base64url. The claims are JSON: whose it is, until when, and what it is
narrowed to. The signature is an HMAC-SHA256 over them, with a key that is made of `TOPICS_STREAM_TOKEN_SECRET`, or by
chance at each start. Whose it is, is told by an HMAC of the key's digest: it says nothing to who has the token, and
leads to nobody once the key is not configured any more. What the token allows is never more than its key allows now.
Of a managed key or a session it is the owner's name, which is looked up.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from topics.clock import Clock
from topics.errors import Forbidden, InvalidSetting, Unauthorized
from topics.server.auth import Authenticator
from topics.server.message import Request
from topics.server.principal import Principal, Scope
from topics.settings import Settings

TOKEN_START: Final = "st_"
TOKEN_CHARS_MAX: Final = 16_384
SECRET_VARIABLE: Final = "TOPICS_STREAM_TOKEN_SECRET"
SECRET_CHARS_MIN: Final = 16
OWNER_BYTES: Final = 16
QUERY_NAME: Final = "token"


class Claims(msgspec.Struct, frozen=True, array_like=True):
    owner: str
    """Which key, see `StreamTokens`."""
    expires_ms: int
    scopes: int
    patterns: tuple[str, ...] = ()
    wid: str = ""


_claims_decoder = msgspec.json.Decoder(Claims)


class StreamTokens:
    def __init__(self, authenticator: Authenticator, clock: Clock, secret: bytes) -> None:
        self._authenticator = authenticator
        self._clock = clock
        self._secret = secret
        self._owners = {self._owner(key.digest): key.principal for key in authenticator}
        self._owner_of = {principal.key_id: owner for owner, principal in self._owners.items()}

    @classmethod
    def of(cls, settings: Settings, authenticator: Authenticator, clock: Clock) -> StreamTokens:
        """Takes the secret out of the settings. Raises `InvalidSetting` when it is too short to be one."""
        if settings.stream_token_secret is None:
            return cls(authenticator, clock, secrets.token_bytes(32))
        text = settings.stream_token_secret.take()
        if len(text) < SECRET_CHARS_MIN:
            raise InvalidSetting(
                f"{SECRET_VARIABLE} is too short to be a secret: expected at least {SECRET_CHARS_MIN} characters",
                settings=[SECRET_VARIABLE],
            )
        return cls(authenticator, clock, text.encode())

    def make(self, principal: Principal, scopes: Scope, expires_ms: int, patterns: tuple[str, ...], wid: str) -> str:
        """A token for somebody who was authenticated with a key, or needs none."""
        owner = principal.owner or self._owner_of.get(principal.key_id, "")
        claims = _encode(msgspec.json.encode(Claims(owner, expires_ms, scopes.value, patterns, wid)))
        return f"{TOKEN_START}{claims}.{self._signature(claims)}"

    def authenticate(self, request: Request) -> Principal:
        """Who opens a stream: by header as always, or by the first `token` of the query."""
        if "authorization" in request.headers or not self._authenticator.is_on:
            return self._authenticator.authenticate(request)
        token = query_token(request.query)
        claims = self._read(token)
        if claims is None:
            if not token:
                return self._authenticator.authenticate(request)
            # A key, or nothing that is known: which of the two is said in the same words.
            return self._authenticator.owner(token)
        owner = self._owned(claims.owner)
        if claims.expires_ms <= self._clock.now_ms():
            raise Unauthorized("this stream token has expired; make a new one", expires_ts=claims.expires_ms)
        if claims.wid and request.params.get("wid") != claims.wid:
            raise Forbidden("this stream token is for another stream", field="wid")
        return replace(owner, scopes=owner.scopes & Scope(claims.scopes), patterns=claims.patterns)

    def _owned(self, owner: str) -> Principal:
        if ":" in owner:
            return self._authenticator.owned(owner)
        found = self._owners.get(owner)
        if found is None:
            raise Unauthorized("the key that made this stream token is not configured any more; make a new token")
        return found

    def _read(self, token: str) -> Claims | None:
        """What a token says, if we have signed it."""
        if not token.startswith(TOKEN_START) or len(token) > TOKEN_CHARS_MAX:
            return None
        text, _, signature = token.removeprefix(TOKEN_START).partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            return None
        try:
            return _claims_decoder.decode(_decode(text))
        except (NotBase64, msgspec.DecodeError, ValueError, RecursionError):
            # Signed with our secret by another version of the server.
            return None

    def _signature(self, claims: str) -> str:
        return _encode(self._mac(b"token", claims.encode()))

    def _owner(self, key_digest: bytes) -> str:
        return _encode(self._mac(b"owner", key_digest)[:OWNER_BYTES])

    def _mac(self, purpose: bytes, content: bytes) -> bytes:
        return hmac.digest(self._secret, b"topics stream " + purpose + b":" + content, "sha256")


def query_token(query: str) -> str:
    """The first of several, as browsers and proxies may add their own behind it; empty when there is none."""
    pairs = parse_qsl(query, keep_blank_values=True, errors="replace")
    return next((value for name, value in pairs if name == QUERY_NAME), "")


def _encode(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
