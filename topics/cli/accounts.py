"""Accounts from the command line: of a server over HTTP, or of a directory that no server has open.

Both answer with the same JSON objects, those of `/v1`, so that a command prints the same either way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from os import environ
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from topics import settings
from topics.accountmodel import Role
from topics.cli.target import Target, require_directory
from topics.client.address import parse_address
from topics.client.caller import Caller, CallOptions

Fields = dict[str, Any]

OPTIONS = CallOptions(
    timeout_ms=60_000,
    connect_timeout_ms=5_000,
    read_timeout_ms=30_000,
    attempts_max=5,
    connections_max=2,
    compress=False,
)


class AccountDesk(Protocol):
    async def create_key(self, name: str, scopes: list[str], prefixes: list[str], expires_ts: int | None) -> Fields: ...

    async def keys(self) -> list[Fields]: ...

    async def revoke_key(self, key_id: str) -> Fields: ...

    async def invite(self, email: str, role: str) -> Fields: ...

    async def users(self) -> list[Fields]: ...

    async def change_user(self, who: str, role: str | None, disabled: bool | None) -> Fields: ...

    async def new_link(self, who: str) -> Fields: ...

    async def use_link(self, link: str, password: str) -> None: ...

    async def drop_user(self, who: str) -> Fields: ...


@asynccontextmanager
async def desk_at(target: Target, *, create: bool = False) -> AsyncIterator[AccountDesk]:
    """A directory that is not there is made only with `create`."""
    if target.address is None:
        assert target.dir is not None
        if not create:
            require_directory(target.dir)
        async with _local(target.dir) as desk:
            yield desk
        return
    caller = calling(target)
    caller.open()
    try:
        yield RemoteDesk(caller)
    finally:
        await caller.close()


def calling(target: Target) -> Caller:
    """What speaks HTTP with a target that is a server."""
    assert target.address is not None
    address = parse_address(target.address)
    tls = None
    if address.tls:
        import ssl

        tls = ssl.create_default_context()
    return Caller(address, target.api_key, OPTIONS, tls)


class RemoteDesk:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def call(self, method: str, path: str, body: object = None, repeatable: bool = False) -> Fields:
        content = b"" if body is None else msgspec.json.encode(body)
        answer = await self._caller.call(method, path, content, repeatable=repeatable)
        fields: Fields = msgspec.json.decode(answer.body)
        fields.pop("performance", None)
        return fields

    async def create_key(self, name: str, scopes: list[str], prefixes: list[str], expires_ts: int | None) -> Fields:
        body = {"name": name, "scopes": scopes, "prefixes": prefixes, "expires_ts": expires_ts}
        return await self.call("POST", "/v1/keys", body)

    async def keys(self) -> list[Fields]:
        return list((await self.call("GET", "/v1/keys", repeatable=True))["keys"])

    async def revoke_key(self, key_id: str) -> Fields:
        return await self.call("DELETE", f"/v1/keys/{quote(key_id, safe='')}", repeatable=True)

    async def invite(self, email: str, role: str) -> Fields:
        return self._whole(await self.call("POST", "/v1/users", {"email": email, "role": role}))

    async def users(self) -> list[Fields]:
        return list((await self.call("GET", "/v1/users", repeatable=True))["users"])

    async def change_user(self, who: str, role: str | None, disabled: bool | None) -> Fields:
        return await self.call("PATCH", _user(who), {"role": role, "disabled": disabled}, repeatable=True)

    async def new_link(self, who: str) -> Fields:
        return self._whole(await self.call("PATCH", _user(who), {"new_link": True}))

    async def use_link(self, link: str, password: str) -> None:
        await self.call("POST", "/v1/auth/setup", {"token": link.rpartition("#")[2], "password": password})

    async def drop_user(self, who: str) -> Fields:
        return await self.call("DELETE", _user(who))

    def _whole(self, fields: Fields) -> Fields:
        """With the link behind the address that we reach the server under."""
        return fields | {"link": f"{self._caller.address}{fields['link']}"}


def _user(who: str) -> str:
    return f"/v1/users/{quote(who, safe='')}"


@asynccontextmanager
async def _local(directory: str) -> AsyncIterator[AccountDesk]:
    # Who talks to a server need not wait for an engine to be loaded.
    from topics.clock import SystemClock
    from topics.engine.host import Host
    from topics.engine.opening import opener
    from topics.server.desk import Desk
    from topics.server.hashing import Hashing

    chosen = settings.build(asdict(settings.load(environ)) | {"data_dir": directory})
    host, hashing = await Host.open(opener(chosen)), Hashing()
    try:
        yield _LocalDesk(Desk(host, hashing, SystemClock()))
    finally:
        hashing.close()
        await host.close()


class _LocalDesk:
    def __init__(self, desk: Any) -> None:
        self._desk = desk

    async def create_key(self, name: str, scopes: list[str], prefixes: list[str], expires_ts: int | None) -> Fields:
        new = await self._desk.create_key(name, tuple(scopes), tuple(prefixes), expires_ts or 0, "directory")
        return _fields(new.state) | {"key": new.token}

    async def keys(self) -> list[Fields]:
        return [_fields(key) for key in self._desk.list_keys()]

    async def revoke_key(self, key_id: str) -> Fields:
        return _fields(await self._desk.revoke_key(key_id))

    async def invite(self, email: str, role: str) -> Fields:
        return _linked(await self._desk.invite(email, Role(role)))

    async def users(self) -> list[Fields]:
        return [_fields(user) for user in self._desk.list_users()]

    async def change_user(self, who: str, role: str | None, disabled: bool | None) -> Fields:
        return _fields(await self._desk.change_user(who, None if role is None else Role(role), disabled))

    async def new_link(self, who: str) -> Fields:
        return _linked(await self._desk.new_link(who))

    async def use_link(self, link: str, password: str) -> None:
        await self._desk.use_link(link.rpartition("#")[2], password)

    async def drop_user(self, who: str) -> Fields:
        gone = await self._desk.drop_user(who)
        return {"id": gone.id, "email": gone.email, "deleted": True}


def _fields(state: msgspec.Struct) -> Fields:
    fields: Fields = msgspec.to_builtins(state)
    return fields


def _linked(new: Any) -> Fields:
    return _fields(new.state) | {"link": new.link}
