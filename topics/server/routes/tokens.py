"""Stream tokens: short-lived, narrow, and made for the address of an EventSource. See `streamtokens.py`."""

from __future__ import annotations

from functools import reduce
from operator import or_

from topics.server.answers import success
from topics.server.auth import check_name, check_scope
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import answer, body
from topics.wire.tokens import WILDCARD, decode_token


def make_token(context: Context, request: Request, reply: Reply) -> None:
    wanted = decode_token(request.body)
    principal = request.principal
    scopes = reduce(or_, (Scope[name.upper()] for name in wanted.scopes))
    check_scope(principal, scopes)
    for pattern in wanted.topics:
        # A beginning that lies within a prefix has every name it stands for within it.
        check_name(principal, pattern.removesuffix(WILDCARD), "topics")
    expires_ms = context.clock.now_ms() + wanted.ttl_ms
    token = context.stream_tokens.make(principal, scopes, expires_ms, wanted.topics, wanted.wid)
    fields = {"token": token, "expires_ts": expires_ms, "scopes": wanted.scopes}
    if wanted.topics:
        fields["topics"] = wanted.topics
    if wanted.wid:
        fields |= {"wid": wanted.wid, "stream_url": f"/v0/watch/{wanted.wid}?token={token}"}
    reply(success(context, request, fields))


ROUTES = (
    Route(
        "POST",
        "/v0/watch/token",
        Scope.READ,
        make_token,
        Operation(
            "Make a stream token",
            "Returns a signed token that opens event streams for a short time, as `?token=…`: a browser's EventSource "
            "cannot send a key in a header, and a key has no place in an address. It acts for the key that made it, "
            "with less: only the scopes, the topics and the watch session that it was made for. Nothing else accepts "
            "it. A stream that is open stays open when its token expires.",
            "watch",
            request_body=body("TokenRequest", required=False),
            responses={"200": answer("Token", "The token, and until when it opens streams.")},
        ),
    ),
)
