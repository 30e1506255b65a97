"""The verbs of accounts over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from topics.accountmodel import (
    AuditEntry,
    AuditVerdict,
    KeyState,
    NewKey,
    NewLink,
    SessionEnded,
    SessionState,
    UserDropped,
    UserState,
)
from topics.client.body import plain_body
from topics.client.caller import Caller
from topics.client.remoteanswer import decoded
from topics.errors import InvalidRequest

T = TypeVar("T")


class _Keys(msgspec.Struct):
    keys: list[KeyState]


class _Users(msgspec.Struct):
    users: list[UserState]


class _Sessions(msgspec.Struct):
    sessions: list[SessionState]


class _Entries(msgspec.Struct):
    entries: list[AuditEntry]
    next_cursor: str = ""


class RemoteAccounts:
    """The accounts of a server, with a key that may manage them."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    # ---- keys

    async def create_key(self, fields: Mapping[str, object]) -> NewKey:
        return await self._change("POST", "/v1/keys", NewKey, fields)

    async def keys(self) -> list[KeyState]:
        return (await self._look("/v1/keys", _Keys)).keys

    async def key(self, key_id: str) -> KeyState:
        return await self._look(_path("keys", "key", key_id), KeyState)

    async def revoke_key(self, key_id: str) -> KeyState:
        return await self._change("DELETE", _path("keys", "key", key_id), KeyState, repeatable=True)

    # ---- users

    async def invite(self, email: str, role: str) -> NewLink:
        return self._whole(await self._change("POST", "/v1/users", NewLink, {"email": email, "role": role}))

    async def users(self) -> list[UserState]:
        return (await self._look("/v1/users", _Users)).users

    async def user(self, who: str) -> UserState:
        return await self._look(_path("users", "user", who), UserState)

    async def change_user(self, who: str, fields: Mapping[str, object]) -> UserState:
        return await self._change("PATCH", _path("users", "user", who), UserState, fields, repeatable=True)

    async def new_link(self, who: str) -> NewLink:
        return self._whole(await self._change("PATCH", _path("users", "user", who), NewLink, {"new_link": True}))

    async def drop_user(self, who: str) -> UserDropped:
        # Not repeatable: meanwhile somebody may have invited that e-mail again.
        return await self._change("DELETE", _path("users", "user", who), UserDropped)

    # ---- sessions

    async def sessions(self) -> list[SessionState]:
        return (await self._look("/v1/auth/sessions", _Sessions)).sessions

    async def end_session(self, session_id: str) -> SessionEnded:
        return await self._change("DELETE", _path("auth/sessions", "session", session_id), SessionEnded)

    # ---- the audit log

    async def audit(self, wanted: Mapping[str, str], *, cursor: str, limit: int) -> tuple[list[AuditEntry], str]:
        query = {**wanted, "page_size": str(limit)} | ({"cursor": cursor} if cursor else {})
        page = await self._look(f"/v1/audit?{urlencode(query)}", _Entries)
        return page.entries, page.next_cursor

    async def verify_audit(self) -> AuditVerdict:
        return await self._look("/v1/audit/verify", AuditVerdict)

    # ---- calls

    async def _look(self, path: str, kind: type[T]) -> T:
        return decoded(await self._caller.call("GET", path, repeatable=True), kind)

    async def _change(
        self,
        method: str,
        path: str,
        kind: type[T],
        fields: Mapping[str, object] | None = None,
        repeatable: bool = False,
    ) -> T:
        body = b"" if fields is None else plain_body(fields)
        return decoded(await self._caller.call(method, path, body, repeatable=repeatable), kind)

    def _whole(self, made: NewLink) -> NewLink:
        """With the link behind the address that we reach the server under."""
        return msgspec.structs.replace(made, link=f"{self._caller.address}{made.link}")


def _path(place: str, field: str, name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"{field} must be a name or an id, not {name!r}", field=field, expected="a name or an id")
    return f"/v1/{place}/{quote(name, safe='')}"
