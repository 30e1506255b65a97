"""Managed keys: make, list, look at and revoke them. See docs/ACCOUNTS.md."""

from __future__ import annotations

import msgspec

from topics.accountmodel import KeyState
from topics.core.names import shorten
from topics.errors import Forbidden
from topics.server.accountschemas import KEY_ID
from topics.server.answers import later, private
from topics.server.auditing import noted
from topics.server.auth import check_scope
from topics.server.context import Context
from topics.server.desk import Desk
from topics.server.message import Reply, Request, Response
from topics.server.principal import Principal, Scope, scopes_of
from topics.server.route import Operation, Route
from topics.server.shapes import answer, body
from topics.wire.account import decode_key

OFF_WARNING = "authentication is off, so nobody is asked for a key: start the server with TOPICS_AUTH=1"


def create(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    wanted = decode_key(request.body)
    desk = desk_of(context)

    async def make() -> Response:
        new = await desk.create_key(
            wanted.name,
            tuple(wanted.scopes),
            tuple(wanted.prefixes or ()),
            wanted.expires_ts or 0,
            request.principal.who,
        )
        fields = key_fields(new.state) | {"key": new.token}
        if not context.authenticator.is_on:
            fields["warning"] = OFF_WARNING
        return private(context, request, fields, 201)

    known = [name for name in wanted.scopes if name.upper() in Scope.__members__]
    check_scope(request.principal, scopes_of(known))
    detail = {"scopes": wanted.scopes, "prefixes": wanted.prefixes or []}
    later(context, request, reply, noted(context, request, "create_key", shorten(wanted.name), make, **detail))


def list_keys(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    reply(private(context, request, {"keys": [key_fields(key) for key in desk_of(context).list_keys()]}))


def look(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    reply(private(context, request, key_fields(desk_of(context).key(request.params["key"]))))


def revoke(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    desk = desk_of(context)

    async def end() -> Response:
        state = await desk.revoke_key(request.params["key"])
        context.open_streams.sweep()
        return private(context, request, key_fields(state))

    key = desk.key(request.params["key"])
    later(context, request, reply, noted(context, request, "revoke_key", key.name, end, key_id=key.id))


def desk_of(context: Context) -> Desk:
    return Desk(context.ready(), context.hashing, context.clock, context.quota.used)


def check_unlimited(principal: Principal) -> None:
    """Who may touch some names only must not give away more than that."""
    if principal.prefixes or principal.patterns:
        raise Forbidden("accounts are managed with a key that may touch every name, or by an admin who signed in")


def key_fields(state: KeyState) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(state)
    return fields


ROUTES = (
    Route(
        "POST",
        "/v1/keys",
        Scope.ADMIN,
        create,
        Operation(
            "Make a managed key",
            "The answer has the whole key, which is shown now and never again: only an Argon2id hash is kept. It "
            "allows no more than whoever makes it may do.",
            "accounts",
            request_body=body("ManagedKeyRequest"),
            responses={"201": answer("NewManagedKey", "The key.")},
        ),
        noted=False,
    ),
    Route(
        "GET",
        "/v1/keys",
        Scope.ADMIN,
        list_keys,
        Operation(
            "List managed keys",
            "All of them, the newest first; those that were revoked or have expired are shown for thirty days.",
            "accounts",
            responses={"200": answer("ManagedKeyList", "The keys, without their secrets.")},
        ),
    ),
    Route(
        "GET",
        "/v1/keys/{key}",
        Scope.ADMIN,
        look,
        Operation(
            "Look at a managed key",
            "What it allows, whose it is, and when it was last used.",
            "accounts",
            parameters=(KEY_ID,),
            responses={"200": answer("ManagedKeyAnswer", "The key, without its secret.")},
        ),
    ),
    Route(
        "DELETE",
        "/v1/keys/{key}",
        Scope.ADMIN,
        revoke,
        Operation(
            "Revoke a managed key",
            "No request with it is answered any more, and streams that it opened end. Revoking one twice is no error.",
            "accounts",
            parameters=(KEY_ID,),
            responses={"200": answer("ManagedKeyAnswer", "The key, which is revoked now.")},
        ),
        noted=False,
    ),
)
