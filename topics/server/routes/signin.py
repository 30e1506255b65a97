"""Signing in, out and on again, who one is, one's sessions and one's password. See docs/ACCOUNTS.md."""

from __future__ import annotations

import msgspec

from topics.core.accountfacts import SessionPut
from topics.core.accountview import find_session, session_state
from topics.core.signins import Refresh
from topics.errors import Conflict, Forbidden, Unauthorized
from topics.server.accountschemas import SESSION_ID
from topics.server.answers import PRIVATE_HEADERS, later, private
from topics.server.auditing import note, note_failure, noted
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import EVERYBODY, NO_SCOPE, Scope, scope_names
from topics.server.route import Operation, Route
from topics.server.routes.keys import desk_of
from topics.server.routes.users import user_fields
from topics.server.shapes import answer, body
from topics.server.websessions import ACCESS_MS, WebSessions, address_of
from topics.wire.account import decode_link, decode_password_change, decode_set_up, decode_sign_in
from topics.wire.nothing import check_nothing

AGENT = "user-agent"


def sign_in(context: Context, request: Request, reply: Reply) -> None:
    wanted = decode_sign_in(request.body)
    web, host = _web(context), context.ready()
    web.check_origin(request)
    address = _address(context, request)

    async def work() -> Response:
        try:
            session = await context.door.sign_in(host, wanted.email, wanted.password, address, _agent(request))
        except Unauthorized as error:
            await note_failure(context, request, "sign_in", wanted.email, error.code)
            raise
        email = wanted.email.strip().lower()
        await note(context, request, "sign_in", email, who=email)
        return _signed_in(context, web, request, session)

    later(context, request, reply, work())


def look_at_link(context: Context, request: Request, reply: Reply) -> None:
    """Before a form is filled in: whom a link is for, or that it is no good any more."""
    token = decode_link(request.body).token
    web, host = _web(context), context.ready()
    web.check_origin(request)

    async def work() -> Response:
        try:
            email, expires_ms = context.door.look(host, token, _address(context, request))
        except Unauthorized as error:
            await note_failure(context, request, "look_at_link", "", error.code)
            raise
        fields: dict[str, object] = {"first": not email, "expires_ts": expires_ms}
        return private(context, request, fields | ({"email": email} if email else {}))

    later(context, request, reply, work())


def set_up(context: Context, request: Request, reply: Reply) -> None:
    wanted = decode_set_up(request.body)
    web, host = _web(context), context.ready()
    web.check_origin(request)
    address = _address(context, request)

    async def work() -> Response:
        try:
            user = await context.door.set_up(host, wanted.token, wanted.email, wanted.password, address)
        except Unauthorized as error:
            await note_failure(context, request, "set_up", wanted.email or "", error.code)
            raise
        await note(context, request, "set_up", user.email, who=user.email)
        session = await context.door.begin(host, user.id, address, _agent(request))
        return _signed_in(context, web, request, session, 201)

    later(context, request, reply, work())


def refresh(context: Context, request: Request, reply: Reply) -> None:
    check_nothing(request.body)
    web, host = _web(context), context.ready()
    claims = web.refresh_claims(request)

    async def work() -> Response:
        refreshed = await context.door.refresh(host, claims.sid, claims.gen)
        if refreshed.how is Refresh.REUSED:
            context.open_streams.sweep()
            await note_failure(context, request, "refresh_reused", claims.sid, Unauthorized.code)
            raise Unauthorized(
                "this sign-in was refreshed before, from elsewhere: the session was ended for everybody who has it; "
                "sign in again, and change the password if that was not you"
            )
        if refreshed.how is Refresh.ROTATED:
            return _signed_in(context, web, request, refreshed.session)
        response = _signed_in(context, web, request, refreshed.session)
        response.headers = (*PRIVATE_HEADERS, web.access(request, refreshed.session.session_id))
        return response

    later(context, request, reply, work())


def sign_out(context: Context, request: Request, reply: Reply) -> None:
    """Ends the session of the cookies, if there is one; the cookies go in any case."""
    check_nothing(request.body)
    web, host = _web(context), context.ready()
    try:
        session_id = web.refresh_claims(request).sid
    except Unauthorized:
        session_id = ""

    async def work() -> Response:
        ended = session_id in host.engine.machine.accounts.sessions
        if ended:
            await note(context, request, "sign_out", session_id, who=web.by_id(session_id).name)
            await context.door.end(host, session_id)
            context.open_streams.sweep()
        response = private(context, request, {"signed_out": ended})
        response.headers += web.end(request)
        return response

    later(context, request, reply, work())


def me(context: Context, request: Request, reply: Reply) -> None:
    principal = request.principal
    kind = "user" if principal.session_id else "everybody" if principal is EVERYBODY else "key"
    accounts = context.accounts()
    fields: dict[str, object] = {
        "authentication": context.authenticator.is_on,
        "kind": kind,
        "name": principal.who,
        "scopes": scope_names(principal.scopes),
        "prefixes": principal.prefixes,
        "set_up": bool(accounts.users),
    }
    if principal.session_id:
        fields |= {
            "user": user_fields(desk_of(context).user(principal.user_id)),
            "session_id": principal.session_id,
            "csrf_token": _web(context).csrf(principal.session_id),
        }
    reply(private(context, request, fields))


def list_sessions(context: Context, request: Request, reply: Reply) -> None:
    """One's own; with a key that may do everything, everybody's."""
    principal, accounts, now_ms = request.principal, context.accounts(), context.clock.now_ms()
    if principal.session_id:
        found = accounts.sessions_of(principal.user_id)
    else:
        _check_rules(request)
        found = sorted(accounts.sessions.values(), key=lambda session: (session.created_ms, session.session_id))
    shown = [
        msgspec.to_builtins(session_state(accounts, session)) | {"current": session.session_id == principal.session_id}
        for session in found
        if session.expires_ms > now_ms
    ]
    reply(private(context, request, {"sessions": shown}))


def end_session(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    session = find_session(context.accounts(), request.params["session"])
    if session.user_id != request.principal.user_id:
        _check_rules(request)

    async def work() -> Response:
        await context.door.end(host, session.session_id)
        context.open_streams.sweep()
        return private(context, request, {"id": session.session_id, "ended": True})

    later(context, request, reply, noted(context, request, "end_session", session.session_id, work))


def change_password(context: Context, request: Request, reply: Reply) -> None:
    host, principal, wanted = context.ready(), request.principal, decode_password_change(request.body)
    if not principal.session_id:
        raise Forbidden("a password is changed by whoever signed in with it; an admin makes a new link instead")

    async def work() -> Response:
        try:
            await context.door.check_password(
                host, principal.user_id, wanted.current_password, _address(context, request)
            )
        except Unauthorized as error:
            await note_failure(context, request, "change_password", principal.who, error.code)
            raise Forbidden(error.message, field="current_password") from None
        return await noted(context, request, "change_password", principal.who, change)

    async def change() -> Response:
        state = await desk_of(context).set_password(principal.user_id, wanted.new_password, principal.session_id)
        context.open_streams.sweep()
        return private(context, request, user_fields(state))

    later(context, request, reply, work())


def _signed_in(
    context: Context, web: WebSessions, request: Request, session: SessionPut, status: int = 200
) -> Response:
    csrf, cookies = web.begin(request, session)
    fields = {
        "user": user_fields(desk_of(context).user(session.user_id)),
        "scopes": scope_names(web.by_id(session.session_id).scopes),
        "session_id": session.session_id,
        "csrf_token": csrf,
        "expires_ts": context.clock.now_ms() + ACCESS_MS,
    }
    response = private(context, request, fields, status)
    response.headers += cookies
    return response


def _web(context: Context) -> WebSessions:
    context.ready()
    if context.web is None:
        raise Conflict(
            "authentication is off, so there is nothing to sign in to: start the server with TOPICS_AUTH=1 or keys"
        )
    return context.web


def _check_rules(request: Request) -> None:
    principal = request.principal
    if not principal.may(Scope.ADMIN) or principal.prefixes:
        raise Forbidden("the sessions of others take the scope admin", scope=["admin"])


def _address(context: Context, request: Request) -> str:
    return address_of(request, context.settings.forwarded)


def _agent(request: Request) -> str:
    text = request.headers.get(AGENT, "")
    return "".join(char if char.isprintable() else "?" for char in text)


_REFUSALS = {
    "400": answer("Error", "The body is malformed; `error.detail` names the field and what is expected."),
    "401": answer("Error", "Wrong, used up or too old: the same answer whatever it was."),
    "403": answer("Error", "A page of another origin, or no `X-CSRF-Token`."),
    "412": answer("Error", "Authentication is off."),
    "415": answer("Error", "The body is not `application/json` in UTF-8."),
    "429": answer("Error", "Too many attempts failed; see `Retry-After`."),
}
_SIGNED_IN = answer("SignedIn", "Signed in: cookies are set, and this is what a page needs beside them.")

ROUTES = (
    Route(
        "POST",
        "/v1/auth/login",
        NO_SCOPE,
        sign_in,
        Operation(
            "Sign in",
            "Begins a session and sets its cookies. After some failures each next attempt has to wait longer (429).",
            "accounts",
            request_body=body("SignIn"),
            responses=_REFUSALS | {"200": _SIGNED_IN},
        ),
    ),
    Route(
        "POST",
        "/v1/auth/setup",
        NO_SCOPE,
        set_up,
        Operation(
            "Choose a password by a link",
            "With the link that the first start printed it makes the first user, an admin; with an invitation, or a "
            "link for a new password, it sets that user's. It works once, and signs in.",
            "accounts",
            request_body=body("SetUp"),
            responses=_REFUSALS | {"201": _SIGNED_IN},
        ),
    ),
    Route(
        "POST",
        "/v1/auth/link",
        NO_SCOPE,
        look_at_link,
        Operation(
            "Look at a link",
            "Whose password is chosen by it, and until when; with one that was used or is too old, 401. It stays good.",
            "accounts",
            request_body=body("LinkRequest"),
            responses=_REFUSALS | {"200": answer("LinkAnswer", "What the link is for.")},
        ),
    ),
    Route(
        "POST",
        "/v1/auth/refresh",
        NO_SCOPE,
        refresh,
        Operation(
            "Go on with a session",
            "Trades the refresh cookie for new cookies; needs `X-CSRF-Token`. A refresh cookie is good once: one that "
            "comes again later was copied, and the session ends.",
            "accounts",
            request_body=body("Nothing", required=False),
            responses=_REFUSALS | {"200": _SIGNED_IN},
        ),
    ),
    Route(
        "POST",
        "/v1/auth/logout",
        NO_SCOPE,
        sign_out,
        Operation(
            "Sign out",
            "Ends the session and takes its cookies back; needs `X-CSRF-Token`.",
            "accounts",
            request_body=body("Nothing", required=False),
            responses=_REFUSALS | {"200": answer("SignedOut", "Whether there was a session to end.")},
        ),
    ),
    Route(
        "GET",
        "/v1/auth/me",
        NO_SCOPE,
        me,
        Operation(
            "Who asks",
            "A user, a key, or everybody where authentication is off; and what they may do.",
            "accounts",
            responses={"200": answer("Me", "Who asks.")},
        ),
        keyed=True,
    ),
    Route(
        "POST",
        "/v1/auth/password",
        NO_SCOPE,
        change_password,
        Operation(
            "Change one's password",
            "Needs the current one. All other sessions of the user end.",
            "accounts",
            request_body=body("PasswordChange"),
            responses={"200": answer("UserAnswer", "The user.")},
        ),
        keyed=True,
    ),
    Route(
        "GET",
        "/v1/auth/sessions",
        NO_SCOPE,
        list_sessions,
        Operation(
            "List sessions",
            "One's own; with an admin's key everybody's.",
            "accounts",
            responses={"200": answer("SessionList", "Sessions that are not over.")},
        ),
        keyed=True,
    ),
    Route(
        "DELETE",
        "/v1/auth/sessions/{session}",
        NO_SCOPE,
        end_session,
        Operation(
            "End a session",
            "One's own, or as an admin anybody's.",
            "accounts",
            parameters=(SESSION_ID,),
            responses={"200": answer("SessionEnded", "It is over.")},
        ),
        keyed=True,
        noted=False,
    ),
)
