"""Everybody who may ask a server for something: no key, bad keys, a key for each scope, foreign ones, people."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.server.accountrig import ADMIN_KEY, Browser, Served
from topics.accountmodel import SCOPES_OF_ROLE, Role
from topics.server.pageorigins import SAFE_METHODS
from topics.server.principal import ALL_SCOPES, NO_SCOPE, Scope, scopes_of

OWN_PREFIX = "mine."
FOREIGN_PREFIX = "theirs."
NAME = f"{OWN_PREFIX}nothing"
"""What all requests are about."""

SCOPE_KEYS = {f"key-for-{str(scope.name).lower()}-only": scope for scope in Scope}
FOREIGN_KEY = "key-for-other-names"
STATIC_KEYS = ",".join(
    [
        ADMIN_KEY,
        *(f"{key}:{str(scope.name).lower()}" for key, scope in SCOPE_KEYS.items()),
        f"{FOREIGN_KEY}::{FOREIGN_PREFIX}",
    ]
)


@dataclass(frozen=True)
class Asker:
    name: str
    headers: dict[str, str] = field(default_factory=dict)
    scopes: Scope = NO_SCOPE
    known: bool = True
    """Whether it is anybody at all."""
    names: tuple[str, ...] = ()
    """Beginnings of names that it may touch; none is every name."""
    forgeable: bool = False
    """Whether a browser would send along what it has, and the page that asks could not say so."""

    def expected(self, method: str, scope: Scope, named: bool) -> int | None:
        """What a route that needs a scope answers before anything else is looked at; None when it goes on."""
        if not self.known:
            return 401
        if self.forgeable and method not in SAFE_METHODS:
            return 403
        if scope not in self.scopes:
            return 403
        return 403 if named and self.names and not NAME.startswith(self.names) else None


def with_key(name: str, key: str, **more: object) -> Asker:
    return Asker(name, {"Authorization": f"Bearer {key}"}, **more)  # type: ignore[arg-type]


async def everybody(served: Served) -> list[Asker]:
    """All kinds of askers; those that the server has to know are made."""
    admin = await served.signed_up()
    viewer = await served.invited(admin, "viewer@example.org", "viewer")
    operator = await served.invited(admin, "operator@example.org", "operator")
    served.api.key = ADMIN_KEY
    managed, revoked, expired = [await _made(served, name) for name in ("managed", "revoked", "expired")]
    await served.api.delete(f"/v1/keys/{revoked[0]}")
    return [
        Asker("no key", known=False),
        with_key("a wrong key", "nobody-has-this", known=False),
        with_key("a wrong managed key", f"dh_{managed[0]}_wrong", known=False),
        with_key("a revoked key", revoked[1], known=False),
        with_key("an expired key", expired[1], known=False),
        with_key("a key in no scheme", "x", known=False),
        Asker("a key in the wrong scheme", {"Authorization": f"Basic {ADMIN_KEY}"}, known=False),
        *(with_key(f"a key for {str(scope.name).lower()}", key, scopes=scope) for key, scope in SCOPE_KEYS.items()),
        with_key("a key for everything", ADMIN_KEY, scopes=ALL_SCOPES),
        with_key("a managed key", managed[1], scopes=ALL_SCOPES, names=(OWN_PREFIX,)),
        with_key("a key for other names", FOREIGN_KEY, scopes=ALL_SCOPES, names=(FOREIGN_PREFIX,)),
        signed_in("a viewer", viewer, Role.VIEWER),
        signed_in("an operator", operator, Role.OPERATOR),
        signed_in("an admin", admin, Role.ADMIN),
        signed_in("an admin without the CSRF token", admin, Role.ADMIN, csrf=""),
        signed_in("an admin with a wrong CSRF token", admin, Role.ADMIN, csrf="forged"),
    ]


def signed_in(name: str, browser: Browser, role: Role, csrf: str | None = None) -> Asker:
    cookies = "; ".join(f"{cookie}={value}" for cookie, value in browser.cookies.items())
    token = browser.cookies["topics_csrf"] if csrf is None else csrf
    headers = {"Cookie": cookies} | ({"X-CSRF-Token": token} if token else {})
    return Asker(name, headers, scopes_of(SCOPES_OF_ROLE[role]), forgeable=csrf is not None)


async def _made(served: Served, name: str) -> tuple[str, str]:
    """Id and text of a managed key; one called expired is so at once."""
    scopes = ["read", "write", "delete", "admin"]
    wanted: dict[str, object] = {"name": name, "scopes": scopes, "prefixes": [OWN_PREFIX]}
    if name == "expired":
        wanted["expires_ts"] = served.clock.now_ms() + 1_000
    new = (await served.api.post("/v1/keys", wanted)).body
    if name == "expired":
        served.clock.ahead_ms += 2_000
    return new["id"], new["key"]
