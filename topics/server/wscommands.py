"""The commands of one WebSocket: each is authorised, carried out and answered; and what its subscriptions bring.

A publish is a write: it takes the same way as a POST, with the same refusals, and its answer becomes the `ack`. The
publishes of a connection may overtake each other's answers as far as their topics' durability differs; each answer
names its `request_id`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, assert_never

from topics.engine.events import Form
from topics.engine.watcher import Subscription, Watcher
from topics.errors import Internal, InvalidRequest, Throttled, TopicsError
from topics.server import wsframes
from topics.server.answers import bug, failure
from topics.server.auth import check_name, check_scope
from topics.server.context import Context
from topics.server.message import Request, Response
from topics.server.principal import Principal, Scope
from topics.server.quota import Release
from topics.server.routes.records import write
from topics.wire.watch import parse_key
from topics.wire.wscommand import (
    Command,
    Ping,
    Publish,
    RequestId,
    Subscribe,
    Unsubscribe,
    decode_command,
    request_id_of,
)

METHOD = "WS"
PATH = "/v0/ws"

log = logging.getLogger(__name__)


class Socket(Protocol):
    """What carries the messages."""

    form: Form

    def tell(self, message: bytes) -> None:
        """Send a message, unless it is over."""

    def forward(self, subscription: Subscription, frame: bytes) -> None:
        """Send an event in the socket's form."""

    def answered(self) -> None:
        """One publish less is under way."""


class Commands:
    """The `Listener` of its subscriptions, too."""

    def __init__(self, context: Context, principal: Principal, connection_id: str, socket: Socket) -> None:
        self._context = context
        self._principal = principal
        self._connection_id = connection_id
        self._socket = socket
        self._count = 0
        self._watcher: Watcher | None = None
        self._named: set[str] = set()
        """Keys that were subscribed by name, not found by a wildcard."""
        self.in_flight = 0
        """Publishes that are not answered yet."""
        self.send: Callable[[Subscription, bytes], None] = socket.forward

    def carry_out(self, message: bytes) -> None:
        """Begin a command. Whatever is wrong with it is answered."""
        self._count += 1
        request_id = f"{self._connection_id}.{self._count}"
        received_ns = self._context.clock.ticks_ns()
        request = Request(METHOD, PATH, "", {}, message, received_ns, request_id, principal=self._principal)
        try:
            command = decode_command(message)
        except TopicsError as error:
            self._refuse(request, request_id_of(message), error)
            return
        self._context.traffic.of(METHOD, f"{PATH} {type(command).__name__.lower()}").arrived()
        try:
            self._begin(request, command)
        except TopicsError as error:
            self._refuse(request, command.request_id, error)
        except Exception as error:
            self._tell_answer(command.request_id, bug(self._context, request, error))

    def _begin(self, request: Request, command: Command) -> None:
        # Who was let in when the socket was opened may have less to say now.
        self._principal = request.principal = self._context.authenticator.still(self._principal)
        match command:
            case Publish():
                self._publish(request, command)
            case Subscribe():
                self._subscribe(command)
            case Unsubscribe():
                self._unsubscribe(command)
            case Ping():
                self._socket.tell(wsframes.message("pong", command.request_id))
            case _:
                assert_never(command)

    # ---- publish

    def _publish(self, request: Request, command: Publish) -> None:
        check_scope(self._principal, Scope.WRITE | Scope.ADMIN if command.has_config else Scope.WRITE)
        check_name(self._principal, command.topic)
        request.params = {"topic": command.topic}
        request.query = "" if command.with_seqs else "return_seqs=false"
        release = self._context.quota.enter(self._principal)
        self.in_flight += 1
        try:
            write(self._context, request, lambda response: self._written(command.request_id, release, response))
        except BaseException:
            self.in_flight -= 1
            release()
            raise

    def _written(self, request_id: RequestId, release: Release, response: Response) -> None:
        self.in_flight -= 1
        release()
        self._tell_answer(request_id, response)
        self._socket.answered()

    def _tell_answer(self, request_id: RequestId, response: Response) -> None:
        make = wsframes.ack if response.status < 300 else wsframes.error_of_answer
        self._socket.tell(make(request_id, response.body))

    # ---- subscribe and unsubscribe

    def _subscribe(self, command: Subscribe) -> None:
        check_scope(self._principal, Scope.READ)
        for each in command.wanted:
            check_name(self._principal, each.topic)
        watch = self._context.ready().engine.watch
        # All of it is looked at before any of it is done.
        self._check_room(command)
        for each in command.wanted:
            if not each.wildcard:
                watch.find(each.topic, each.partition)
        if self._watcher is None:
            self._watcher = watch.open(self, self._socket.form)
        made: list[Subscription] = []
        for each in command.wanted:
            view = watch.fitted(each.view)
            if each.wildcard:
                made += self._watcher.subscribe_matching(each.topic, view, from_seq=each.from_seq, tail=each.tail)
            else:
                made.append(
                    self._watcher.subscribe(
                        each.topic, view, partition=each.partition, from_seq=each.from_seq, tail=each.tail
                    )
                )
                self._named.add(made[-1].key)
        topics = {
            each.key: {"from_seq": each.start_seq, "head_seq": each.head_seq, "earliest_seq": each.earliest_seq}
            for each in made
        }
        self._socket.tell(wsframes.message("subscribed", command.request_id, topics=topics))

    def _check_room(self, command: Subscribe) -> None:
        most = self._context.settings.max_watch_topics
        count = len(self._named) + sum(not each.wildcard for each in command.wanted)
        if most and count > most:
            expected = f"at most {most} topics on one connection (TOPICS_MAX_WATCH_TOPICS)"
            raise InvalidRequest(f"too many topics: expected {expected}", field="topics", expected=expected)

    def _unsubscribe(self, command: Unsubscribe) -> None:
        ended: list[str] = []
        if self._watcher is not None:
            for key in command.keys:
                name, _, wildcard = parse_key(key)
                if wildcard:
                    ended += self._watcher.unsubscribe_matching(name)
                elif self._watcher.unsubscribe(key):
                    ended.append(key)
        self._named.difference_update(ended)
        topic = {} if command.topic is None else {"topic": command.topic}
        self._socket.tell(wsframes.message("unsubscribed", command.request_id, **topic, topics=ended))

    # ---- what subscriptions bring

    def joined(self, subscription: Subscription) -> None:
        """Its records will name it."""

    def ended(self, subscription: Subscription) -> None:
        self._named.discard(subscription.key)

    def failed(self, subscription: Subscription, error: Exception) -> None:
        self._named.discard(subscription.key)
        if not isinstance(error, TopicsError):
            log.error("a subscription failed", exc_info=error)
            error = Internal(f"an internal error; the server's log has it. {subscription.key} is not followed any more")
        self._socket.tell(wsframes.error(None, error, topic=subscription.key))

    def paced(self, topics: list[str], retry_after_ms: int) -> None:
        told = Throttled("delivery is behind: more important topics go first", retry_after_ms=retry_after_ms)
        self._socket.tell(wsframes.error(None, told, topics=topics))

    def refused(self, topic: str, error: Throttled) -> None:
        self._socket.tell(wsframes.error(None, error, topic=topic))

    # ---- room, and the end

    def block(self) -> None:
        if self._watcher is not None:
            self._watcher.block()

    def unblock(self) -> None:
        if self._watcher is not None:
            self._watcher.unblock()

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()

    def _refuse(self, request: Request, request_id: RequestId, error: TopicsError) -> None:
        self._tell_answer(request_id, failure(self._context, request, error))
