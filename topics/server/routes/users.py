"""Users: invite, list, change and remove them. See docs/ACCOUNTS.md."""

from __future__ import annotations

import msgspec

from topics.accountmodel import UserState, UserStatus
from topics.core.names import shorten
from topics.errors import Forbidden
from topics.server.accountschemas import USER_ID
from topics.server.answers import later, private
from topics.server.auditing import noted
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.routes.keys import OFF_WARNING, check_unlimited, desk_of
from topics.server.shapes import answer, body
from topics.wire.account import decode_user, decode_user_change


def invite(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    wanted, desk = decode_user(request.body), desk_of(context)

    async def work() -> Response:
        new = await desk.invite(wanted.email, wanted.role)
        fields = user_fields(new.state) | {"link": new.link}
        if not context.authenticator.is_on:
            fields["warning"] = OFF_WARNING
        return private(context, request, fields, 201)

    detail = {"role": wanted.role.value}
    later(context, request, reply, noted(context, request, "invite_user", shorten(wanted.email), work, **detail))


def list_users(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    reply(private(context, request, {"users": [user_fields(user) for user in desk_of(context).list_users()]}))


def look(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    reply(private(context, request, user_fields(desk_of(context).user(request.params["user"]))))


def change(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    wanted, desk = decode_user_change(request.body), desk_of(context)
    user = desk.user(request.params["user"])
    user_id = user.id
    if request.principal.user_id == user_id and (wanted.disabled or wanted.role is not None):
        raise Forbidden("nobody changes their own role or disables themselves: ask another admin", user=user_id)

    async def work() -> Response:
        state = desk.user(user_id)
        if wanted.role is not None or wanted.disabled is not None:
            state = await desk.change_user(user_id, wanted.role, wanted.disabled)
        fields = user_fields(state)
        if wanted.new_link:
            new = await desk.new_link(user_id)
            fields = user_fields(new.state) | {"link": new.link}
        context.open_streams.sweep()
        return private(context, request, fields)

    detail: dict[str, object] = {"new_link": True} if wanted.new_link else {}
    wants = {"role": wanted.role, "disabled": wanted.disabled}
    had = {"role": user.role, "disabled": user.status is UserStatus.DISABLED}
    detail["changed"] = {
        field: {"old": had[field], "new": value}
        for field, value in wants.items()
        if value is not None and value != had[field]
    }
    later(context, request, reply, noted(context, request, "change_user", user.email, work, **detail))


def drop(context: Context, request: Request, reply: Reply) -> None:
    check_unlimited(request.principal)
    desk = desk_of(context)
    user = desk.user(request.params["user"])
    if request.principal.user_id == user.id:
        raise Forbidden("nobody removes themselves: ask another admin", user=user.id)

    async def work() -> Response:
        state = await desk.drop_user(user.id)
        context.open_streams.sweep()
        return private(context, request, {"id": state.id, "email": state.email, "deleted": True})

    later(context, request, reply, noted(context, request, "remove_user", user.email, work))


def user_fields(state: UserState) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(state)
    return fields


ROUTES = (
    Route(
        "POST",
        "/v1/users",
        Scope.ADMIN,
        invite,
        Operation(
            "Invite a user",
            "Makes a user without a password. Send them `link`, put behind the address that they reach this server "
            "under: there they choose one, once, within seven days.",
            "accounts",
            request_body=body("UserRequest"),
            responses={"201": answer("UserWithLink", "The user, and the link.")},
        ),
        noted=False,
    ),
    Route(
        "GET",
        "/v1/users",
        Scope.ADMIN,
        list_users,
        Operation(
            "List users",
            "All of them, in order of their e-mails.",
            "accounts",
            responses={"200": answer("UserList", "The users.")},
        ),
    ),
    Route(
        "GET",
        "/v1/users/{user}",
        Scope.ADMIN,
        look,
        Operation(
            "Look at a user",
            "Its role and status, and when it last signed in.",
            "accounts",
            parameters=(USER_ID,),
            responses={"200": answer("UserAnswer", "The user.")},
        ),
    ),
    Route(
        "PATCH",
        "/v1/users/{user}",
        Scope.ADMIN,
        change,
        Operation(
            "Change a user",
            "Give it another role, disable or enable it, or make a link for a new password. Being disabled and a new "
            "link end its sessions. The last admin who can sign in stays one.",
            "accounts",
            parameters=(USER_ID,),
            request_body=body("UserChange"),
            responses={"200": answer("UserWithLink", "The user as it is now, and the link if one was made.")},
        ),
        noted=False,
    ),
    Route(
        "DELETE",
        "/v1/users/{user}",
        Scope.ADMIN,
        drop,
        Operation(
            "Remove a user",
            "With it go its sessions; keys that it made stay.",
            "accounts",
            parameters=(USER_ID,),
            responses={"200": answer("UserDropped", "It is gone.")},
        ),
        noted=False,
    ),
)
