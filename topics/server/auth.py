"""Who a request comes from, static keys, and whether a setting would let in the world.

`TOPICS_API_KEYS` is read once. What is kept of a key is its SHA-256 digest; the text is dropped before the first
request, and no message quotes any part of an entry, since a slip of the pen may have put the secret into any field.
A presented token is hashed and compared with every key in constant time, without stopping at the one that fits.
Managed keys (`managedkeys.py`) and sign-ins (`websessions.py`) are asked behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from operator import or_

from topics.core.auditchain import INTERNAL_TOPICS
from topics.core.names import ROUTER_RULE, shorten
from topics.errors import Forbidden, InvalidSetting, NotReady, Unauthorized
from topics.server.managedkeys import KEY_START, ManagedKeys, Unverified
from topics.server.message import Request
from topics.server.principal import ALL_SCOPES, EVERYBODY, Principal, Scope
from topics.server.websessions import SESSION_COOKIE, WebSessions, cookies_of
from topics.settings import Settings

KEYS_VARIABLE = "TOPICS_API_KEYS"
BEARER = "bearer"

_SCOPES = {
    "read": Scope.READ,
    "write": Scope.WRITE,
    "delete": Scope.DELETE,
    "admin": Scope.ADMIN,
    "r": Scope.READ,
    "w": Scope.WRITE,
    "d": Scope.DELETE,
    "a": Scope.ADMIN,
    "rw": Scope.READ | Scope.WRITE,
}
_TOKEN = re.compile(r"[\x21-\x7e]+")
_PREFIX = re.compile(ROUTER_RULE.strip("^$"))
"""Every beginning of a name is itself one, of a topic or a router."""


class _Malformed(Exception):
    """What is wrong with an entry, without a word of it."""


@dataclass(frozen=True, slots=True)
class Key:
    digest: bytes
    principal: Principal


class Authenticator:
    """Knows the keys, and whom to ask for the others. Where it is off, everybody may do everything."""

    def __init__(self, keys: Iterable[Key] = (), is_on: bool = False) -> None:
        self._keys = tuple(keys)
        self.is_on = is_on or bool(self._keys)
        self.managed: ManagedKeys | None = None
        self.sessions: WebSessions | None = None
        """None until the server has recovered."""

    @classmethod
    def of(cls, settings: Settings) -> Authenticator:
        """Takes the keys out of the settings. Raises `InvalidSetting` rather than grant what may not be meant."""
        if settings.api_keys is None:
            return cls(is_on=settings.auth)
        # The text lives in the frames below this one only, which are gone when the error is raised.
        keys, problems = parse_keys(settings.api_keys.take())
        if problems:
            raise InvalidSetting("\n".join(problems), settings=[KEYS_VARIABLE])
        return cls(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def authenticate(self, request: Request) -> Principal:
        """Who asks; `Unauthorized` when authentication is on and the request brings no key and no session."""
        if not self.is_on:
            return EVERYBODY
        header = request.headers.get("authorization")
        if header is None and self.sessions is not None:
            signed_in = self.sessions.owner(request)
            if signed_in is not None:
                return signed_in
        elif header is None and SESSION_COOKIE in cookies_of(request):
            raise NotReady("who is signed in is known when the server has recovered; try again soon")
        return self.owner(_token(header or ""))

    def owner(self, token: str) -> Principal:
        """Whose key a text is; `Unauthorized` when it is none, and `Unverified` when that takes a while to see."""
        presented = _digest(token)
        found = None
        for key in self._keys:
            if compare_digest(key.digest, presented):
                found = key.principal
        if found is not None:
            return found
        if self.managed is not None and token.startswith(KEY_START):
            return self.managed.owner(token, presented)
        raise Unauthorized("a known key is needed: send it as `Authorization: Bearer <key>`")

    async def slow_owner(self, token: str, address: str) -> Principal:
        """The same, taking its time."""
        try:
            return self.owner(token)
        except Unverified as unverified:
            await self.verify(unverified, address)
            return self.owner(token)

    async def verify(self, unverified: Unverified, address: str) -> None:
        assert self.managed is not None, "only a managed key has to be verified"
        await self.managed.verify(unverified, address)

    def owned(self, owner: str) -> Principal:
        """What an owner that accounts know may do now; `Unauthorized` when that is nothing."""
        kind, _, name = owner.partition(":")
        if kind == "key" and self.managed is not None:
            return self.managed.by_id(name)
        if kind == "session" and self.sessions is not None:
            return self.sessions.by_id(name)
        raise Unauthorized("whoever asked for this is not known any more")

    def still(self, principal: Principal) -> Principal:
        """What somebody who was let in before may do now; `Unauthorized` when a key was revoked or a session ended."""
        return principal if not principal.owner else self.owned(principal.owner)


def _token(header: str) -> str:
    """The token of a header; empty, which is no key, when it brings none."""
    scheme, _, token = header.strip().partition(" ")
    return token.strip() if scheme.lower() == BEARER else ""


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "backslashreplace")).digest()


# ---- what a key may do


def check_scope(principal: Principal, needed: Scope) -> None:
    if not principal.may(needed):
        lacking = [str(scope.name).lower() for scope in needed & ~principal.scopes]
        raise Forbidden(f"this key lacks the scope {' and '.join(lacking)}", scope=lacking)


def check_name(principal: Principal, name: str, field: str = "topic") -> None:
    """A name in a path or a body lies within the key's prefixes; `field` says where it was found."""
    if name in INTERNAL_TOPICS:
        raise Forbidden(f"{name} belongs to the server: `topics audit` and /v1/audit show it", field=field, name=name)
    if not principal.may_touch(name):
        shown = shorten(name)
        message = f'this key may not touch {field} "{shown}": its names begin with {" or ".join(principal.prefixes)}'
        raise Forbidden(message, field=field, name=shown)


def check_place(principal: Principal, field: str) -> None:
    """Say where a runner reads or writes: it does so with the rights of its own process, in which prefixes of names
    mean nothing."""
    if principal.prefixes:
        raise Forbidden(
            f"a key that is bound to prefixes of names may not set {field}, which a runner uses with its own "
            "rights; have an admin without prefixes declare it",
            field=field,
        )


def check_config(principal: Principal, config: Mapping[str, object]) -> None:
    """The names in a topic's config: where its dead letters go, and its other name."""
    for field in ("dead_letter", "alias"):
        name = config.get(field)
        if isinstance(name, str):
            check_name(principal, name, field)


# ---- the start


def parse_keys(text: str) -> tuple[list[Key], list[str]]:
    """The keys of `key[:scopes[:prefixes]],…`, and what is wrong with the entries, each named by its place."""
    keys: list[Key] = []
    problems: list[str] = []
    places: dict[bytes, int] = {}
    for place, entry in enumerate(text.split(","), 1):
        try:
            key = _parse_entry(entry.strip(), place)
            twin = places.setdefault(key.digest, place)
            if twin != place:
                raise _Malformed(f"has the same key as entry {twin}; name each key once")
            keys.append(key)
        except _Malformed as error:
            problems.append(f"{KEYS_VARIABLE}: entry {place} {error}")
    return keys, problems


def _parse_entry(entry: str, place: int) -> Key:
    secret, _, rest = entry.partition(":")
    scopes, _, prefixes = rest.partition(":")
    if not entry:
        raise _Malformed("is empty; expected key[:scopes[:prefixes]]")
    if not secret:
        raise _Malformed("has no key before its first colon; expected key[:scopes[:prefixes]]")
    if not _TOKEN.fullmatch(secret):
        raise _Malformed("has a key that no header can carry; expected visible ASCII characters without spaces")
    return Key(_digest(secret), Principal(f"key-{place}", _parse_scopes(scopes), _parse_prefixes(prefixes)))


def _parse_scopes(text: str) -> Scope:
    if not text:
        return ALL_SCOPES
    found = [_SCOPES.get(word.strip()) for word in text.split("+")]
    known = [scope for scope in found if scope is not None]
    if len(known) < len(found):
        raise _Malformed(
            f"has an unknown scope (word {found.index(None) + 1} of {len(found)}); expected read, write, delete and "
            "admin, or r, w, d, a and rw, separated by +. A key itself may not contain a colon"
        )
    return reduce(or_, known)


def _parse_prefixes(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    prefixes = [prefix.strip() for prefix in text.split("|")]
    for number, prefix in enumerate(prefixes, 1):
        # An empty one among others would allow every name.
        if not _PREFIX.fullmatch(prefix):
            raise _Malformed(
                f"has a prefix that no name begins with (prefix {number} of {len(prefixes)}); expected beginnings of "
                "names such as tenant42:|shared. , separated by |"
            )
    return tuple(prefixes)


def asks_for_keys(settings: Settings) -> bool:
    return settings.api_keys is not None or settings.auth


def check_bind(settings: Settings) -> None:
    """Refuse to be open to the world without keys."""
    if asks_for_keys(settings) or settings.allow_insecure_no_auth or is_loopback(settings.host):
        return
    raise InvalidSetting(
        f"TOPICS_HOST={settings.host} can be reached from outside and no keys are configured: expected keys in "
        f"{KEYS_VARIABLE}, or TOPICS_AUTH=1 for users and keys of its own, or TOPICS_HOST=127.0.0.1, or "
        "TOPICS_ALLOW_INSECURE_NO_AUTH=1 in a network you trust",
        settings=["TOPICS_HOST", KEYS_VARIABLE],
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address. A name other than localhost may lead anywhere."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
