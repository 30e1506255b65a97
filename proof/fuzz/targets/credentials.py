"""What a caller shows to be let in: cookies, tokens of streams, keys, and where its page comes from.

Nobody can sign but us, so most changes of a token are found by its signature. It is made right again before a trial,
and what stands behind it may be anything: another version of the server would have signed it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from proof.fuzz.target import Target
from topics.accountmodel import Role
from topics.core.accountfacts import SessionPut, UserPut
from topics.core.accounts import Accounts
from topics.errors import TopicsError
from topics.server import auth, signing, streamtokens, websessions
from topics.server.auth import Authenticator, parse_keys
from topics.server.message import Request
from topics.server.principal import Scope
from topics.server.signing import Secret, Signing
from topics.server.streamtokens import StreamTokens
from topics.server.websessions import AccessClaims, RefreshClaims, WebSessions
from topics.testing import FakeDisk, SimClock

LIFE_MS: Final = 3_600_000
SECRET: Final = Secret("kid", "5e" * 32, SimClock().now_ms())
SESSION: Final = "s1"


def _signing(clock: SimClock) -> Signing:
    """With a secret that is the same each time."""
    disk = FakeDisk()
    made = Signing(disk, "/d", clock)
    disk.make_dir(made.path.rpartition("/")[0])
    file = disk.open(made.path, "create")
    file.write_at(0, [msgspec.json.encode([SECRET])])
    file.close()
    made.load()
    return made


def _sessions(clock: SimClock, signs: Signing) -> WebSessions:
    accounts, now_ms = Accounts(), clock.now_ms()
    accounts.apply(UserPut("ada", "ada@example.org", Role.ADMIN.value, "", now_ms, now_ms))
    accounts.apply(SessionPut(SESSION, "ada", 0, now_ms, now_ms, now_ms + LIFE_MS))
    return WebSessions(lambda: accounts, signs, clock, forwarded=False)


CLOCK: Final = SimClock()
SIGNING: Final = _signing(CLOCK)
SESSIONS: Final = _sessions(CLOCK, SIGNING)
AUTHENTICATOR: Final = Authenticator(parse_keys("dev-key-of-nobody:read")[0])
AUTHENTICATOR.sessions = SESSIONS
TOKENS: Final = StreamTokens(AUTHENTICATOR, CLOCK, b"a secret that everybody knows")
OWNER: Final = next(iter(AUTHENTICATOR)).principal


def request_of(data: bytes) -> Request:
    """A line each for cookies, origin, CSRF text, authorization and query; one that is empty or missing is not sent."""
    lines = [*data.decode("latin-1").split("\n"), "", "", "", "", ""]
    names = ("cookie", "origin", "x-csrf-token", "authorization")
    headers = {name: line for name, line in zip(names, lines, strict=False) if line}
    return Request("POST", "/", lines[len(names)], {"host": "here", **headers}, b"", 0)


def read_credentials(data: bytes) -> tuple[object, ...]:
    """All who ask for them see the same caller, or nobody."""
    request = request_of(data)
    came: list[object] = []
    for ask in (AUTHENTICATOR.authenticate, TOKENS.authenticate, SESSIONS.owner, SESSIONS.refresh_claims):
        try:
            found = ask(request)
        except TopicsError as error:
            came.append((error.code, len(error.message)))
        else:
            came.append(type(found))
            if isinstance(found, RefreshClaims):
                assert found.use == "refresh"
            elif found is not None:
                assert found.session_id in ("", SESSION) and found.scopes
    return tuple(came)


def mended(data: bytes) -> bytes:
    """The same with right signatures behind all cookies that are signed."""
    cookies, newline, rest = data.decode("latin-1").partition("\n")
    pairs = []
    for pair in cookies.split("; "):
        text, dot, _ = pair.rpartition(".")
        name, _, signed = text.partition("=")
        pairs.append(f"{text}.{signing._encode(signing._mac(SECRET, signed))}" if dot and name else pair)
    return ("; ".join(pairs) + newline + rest).encode("latin-1", "replace")


EXPIRES_S: Final = (CLOCK.now_ms() + LIFE_MS) // 1000
ACCESS: Final = SIGNING.sign(AccessClaims(SESSION, EXPIRES_S))
REFRESH: Final = SIGNING.sign(RefreshClaims(SESSION, EXPIRES_S, 0))
CSRF: Final = SIGNING.derive("csrf", SESSION)
DEEP: Final = signing._encode(b'{"a":' + b"[" * 1_200)
STREAM: Final = TOKENS.make(OWNER, Scope.READ, CLOCK.now_ms() + LIFE_MS, ("a*",), "")

CREDENTIALS: Final = Target(
    name="credentials",
    run=read_credentials,
    errors=(),
    modules=(signing, websessions, streamtokens, auth),
    seeds=tuple(
        "\n".join(lines).encode()
        for lines in (
            (f"topics_session={ACCESS}; topics_refresh={REFRESH}", "http://here", CSRF),
            (f"topics_refresh={REFRESH}; topics_session={ACCESS}", "http://here:80/x", "csrf"),
            (f"topics_session={DEEP}.{DEEP}.", "null"),
            ("", "", "", "Bearer dev-key-of-nobody"),
            ("", "", "", "Basic YTpi", "token=dev-key-of-nobody"),
            ("", "", "", "", f"x=1&token={STREAM}"),
        )
    ),
    words=(
        *(b"topics_session=", b"topics_refresh=", b"; ", b"=", b".", b"\n", b"Bearer ", b"token=", b"&", b"st_", b"%"),
        *(b"http://", b"[", b"]", b"::1", b"here", b"\xb2", b"eyJ", b"\n\n", DEEP.encode()),
    ),
    mend=mended,
)

TARGETS: Final = (CREDENTIALS,)
