"""Sessions in a browser: cookies, and who a request with them comes from.

    topics_session   a signed token that says which session, good for ten minutes. HttpOnly
    topics_refresh   a signed token with the session's number, good for two weeks and once. HttpOnly, `/v1/auth` only
    topics_csrf      a text that follows from the session. A page of ours reads it and sends it back in `X-CSRF-Token`
                     with each request that changes something; a page of somebody else's cannot read it

All are `SameSite=Strict`, and `Secure` where a proxy says that the browser speaks TLS. The session itself is with the
accounts and is looked up on each request, so that it is over the moment it is ended, and a role counts as it is now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from topics.accountmodel import SCOPES_OF_ROLE, Role
from topics.clock import Clock
from topics.core.accountfacts import SessionPut
from topics.core.accounts import Accounts
from topics.errors import Forbidden, Unauthorized
from topics.limits import DAY_MS, SECOND_MS
from topics.server.message import Request
from topics.server.pageorigins import SAFE_METHODS, is_same_origin
from topics.server.principal import Principal, scopes_of
from topics.server.signing import Signing

SESSION_COOKIE: Final = "topics_session"
REFRESH_COOKIE: Final = "topics_refresh"
CSRF_COOKIE: Final = "topics_csrf"
CSRF_HEADER: Final = "x-csrf-token"
ACCESS_MS: Final = 600 * SECOND_MS
SESSION_MS: Final = 14 * DAY_MS
GRACE_MS: Final = 10 * SECOND_MS
REFRESH_PATH: Final = "/v1/auth"
OWNER_START: Final = "session:"
ADDRESS_CHARS_MAX: Final = 64

SetCookie = tuple[bytes, bytes]


class AccessClaims(msgspec.Struct, frozen=True):
    sid: str
    exp: int
    """Seconds since 1970, as every JWT has it."""
    use: str = "access"


class RefreshClaims(msgspec.Struct, frozen=True):
    sid: str
    exp: int
    gen: int
    use: str = "refresh"


_access_decoder = msgspec.json.Decoder(AccessClaims)
_refresh_decoder = msgspec.json.Decoder(RefreshClaims)


class WebSessions:
    def __init__(self, accounts: Callable[[], Accounts], signing: Signing, clock: Clock, forwarded: bool) -> None:
        self._accounts = accounts
        self._signing = signing
        self._clock = clock
        self._forwarded = forwarded
        """Whether a proxy is believed that says how the browser connects."""

    # ---- requests

    def owner(self, request: Request) -> Principal | None:
        """Who signed in with the cookies of a request; None when it has none."""
        token = cookies_of(request).get(SESSION_COOKIE)
        if token is None:
            return None
        claims = self._signing.read(token, _access_decoder)
        if claims is None or claims.use != "access" or claims.exp * SECOND_MS <= self._clock.now_ms():
            raise Unauthorized("the sign-in has expired; refresh it, or sign in again")
        principal = self.by_id(claims.sid)
        self.check_origin(request)
        if request.method not in SAFE_METHODS:
            self.check_csrf(request, claims.sid)
        return principal

    def by_id(self, session_id: str) -> Principal:
        """What a session allows now."""
        accounts = self._accounts()
        session = accounts.sessions.get(session_id)
        user = None if session is None else accounts.users.get(session.user_id)
        if session is None or user is None or user.disabled or session.expires_ms <= self._clock.now_ms():
            raise Unauthorized("this session is over; sign in again")
        return Principal(
            f"user-{user.user_id}",
            scopes_of(SCOPES_OF_ROLE[Role(user.role)]),
            name=user.email,
            owner=f"{OWNER_START}{session_id}",
            expires_ms=session.expires_ms,
            user_id=user.user_id,
            session_id=session_id,
        )

    def refresh_claims(self, request: Request) -> RefreshClaims:
        """The session and number that a refresh is asked with."""
        token = cookies_of(request).get(REFRESH_COOKIE, "")
        claims = self._signing.read(token, _refresh_decoder)
        if claims is None or claims.use != "refresh" or claims.exp * SECOND_MS <= self._clock.now_ms():
            raise Unauthorized("there is no session to refresh; sign in")
        self.check_origin(request)
        self.check_csrf(request, claims.sid)
        return claims

    def check_csrf(self, request: Request, session_id: str) -> None:
        if not self._signing.is_derived(request.headers.get(CSRF_HEADER, ""), "csrf", session_id):
            raise Forbidden(
                f"a request with a session that changes something needs the header {CSRF_HEADER} with what the cookie "
                f"{CSRF_COOKIE} says",
                header=CSRF_HEADER,
            )

    def check_origin(self, request: Request) -> None:
        """A page of another origin may not use a session, whatever the browser sends along."""
        origin = request.headers.get("origin")
        if origin is not None and not is_same_origin(origin, request.headers.get("host", "")):
            raise Forbidden("a session works for pages of this server only; use a key elsewhere", header="origin")

    # ---- cookies

    def begin(self, request: Request, session: SessionPut) -> tuple[str, tuple[SetCookie, ...]]:
        """The CSRF text and all cookies of a session that begins or was refreshed."""
        csrf = self._signing.derive("csrf", session.session_id)
        refresh = RefreshClaims(session.session_id, session.expires_ms // SECOND_MS, session.generation)
        return csrf, (
            self.access(request, session.session_id),
            self._cookie(request, REFRESH_COOKIE, self._signing.sign(refresh), REFRESH_PATH, SESSION_MS),
            self._cookie(request, CSRF_COOKIE, csrf, "/", SESSION_MS, readable=True),
        )

    def access(self, request: Request, session_id: str) -> SetCookie:
        """The short-lived cookie alone."""
        claims = AccessClaims(session_id, (self._clock.now_ms() + ACCESS_MS) // SECOND_MS)
        return self._cookie(request, SESSION_COOKIE, self._signing.sign(claims), "/", ACCESS_MS)

    def csrf(self, session_id: str) -> str:
        return self._signing.derive("csrf", session_id)

    def end(self, request: Request) -> tuple[SetCookie, ...]:
        """Cookies that make a browser forget those of a session."""
        return (
            self._cookie(request, SESSION_COOKIE, "", "/", 0),
            self._cookie(request, REFRESH_COOKIE, "", REFRESH_PATH, 0),
            self._cookie(request, CSRF_COOKIE, "", "/", 0, readable=True),
        )

    def _cookie(
        self, request: Request, name: str, value: str, path: str, life_ms: int, readable: bool = False
    ) -> SetCookie:
        parts = [f"{name}={value}", f"Path={path}", f"Max-Age={life_ms // SECOND_MS}", "SameSite=Strict"]
        if not readable:
            parts.append("HttpOnly")
        if self._forwarded and request.headers.get("x-forwarded-proto", "").strip().lower() == "https":
            parts.append("Secure")
        return b"Set-Cookie", "; ".join(parts).encode()


def address_of(request: Request, forwarded: bool) -> str:
    """Where a request comes from. Of the list of a proxy that is believed the last counts: it alone is its own."""
    said = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip() if forwarded else ""
    return said[:ADDRESS_CHARS_MAX] or request.peer


def cookies_of(request: Request) -> Mapping[str, str]:
    """The cookies of a request; of one that comes twice the first, which has the longer path."""
    found: dict[str, str] = {}
    for pair in request.headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        found.setdefault(name, value)
    return found
