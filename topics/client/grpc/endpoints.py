"""Servers that a client may talk to: one at a time, and the next one when it does not answer.

All endpoints are the same to the client. A channel is made when it is first needed and kept; when a call on it fails
because nobody is there, the next endpoint is the one in use, for everybody. A call is tried again where that is safe,
see `caller.py`: what was refused for now or never sent, and what is the same done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
import msgspec

from topics import errors
from topics.client import tracing
from topics.client.backoff import Backoff
from topics.client.caller import CallOptions, was_refused
from topics.client.grpc.fitting import unfit
from topics.client.refusal import by_code
from topics.errors import ConnectionFailed, ShuttingDown, TimedOut, TopicsError
from topics.limits import SECOND_MS
from topics.proto.messages import DISHEAP, HEAPS, Method, methods_of

CODE_KEY: Final = "topics-code"
DETAIL_KEY: Final = "topics-detail-bin"
CONSUMER_KEY: Final = "topics-consumer"
OPTIONS: Final = [
    ("grpc.keepalive_time_ms", 30 * SECOND_MS),
    ("grpc.keepalive_timeout_ms", 10 * SECOND_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # We go to the next endpoint ourselves, and sooner than the core would try this one again.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5 * SECOND_MS),
]

_NEVER_SENT: Final = ("failed to connect", "Connection refused", "DNS resolution failed", "connections to all backends")
"""How the core says that no connection could be made; only the words tell it from one that broke."""
_BY_STATUS: Final[dict[Any, type[TopicsError]]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidRequest,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthorized,
    grpc.StatusCode.PERMISSION_DENIED: errors.Forbidden,
    grpc.StatusCode.NOT_FOUND: errors.NotFound,
    grpc.StatusCode.ALREADY_EXISTS: errors.TopicExists,
    grpc.StatusCode.FAILED_PRECONDITION: errors.Conflict,
    grpc.StatusCode.ABORTED: errors.Conflict,
    # Without our code it is the core's word about a message that is larger than the server takes.
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.PayloadTooLarge,
    grpc.StatusCode.UNIMPLEMENTED: errors.NotInstalled,
    grpc.StatusCode.UNAVAILABLE: errors.ConnectionFailed,
    # A connection that breaks in the middle of a stream is any of these to the core; our server says them with a code.
    grpc.StatusCode.CANCELLED: errors.ConnectionFailed,
    grpc.StatusCode.INTERNAL: errors.ConnectionFailed,
    grpc.StatusCode.UNKNOWN: errors.ConnectionFailed,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.TimedOut,
}

Broken = Callable[[Any], TopicsError]
"""Why a call ended, as an error of ours."""

METHODS: Final[dict[str, Method]] = {
    f"{service.rpartition('.')[2]}.{name}": method
    for service in (DISHEAP, HEAPS)
    for name, method in methods_of(service).items()
}
"""By service and name: `Disheap.Enqueue`, `Heaps.Work`."""


class Endpoints:
    def __init__(self, addresses: Sequence[str], key: str | None, options: CallOptions, tls: Any = None) -> None:
        """`addresses` are `host:port`, one or more; `tls` credentials of a channel, None is plain text."""
        self._addresses = tuple(addresses)
        self._metadata = () if key is None else (("authorization", f"Bearer {key}"),)
        self._tls = tls
        self.timeout_ms = options.timeout_ms
        self.attempts_max = max(options.attempts_max, len(self._addresses))
        """Each of them is tried at least once."""
        # So the core calls how long making a connection may take.
        self._options = [*OPTIONS, ("grpc.min_reconnect_backoff_ms", options.connect_timeout_ms)]
        self._place = 0
        self._channels: dict[int, Any] = {}
        self.closed = False
        self.reached = False
        """Whether a server has answered anything yet: before, it may be a wrong address."""

    async def close(self) -> None:
        self.closed = True
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()

    async def call(self, name: str, request: Any, *, repeatable: bool, wait_ms: int = 0, consumer: str = "") -> Any:
        """The answer to a request; what the server refuses is raised as the error it is."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + (self.timeout_ms + wait_ms) / SECOND_MS
        backoff = Backoff()
        attempt_count = 0
        while True:
            attempt_count += 1
            place = self._place
            try:
                answer = await self._method(name)(
                    request, timeout=max(0.001, deadline_s - loop.time()), metadata=self._told(consumer)
                )
                self.reached = True
                return answer
            except grpc.aio.AioRpcError as failure:
                error = self._broken(place, failure)
            again = was_refused(error)
            if isinstance(error, ConnectionFailed | TimedOut):
                again = repeatable or not error.detail["sent"]
            pause_s = backoff.next_s(int(error.detail.get("retry_after_ms", 0)))
            late = loop.time() + pause_s >= deadline_s
            if not again or late or attempt_count >= self.attempts_max:
                raise error
            await asyncio.sleep(pause_s)

    def stream(self, name: str, consumer: str) -> tuple[Any, Broken]:
        """A call that streams both ways, and what makes an error of its end: others then use the next endpoint."""
        place = self._place
        call = self._method(name)(metadata=self._told(consumer))
        return call, lambda failure: self._broken(place, failure)

    def _broken(self, place: int, failure: Any) -> TopicsError:
        error = error_of(failure, self._addresses[place])
        if isinstance(error, ConnectionFailed | ShuttingDown):
            self.go_on(place)
        self.reached = self.reached or not isinstance(error, ConnectionFailed | TimedOut)
        return error

    def go_on(self, place: int) -> None:
        """Use the next endpoint, unless somebody else has gone on already."""
        if place == self._place:
            self._place = (place + 1) % len(self._addresses)

    def _method(self, name: str) -> Any:
        method = METHODS[name]
        channel = self._channel()
        make = channel.stream_stream if method.client_streams else channel.unary_unary
        return make(method.path, method.request.SerializeToString, method.response.FromString)

    def _channel(self) -> Any:
        if self.closed:
            raise ShuttingDown("the client is closed: use it inside `async with`")
        found = self._channels.get(self._place)
        if found is None:
            address = self._addresses[self._place]
            if self._tls is None:
                found = grpc.aio.insecure_channel(address, self._options)
            else:
                found = grpc.aio.secure_channel(address, self._tls, self._options)
            self._channels[self._place] = found
        return found

    def _told(self, consumer: str) -> tuple[tuple[str, str], ...]:
        if consumer and not (isinstance(consumer, str) and consumer.isascii() and consumer.isprintable()):
            raise unfit("consumer", consumer, "printable ASCII over gRPC")
        name = ((CONSUMER_KEY, consumer),) if consumer else ()
        return (*self._metadata, *name, *tracing.current().items())


def error_of(failure: Any, address: str) -> TopicsError:
    """What the server refused, or why there was no answer, as an error of ours."""
    trailing = dict(failure.trailing_metadata() or ())
    code, message = trailing.get(CODE_KEY), failure.details() or ""
    if code is not None:
        error = (by_code(str(code)) or _BY_STATUS.get(failure.code(), errors.Internal))(message)
        error.detail = msgspec.json.decode(trailing.get(DETAIL_KEY, b"{}"))
        return error
    kind = _BY_STATUS.get(failure.code(), errors.Internal)
    sent = not any(words in message for words in _NEVER_SENT)
    if kind is ConnectionFailed and not sent:
        # What is behind the last colon is the reason; before it, the core says the address in its own way.
        message = f"cannot connect to {address}: {message.rpartition(': ')[2]}; is gRPC served there?"
    error = kind(message or failure.code().name)
    if isinstance(error, ConnectionFailed | TimedOut):
        error.detail["sent"] = sent
    return error
