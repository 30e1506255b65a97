"""What every call passes on its way in and out: the key, what it may do, its quota, and the words of a refusal.

A handler gets an `Asker` and a message, and returns a message or raises a `TopicsError`. The error's gRPC code becomes
the status and its message the text; what a program must know of it travels behind, as trailing metadata:

    topics-code         our own name of the error, such as `topic_not_found`
    topics-detail-bin   its detail, a JSON object

gRPC takes in the message of a unary call before its handler runs. So which handler that is depends on the call's
metadata: a call whose key is good gets the ordinary one, and all others one that reads nothing before the key is
compared (`_unread`). Nobody without a key can make the server hold a message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import getrandbits
from typing import Any, Final, NamedTuple

import grpc
import msgspec
from google.protobuf.message import DecodeError

from topics.core.names import shorten
from topics.errors import Internal, InvalidRequest, ShuttingDown, TopicsError, Unauthorized
from topics.proto.messages import Method, methods_of
from topics.server.auth import BEARER, check_scope
from topics.server.configchanges import ConfigChanges, Kind
from topics.server.context import Context
from topics.server.logs import fields
from topics.server.principal import EVERYBODY, Principal, Scope
from topics.server.traffic import RouteTraffic

CODE_KEY: Final = "topics-code"
DETAIL_KEY: Final = "topics-detail-bin"
METHOD: Final = "GRPC"
"""Where HTTP has a method, in metrics and in the access log."""
OVER: Final = "grpc"
CONSUMER_KEY: Final = "topics-consumer"
"""Metadata by which a client gives itself a name."""
CONSUMER_CHARS_MAX: Final = 255
REQUEST_ID_BITS: Final = 64
HEARD_OUT_MAX: Final = 4
FIRST_MESSAGE_S: Final = 1.0
"""How long a stream that is not let in may take to say why it came."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who calls."""

    principal: Principal
    request_id: str
    consumer: str = ""
    """What it calls itself, or where it calls from: for people who look who had a message."""


NOBODY: Final = Asker(EVERYBODY, "")
"""Who calls, as long as that is not known."""
Unary = Callable[[Asker, Any], Awaitable[Any]]
"""Answers one message with one message."""
Streaming = Callable[[Asker, Any], Awaitable[None]]
"""Has the call itself, to read from and write to until it returns."""


@dataclass(frozen=True, slots=True)
class Served:
    """A method and what it takes to call it."""

    scope: Scope
    handler: Unary | Streaming


class _Handlers(NamedTuple):
    """What gRPC calls for a method: with the message of a call, or with nothing read from it."""

    scope: Scope
    ordinary: Any
    unread: Any


class _Service:
    """Finds the handler of a call before its message is taken in; what gRPC calls a generic handler."""

    def __init__(
        self, name: str, handlers: Mapping[str, _Handlers], lets_in: Callable[[Mapping[str, str], Scope], bool]
    ) -> None:
        self._name = name
        self._handlers = handlers
        self._lets_in = lets_in

    def service_name(self) -> str:
        return self._name

    def service(self, details: Any) -> Any:
        found = self._handlers.get(details.method)
        if found is None:
            return None
        lets_in = self._lets_in(dict(details.invocation_metadata or ()), found.scope)
        return found.ordinary if lets_in else found.unread


class Calls:
    """Makes handlers that gRPC can call out of ours."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._heard_out = 0
        """Streams that are refused and are being read from."""

    def service(self, name: str, served: Mapping[str, Served]) -> Any:
        """All methods of a service of the contract."""
        methods = methods_of(name)
        assert methods.keys() == served.keys(), f"{name} has other methods than are served"
        handlers = {method.path: self._handlers(method, served[method.name]) for method in methods.values()}
        return _Service(name, handlers, self._lets_in)

    def _handlers(self, method: Method, served: Served) -> _Handlers:
        codec = (method.request.FromString, _bytes_of)
        assert method.server_streams == method.client_streams, f"{method.name} streams in one direction only"
        if method.client_streams:
            streaming = grpc.stream_stream_rpc_method_handler(self._stream(method, served), *codec)
            return _Handlers(served.scope, streaming, streaming)
        answer = self._unary(method, served)

        async def call(request: Any, caller: Any) -> Any:
            return await answer(caller, request)

        async def unread(_requests: Any, caller: Any) -> None:
            await caller.write(await answer(caller, None))

        return _Handlers(
            served.scope,
            grpc.unary_unary_rpc_method_handler(call, *codec),
            grpc.stream_stream_rpc_method_handler(unread, *codec),
        )

    def _lets_in(self, metadata: Mapping[str, str], scope: Scope) -> bool:
        """Whether a call brings a key that is good, as far as that can be seen at once."""
        authenticator = self._context.authenticator
        if not authenticator.is_on:
            return True
        try:
            check_scope(authenticator.owner(_key(metadata)), scope)
        except TopicsError:
            return False
        return True

    def _unary(self, method: Method, served: Served) -> Callable[[Any, Any], Awaitable[Any]]:
        """Answers a call and its message, which is read from the call when it is None."""
        context, scope, handler = self._context, served.scope, served.handler
        traffic = context.traffic.of(METHOD, method.path)

        async def answer(caller: Any, request: Any) -> Any:
            began_ns = context.clock.ticks_ns()
            asker = NOBODY
            try:
                asker = await self._asker(caller, scope)
                release = context.quota.enter(asker.principal)
                try:
                    if request is None:
                        request = await _only_message(caller)
                    carry_out = self._noted(method, handler) if scope & Scope.ADMIN else handler
                    response = await carry_out(asker, request)
                finally:
                    release()
            except Exception as error:
                await self._refuse(caller, method, asker, error, traffic, began_ns)
            self._answered(method, asker, "OK", traffic, began_ns)
            return response

        return answer

    def _stream(self, method: Method, served: Served) -> Callable[[Any, Any], Awaitable[None]]:
        context, scope, handler = self._context, served.scope, served.handler
        traffic = context.traffic.of(METHOD, method.path)

        async def call(_requests: Any, caller: Any) -> None:
            began_ns = context.clock.ticks_ns()
            asker = NOBODY
            try:
                try:
                    asker = await self._asker(caller, scope)
                    release = context.quota.open_stream(asker.principal)
                except TopicsError:
                    await self._hear_out(caller)
                    raise
                try:
                    await handler(asker, caller)
                finally:
                    release()
            except grpc.aio.InternalError:
                # A read or a write that failed: the client is gone, and there is nobody to tell.
                self._answered(method, asker, "CANCELLED", traffic, began_ns)
                return
            except Exception as error:
                await self._refuse(caller, method, asker, error, traffic, began_ns)
            self._answered(method, asker, "OK", traffic, began_ns)

        return call

    async def _hear_out(self, caller: Any) -> None:
        """Read what a stream that is not let in says first; of few at a time, as the message may be large."""
        if self._heard_out >= HEARD_OUT_MAX:
            return
        self._heard_out += 1
        try:
            await _first_message(caller)
        finally:
            self._heard_out -= 1

    async def _asker(self, caller: Any, scope: Scope) -> Asker:
        if self._context.draining:
            raise ShuttingDown("the server is shutting down; ask another one")
        authenticator = self._context.authenticator
        metadata = dict(caller.invocation_metadata() or ())
        principal = EVERYBODY
        if authenticator.is_on:
            principal = await authenticator.slow_owner(_key(metadata), _host(caller.peer()))
            check_scope(principal, scope)
        consumer = str(metadata.get(CONSUMER_KEY) or caller.peer())[:CONSUMER_CHARS_MAX]
        return Asker(principal, f"{getrandbits(REQUEST_ID_BITS):016x}", consumer)

    async def _refuse(
        self, caller: Any, method: Method, asker: Asker, error: Exception, traffic: RouteTraffic, began_ns: int
    ) -> None:
        """End the call with an error; raises, as gRPC wants it."""
        if not isinstance(error, TopicsError):
            log.error("%s failed", method.path, exc_info=error, extra=fields(request_id=asker.request_id))
            error = Internal(f"an internal error; the server's log has it under request id {asker.request_id}")
        if isinstance(error, Unauthorized) and self._context.audit is not None:
            await self._context.audit.note_failure(
                "key_refused", method.path, over=OVER, outcome=error.code, address=_host(caller.peer())
            )
        self._context.traffic.refused(error.http_status, error.code)
        self._answered(method, asker, error.grpc_code, traffic, began_ns)
        trailing = ((CODE_KEY, error.code), (DETAIL_KEY, msgspec.json.encode(error.detail)))
        await caller.abort(grpc.StatusCode[error.grpc_code], error.message, trailing)

    def _noted(self, method: Method, handler: Unary) -> Unary:
        """What administers is noted here, also that it was refused; what destroys is noted with what it destroys."""
        context = self._context

        async def carry_out(asker: Asker, request: Any) -> Any:
            audit = context.audit
            if audit is None:
                return await handler(asker, request)
            name, told = shorten(getattr(request, "topic", "")), {}

            async def work() -> Any:
                changes = ConfigChanges(context.ready().engine.machine, Kind.TOPIC, name)
                response = await handler(asker, request)
                told.update(changes.found())
                return response

            return await audit.carry_out(
                f"{METHOD} {method.path}",
                name,
                work,
                told=told,
                key=asker.principal.key_id,
                who=asker.principal.name,
                over=OVER,
                request_id=asker.request_id,
            )

        return carry_out

    def _answered(self, method: Method, asker: Asker, code: str, traffic: RouteTraffic, began_ns: int) -> None:
        took_ns = self._context.clock.ticks_ns() - began_ns
        if traffic.arrived():
            traffic.answered(took_ns)
        if self._context.settings.access_log:
            told = fields(
                method=METHOD,
                path=method.path,
                status=code,
                ms=round(took_ns / 1e6, 3),
                key=asker.principal.key_id,
                request_id=asker.request_id,
            )
            log.info("request", extra=told)


async def _only_message(caller: Any) -> Any:
    """The message of a unary call."""
    try:
        message = await caller.read()
    except DecodeError as error:
        raise InvalidRequest(f"the message cannot be decoded: {error}", expected="a message of this method") from None
    if message is grpc.aio.EOF:
        raise InvalidRequest("the call brings no message", expected="one message")
    return message


async def _first_message(caller: Any) -> None:
    """Hear a client out that is not let in, if it says anything: a write to a call that is over by then makes some
    clients lose the refusal, and take it for a fault of the connection (grpc/grpc issue 36066)."""
    with suppress(TimeoutError, DecodeError):
        async with asyncio.timeout(FIRST_MESSAGE_S):
            await caller.read()


def _bytes_of(message: Any) -> bytes:
    """An answer as it is sent; one that is sent often is made as bytes."""
    return message if isinstance(message, bytes) else message.SerializeToString()


def _host(peer: str) -> str:
    """The address in what gRPC calls a peer, like `ipv4:127.0.0.1:5000`, without the port."""
    return peer.partition(":")[2].rpartition(":")[0] or peer


def _key(metadata: Mapping[str, str]) -> str:
    """The key of a call; empty, which is no key, when it brings none."""
    scheme, _, token = metadata.get("authorization", "").strip().partition(" ")
    if scheme:
        return token.strip() if scheme.lower() == BEARER else ""
    return metadata.get("x-api-key", "").strip()
