"""Accounts, as a program manages them: managed keys, people, and their sessions. See docs/ACCOUNTS.md."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from topics.accountmodel import (
    KeyState,
    NewKey,
    NewLink,
    Role,
    SessionEnded,
    SessionState,
    UserDropped,
    UserState,
)
from topics.client.accounttransport import AccountTransport
from topics.client.moment import moment_ms


class Keys:
    """The managed keys of a server. Whoever uses this needs the scope admin."""

    def __init__(self, transport: AccountTransport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        scopes: str | Sequence[str] = "read",
        *,
        prefixes: str | Sequence[str] = (),
        expires: datetime | int | None = None,
    ) -> NewKey:
        """Make a key that may do what its scopes say, to names that begin with one of `prefixes`; none is any name.

            made = await client.keys.create("ci", ["read", "write"], prefixes=["ci."])
            print(made.key)

        `key` of the answer is told now and never again. The scopes are `read`, `write`, `delete` and `admin`. `expires`
        is a `datetime` with a time zone or milliseconds since 1970. A key may do no more than whoever makes it.
        """
        fields: dict[str, object] = {"name": name, "scopes": _several(scopes), "prefixes": _several(prefixes)}
        if expires is not None:
            fields["expires_ts"] = moment_ms(expires, "expires")
        return await self._transport.create_key(fields)

    async def list(self) -> Sequence[KeyState]:
        """All of them, the newest first; those that were revoked or have expired for thirty days more."""
        return await self._transport.keys()

    async def get(self, key_id: str) -> KeyState:
        """What a key allows, whose it is, and when it was last used."""
        return await self._transport.key(key_id)

    async def revoke(self, key_id: str) -> KeyState:
        """From now on no request with it is answered, and streams that it opened end."""
        return await self._transport.revoke_key(key_id)


class Users:
    """The people who sign in to a server. Whoever uses this needs the scope admin.

    A user is named by the e-mail or the id.
    """

    def __init__(self, transport: AccountTransport) -> None:
        self._transport = transport

    async def invite(self, email: str, role: Role | str = Role.VIEWER) -> NewLink:
        """Add a user without a password. Send them `link` of the answer: there they choose one, once.

        made = await client.users.invite("ada@example.org", "operator")
        print(made.link)
        """
        return await self._transport.invite(email, _role(role))

    async def list(self) -> Sequence[UserState]:
        """All of them, in order of their e-mails."""
        return await self._transport.users()

    async def get(self, who: str) -> UserState:
        """The role and status of a user, and when they last signed in."""
        return await self._transport.user(who)

    async def set_role(self, who: str, role: Role | str) -> UserState:
        """Give a user another role; it counts at once. The last admin who can sign in stays one: `LastAdmin`."""
        return await self._transport.change_user(who, {"role": _role(role)})

    async def disable(self, who: str) -> UserState:
        """Keep a user from signing in, and end their sessions."""
        return await self._transport.change_user(who, {"disabled": True})

    async def enable(self, who: str) -> UserState:
        """Let a user who was disabled sign in again."""
        return await self._transport.change_user(who, {"disabled": False})

    async def new_link(self, who: str) -> NewLink:
        """A link for a new password. The old one does not work any more, and their sessions end."""
        return await self._transport.new_link(who)

    async def remove(self, who: str) -> UserDropped:
        """Remove a user and end their sessions. Keys that they made stay."""
        return await self._transport.drop_user(who)


class Sessions:
    """Who is signed in to a server, from where and since when. Whoever uses this needs the scope admin."""

    def __init__(self, transport: AccountTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[SessionState]:
        """The sessions of everybody that are not over, in the order in which they began."""
        return await self._transport.sessions()

    async def end(self, session_id: str) -> SessionEnded:
        """End one; whoever has it has to sign in again."""
        return await self._transport.end_session(session_id)


def _several(words: str | Sequence[str]) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _role(role: Role | str) -> str:
    return role.value if isinstance(role, Role) else role
