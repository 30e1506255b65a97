"""From a request to its handler, and from whatever comes of it to exactly one answer.

In this order: the route (404, 405), the key (401), what the key may do (403), the key's quota (429), the content type
(415), and then the handler with its own refusals.
"""

from __future__ import annotations

import asyncio

from topics.core.auditchain import INTERNAL_TOPICS
from topics.core.names import shorten
from topics.engine.host import Host
from topics.errors import NotFound, TopicsError, Unauthorized, UnsupportedMediaType
from topics.limits import OPEN_BODY_BYTES_MAX
from topics.server.answers import bug, failure, keep, later, when_fresh
from topics.server.arrow import ARROW_STREAM, sends_arrow
from topics.server.auditing import is_noted, note_failure, noted_route
from topics.server.auth import Authenticator, check_name, check_scope
from topics.server.context import Context
from topics.server.intake.headcheck import Verified
from topics.server.intake.order import Order
from topics.server.managedkeys import Unverified
from topics.server.message import Reply, Request, Response
from topics.server.pageorigins import SAFE_METHODS
from topics.server.principal import EVERYBODY, NO_SCOPE, Principal
from topics.server.quota import Quota, Release
from topics.server.requesthead import RequestHead
from topics.server.route import EVERY_TOPIC, Route
from topics.server.routes.web import page
from topics.server.streaming import StreamResponse
from topics.server.streamtokens import query_token
from topics.server.table import Table
from topics.server.traffic import RouteTraffic
from topics.server.websessions import address_of

_JSON_TYPES = {"application/json", "application/json; charset=utf-8"}
"""What nearly every client sends, letter for letter."""


class Dispatcher:
    """A `Dispatch`."""

    def __init__(self, context: Context, table: Table, authenticator: Authenticator, quota: Quota) -> None:
        self._context = context
        self._table = table
        self._authenticator = authenticator
        self._quota = quota
        # By identity: hashing a route would take longer than all else that is done for a small write.
        self._noted_ids = frozenset(id(route) for route in table.routes if is_noted(route))
        self._acting_ids = frozenset(id(route) for route in table.routes if route.method in SAFE_METHODS and route.acts)

    def __call__(self, request: Request, reply: Reply) -> None:
        try:
            self._answer(request, reply)
        except TopicsError as error:
            if isinstance(error, Unauthorized):
                self._note_refused(request, error)
            found = page(request) if isinstance(error, NotFound) else None
            reply(failure(self._context, request, error) if found is None else found)
        except Exception as error:
            reply(bug(self._context, request, error))

    # ---- a `HeadCheck`: what is known before the body has come

    def order_of(self, method: str, path: str) -> Order:
        return self._table.order_of(method, path)

    def admit(self, head: RequestHead, peer: str) -> int | None:
        request = _bodiless(head, peer)
        if head.method == "OPTIONS":
            return OPEN_BODY_BYTES_MAX
        route, request.params = self._table.find(head.method, head.path)
        try:
            principal = self._authorise(route, request)
        except Unverified:
            raise
        except Unauthorized as error:
            self._note_refused(request, error)
            raise
        return OPEN_BODY_BYTES_MAX if principal is EVERYBODY and self._authenticator.is_on else None

    def knows(self, head: RequestHead, peer: str) -> bool:
        try:
            principal = self._authenticator.authenticate(_bodiless(head, peer))
        except TopicsError:
            return False
        return principal is not EVERYBODY or not self._authenticator.is_on

    def verify(self, unverified: Unverified, head: RequestHead, peer: str, verified: Verified) -> None:
        async def compare() -> None:
            request, refusal = _bodiless(head, peer), None
            try:
                await self._authenticator.verify(unverified, address_of(request, self._context.settings.forwarded))
            except TopicsError as error:
                refusal = error
                if isinstance(error, Unauthorized):
                    self._note_refused(request, error)
            verified(refusal)

        keep(self._context, compare())

    def _note_refused(self, request: Request, error: Unauthorized) -> None:
        """Somebody tried a key. The answer does not wait for the line."""
        if "authorization" in request.headers and self._context.audit is not None:
            keep(self._context, note_failure(self._context, request, "key_refused", request.path, error.code))

    def _answer(self, request: Request, reply: Reply) -> None:
        if request.method == "OPTIONS":
            allow = ", ".join(self._table.allowed(request.path))
            reply(Response(204, headers=((b"Allow", allow.encode()),)))
            return
        route, request.params = self._table.find(request.method, request.path)
        if id(route) in self._acting_ids and not (route.query_token and self._brings_token(request)):
            self._context.pages.check(request.headers)
        traffic = self._context.traffic.of(route.method, route.path)
        if traffic.arrived():
            reply = self._timed(traffic, request, reply)
        try:
            self._admit(route, request, reply)
        except Unverified as unverified:
            later(self._context, request, reply, self._verify(route, request, unverified))

    def _brings_token(self, request: Request) -> bool:
        """Whether a stream is asked for with a token in its address, which is looked at in place of a session."""
        return self._authenticator.is_on and bool(query_token(request.query))

    async def _verify(self, route: Route, request: Request, unverified: Unverified) -> Response:
        """A key that nobody has shown before: its secret is compared on a thread, and then it is a request like any."""
        try:
            await self._authenticator.verify(unverified, address_of(request, self._context.settings.forwarded))
        except Unauthorized as error:
            self._note_refused(request, error)
            raise
        answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._admit(route, request, answered.set_result)
        return await answered

    def _authorise(self, route: Route, request: Request) -> Principal:
        """Who asks, if the route wants to know; raises when they may not."""
        if route.name_param is not None and request.params[route.name_param] in INTERNAL_TOPICS:
            check_name(request.principal, request.params[route.name_param], route.name_param)
        if route.scope is not NO_SCOPE or route.keyed or (route.probe and self._context.settings.probe_auth):
            who = self._context.stream_tokens if route.query_token else self._authenticator
            principal = request.principal = who.authenticate(request)
            if principal is not EVERYBODY:
                check_scope(principal, route.scope)
                if route.name_param is not None:
                    check_name(principal, request.params[route.name_param], route.name_param)
        return request.principal

    def _admit(self, route: Route, request: Request, reply: Reply) -> None:
        principal = self._authorise(route, request)
        if principal is not EVERYBODY and not route.streams:
            self._handle_charged(route, request, reply, self._quota.enter(principal))
            return
        if route.streams:
            name = "" if route.takeover_param is None else request.params[route.takeover_param]
            self._handle_stream(route, request, reply, self._quota.open_stream(request.principal, name))
        else:
            self._handle(route, request, reply)

    def _handle_stream(self, route: Route, request: Request, reply: Reply, release: Release) -> None:
        """A stream keeps its slot until it is closed; any other answer gives it back."""

        def answered(response: Response) -> None:
            if isinstance(response, StreamResponse):
                response.release = release
                self._context.open_streams.add(request.principal, response)
            else:
                release()
            reply(response)

        try:
            self._handle(route, request, answered)
        except BaseException:
            release()
            raise

    def _handle_charged(self, route: Route, request: Request, reply: Reply, release: Release) -> None:
        try:
            self._handle(route, request, _releasing(release, reply))
        except BaseException:
            # Whoever keeps the error keeps this frame, and the slot with it.
            release()
            raise

    def _handle(self, route: Route, request: Request, reply: Reply) -> None:
        if request.body and route.operation.request_body is not None:
            takes_arrow = ARROW_STREAM in route.operation.request_body["content"]
            if not (takes_arrow and sends_arrow(request)):
                check_content_type(request)
        if id(route) in self._noted_ids and self._context.audit is not None:
            later(self._context, request, reply, noted_route(self._context, route, request))
        elif route.reads is not None and self._context.host is not None:
            topics = _read_by(route, request, self._context.host)
            when_fresh(self._context, request, reply, topics, lambda: route.handler(self._context, request, reply))
        else:
            route.handler(self._context, request, reply)

    def _timed(self, traffic: RouteTraffic, request: Request, reply: Reply) -> Reply:
        def answered(response: Response) -> None:
            traffic.answered(self._context.clock.ticks_ns() - request.received_ns)
            reply(response)

        return answered


def _bodiless(head: RequestHead, peer: str) -> Request:
    """A request whose body has not come."""
    return Request(head.method, head.path, head.query, head.headers, b"", 0, peer=peer)


def _releasing(release: Release, reply: Reply) -> Reply:
    """The slot is free before the client can know: its next request finds room."""

    def answered(response: Response) -> None:
        release()
        reply(response)

    return answered


def _read_by(route: Route, request: Request, host: Host) -> tuple[str, ...]:
    """The topics that a request reads."""
    assert route.reads is not None
    if route.reads == EVERY_TOPIC:
        return host.fed()
    name = request.params[route.reads]
    return host.with_letters(name) if route.reads_letters else (name,)


def check_content_type(request: Request) -> None:
    """A body is JSON in UTF-8, and says so."""
    given = request.headers.get("content-type", "")
    if given in _JSON_TYPES:
        return
    media_type, *parameters = (part.strip().lower() for part in given.split(";"))
    charsets = [
        value.strip('"') for name, _, value in (part.partition("=") for part in parameters) if name == "charset"
    ]
    if media_type != "application/json" or any(charset != "utf-8" for charset in charsets):
        expected = "application/json; charset=utf-8"
        found = f"not {shorten(given)}" if given else "and there is none"
        raise UnsupportedMediaType(
            f"Content-Type of a request with a body must be {expected}, {found}",
            given=shorten(given),
            expected=expected,
        )
