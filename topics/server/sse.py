"""An event stream: one connection that reads a watch session, in the frames of server-sent events.

    retry: 2000                                         once, at the beginning, with the id of where it begins
    id: …  event: record  data: {"topic":…}             also tombstone, caught-up and topic-deleted
    event: error  data: {"code":429,"error":…}          without an id: it moves nothing
    : hb 1748467205000                                  when nothing else was sent for a while

It stands between the connection (`streaming.py`), whose outlet it is, and the engine (`engine/watcher.py`), whose
listener it is. An event of a session with one topic is the same bytes for all who are in the same place, its id
included, and goes straight to the socket. With several topics the id is each stream's own: the positions in all of
them, or when they are more than `NAMED_MAX` a checkpoint that the session can go back to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from topics.clock import Clock
from topics.engine.events import Event, Form, Kind
from topics.engine.host import Host
from topics.engine.watcher import Subscription, Watcher
from topics.errors import InvalidRequest, Throttled, TopicNotFound, TopicsError
from topics.server.checkpoints import Checkpoints
from topics.server.sessions import NS_PER_MS, Position, Session, Sessions
from topics.server.streaming import Stream, chunk
from topics.wire.streamcursor import decode_stream_cursor, encode_checkpoint, encode_positions
from topics.wire.watch import topic_deleted_text

RETRY_MS: Final = 2000
NAMED_MAX: Final = 64
"""Topics that an id names one by one."""

SLOW: Final = 408
SUPERSEDED: Final = 409
STOPPING: Final = 503
"""What the last frame of a stream says, in the codes of HTTP."""
PACED: Final = 429
"""What one says that is not the last: the server is behind."""

_NAMES = {
    Kind.RECORD: b"record",
    Kind.TOMBSTONE: b"tombstone",
    Kind.CAUGHT_UP: b"caught-up",
    Kind.TOPIC_DELETED: b"topic-deleted",
}

log = logging.getLogger(__name__)


# ---- forms


def nameless(event: Event) -> bytes:
    """An event without its id."""
    return frame(_NAMES[event.kind], event.text)


def whole(event: Event) -> bytes:
    """An event of a stream that follows nothing else."""
    return b"id: %b\n%b" % (encode_positions({event.key: event.cursor}), nameless(event))


def whole_chunk(event: Event) -> bytes:
    """The same for a connection that sends in chunks."""
    return chunk(whole(event))


def frame(name: bytes, text: bytes) -> bytes:
    """`text` is a JSON object without its opening brace. JSON has line breaks only between its tokens, where the client
    puts them back when it joins the lines."""
    if b"\n" in text or b"\r" in text:
        text = b"\ndata: ".join(text.splitlines())
    return b"event: %b\ndata: {%b\n\n" % (name, text)


def error_frame(code: int, message: str, **detail: object) -> bytes:
    return frame(b"error", msgspec.json.encode({"code": code, "error": message, **detail})[1:])


class EventStream:
    """An `Outlet` and a `Listener`, from the request to the end of its connection."""

    def __init__(
        self,
        host: Host,
        sessions: Sessions,
        session: Session,
        clock: Clock,
        last_event_id: str,
        slow_timeout_ms: int,
    ) -> None:
        self._watch = host.engine.watch
        self._sessions = sessions
        self._session = session
        self._clock = clock
        self._last_event_id = last_event_id
        self._slow_timeout_ms = slow_timeout_ms
        self._heartbeat_ns = session.heartbeat_ms * NS_PER_MS
        self._stream: Stream | None = None
        self._watcher: Watcher | None = None
        self._sent_ns = 0
        """When something was last sent, as the pump counts time."""
        self._full_since_ns = 0
        self._has_epochs = False
        """Whether a topic is in a later life than the one it was first watched in."""
        self.send: Callable[[Subscription, bytes], None] = self._send_named

    # ---- the connection's side

    def opened(self, stream: Stream) -> None:
        self._stream = stream
        self._sent_ns = self._clock.ticks_ns()
        self._sessions.take(self._session, self)
        complaint = self._rewind()
        watcher = self._watcher = self._watch.open(self, self._form(stream.chunked))
        if stream.full:
            self.filled()
        gone, refusals = self._subscribe(watcher)
        self._number(watcher)
        stream.send(b"retry: %d\nid: %b\n\n" % (RETRY_MS, self._id(gone)))
        for error in (complaint, *refusals):
            if error is not None:
                stream.send(error_frame(error.http_status, error.message))
        while gone:
            self._say_gone(gone)
        if not stream.full:
            stream.wake_at(self._sent_ns + self._heartbeat_ns)

    def _rewind(self) -> TopicsError | None:
        """Go back to where the client says it is; what is wrong with that, if something is."""
        if not self._last_event_id:
            return None
        try:
            self._session.rewind(decode_stream_cursor(self._last_event_id, "Last-Event-ID"))
        except InvalidRequest as error:
            return error
        return None

    def _form(self, chunked: bool) -> Form:
        session = self._session
        if len(session.positions) == 1 and not session.patterns and session.checkpoints is None:
            (position,) = session.positions.values()
            topic = self._watch.topic(position.topic)
            if topic is not None and topic.epoch == position.epoch == session.first_epochs[position.key]:
                self.send = self._send_whole
                return whole_chunk if chunked else whole
        return nameless

    def _subscribe(self, watcher: Watcher) -> tuple[list[Position], list[TopicsError]]:
        """Follow what the session names; those positions whose topic is gone, and what cannot be followed otherwise."""
        gone: list[Position] = []
        refusals: list[TopicsError] = []
        for each in self._session.positions.values():
            try:
                watcher.subscribe(
                    each.topic, each.view, partition=each.partition, from_seq=each.cursor, epoch=each.epoch
                )
            except (TopicNotFound, InvalidRequest):
                # Also when it was made anew with fewer partitions.
                gone.append(each)
        for prefix, view in self._session.patterns.items():
            try:
                watcher.subscribe_matching(prefix, view)
            except Throttled as error:
                refusals.append(error)
        return gone, refusals

    def filled(self) -> None:
        assert self._watcher is not None and self._stream is not None
        self._watcher.block()
        self._full_since_ns = self._clock.ticks_ns()
        self._stream.wake_at(self._full_since_ns + self._slow_timeout_ms * NS_PER_MS)

    def drained(self) -> None:
        assert self._watcher is not None and self._stream is not None
        self._watcher.unblock()
        self._stream.wake_at(self._sent_ns + self._heartbeat_ns)

    def expired(self) -> None:
        assert self._watcher is not None and self._stream is not None
        now_ns = self._clock.ticks_ns()
        if self._watcher.blocked:
            message = f"nothing was read for {self._slow_timeout_ms} ms; connect again to go on from the last event"
            self._give_up(SLOW, message)
            return
        due_ns = self._sent_ns + self._heartbeat_ns
        if now_ns >= due_ns:
            self._stream.send(b": hb %d\n\n" % self._clock.now_ms())
            self._sent_ns = now_ns
            due_ns = now_ns + self._heartbeat_ns
        self._stream.wake_at(due_ns)

    def stopping(self) -> None:
        self._give_up(STOPPING, "the server is shutting down; connect again")

    def supersede(self) -> None:
        self._give_up(SUPERSEDED, "another stream has been opened for this watch session")

    def _give_up(self, code: int, message: str) -> None:
        assert self._stream is not None
        self._stream.send(error_frame(code, message))
        self._stream.end(close=True)

    def closed(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            for subscription in watcher.subscriptions.values():
                self._keep(subscription)
            watcher.close()
            self._sessions.leave(self._session, self)

    def settle(self) -> None:
        """Bring the session up to date while the stream goes on."""
        assert self._watcher is not None
        for subscription in self._watcher.subscriptions.values():
            self._keep(subscription)

    # ---- the engine's side

    def _send_whole(self, subscription: Subscription, frame: bytes) -> None:
        stream = self._stream
        assert stream is not None
        self._sent_ns = self._watch.pumped_ns
        stream.write(frame)

    def _send_named(self, subscription: Subscription, frame: bytes) -> None:
        stream, checkpoints = self._stream, self._session.checkpoints
        assert stream is not None
        self._sent_ns = self._watch.pumped_ns
        if checkpoints is not None:
            checkpoints.advance(subscription.key, (subscription.cursor, subscription.epoch))
        stream.send(b"id: %b\n%b" % (self._id(), frame))

    def joined(self, subscription: Subscription) -> None:
        assert self._watcher is not None
        self._keep(subscription)
        session, key = self._session, subscription.key
        if session.checkpoints is not None:
            session.checkpoints.join(key, (subscription.cursor, subscription.epoch))
        elif len(self._watcher.subscriptions) > NAMED_MAX:
            self._number(self._watcher)
        self._has_epochs = self._has_epochs or session.first_epochs[key] != subscription.epoch

    def ended(self, subscription: Subscription) -> None:
        self._keep(subscription)
        self._session.end(subscription.key)

    def failed(self, subscription: Subscription, error: Exception) -> None:
        self._keep(subscription)
        assert self._stream is not None
        code, message = 500, "an internal error"
        if isinstance(error, TopicsError):
            code, message = error.http_status, error.message
        log.error("watching %s failed", subscription.key, exc_info=error)
        self._stream.send(error_frame(code, message, topics=[subscription.topic]))

    def paced(self, topics: list[str], retry_after_ms: int) -> None:
        assert self._stream is not None
        message = "the server is behind with its work and delivers other topics first"
        self._stream.send(error_frame(PACED, message, retry_after_ms=retry_after_ms, topics=topics))

    def refused(self, topic: str, error: Throttled) -> None:
        assert self._stream is not None
        self._stream.send(error_frame(error.http_status, error.message, topics=[topic]))

    # ---- ids and positions

    def _number(self, watcher: Watcher) -> None:
        """Begin to number events once they can no longer name every topic."""
        session, subscriptions = self._session, watcher.subscriptions
        if session.checkpoints is None and len(subscriptions) > NAMED_MAX:
            session.checkpoints = Checkpoints({})
        if session.checkpoints is not None:
            for key, each in subscriptions.items():
                session.checkpoints.join(key, (each.cursor, each.epoch))
        later = session.epochs((key, each.feed.topic.epoch) for key, each in subscriptions.items())
        self._has_epochs = bool(later)

    def _id(self, gone: Sequence[Position] = ()) -> bytes:
        """Where the stream stands. `gone` are not followed, but named until the client was told."""
        assert self._watcher is not None
        session, subscriptions = self._session, self._watcher.subscriptions
        if session.checkpoints is not None:
            return encode_checkpoint(session.name, session.checkpoints.at)
        seqs = {key: each.cursor for key, each in subscriptions.items()}
        epochs: dict[str, int] = {}
        if self._has_epochs:
            epochs = session.epochs((key, each.epoch) for key, each in subscriptions.items())
        for position in gone:
            seqs[position.key] = position.cursor
            epochs |= session.epochs([(position.key, position.epoch)])
        return encode_positions(seqs, epochs)

    def _keep(self, subscription: Subscription) -> None:
        """Note in the session how far a subscription has come."""
        session, key = self._session, subscription.key
        position = session.positions.get(key)
        if position is None:
            feed = subscription.feed
            session.ended.pop(key, None)
            session.add(
                Position(
                    key=key,
                    topic=subscription.topic,
                    partition=feed.log.partition,
                    view=subscription.group.view,
                    cursor=subscription.start_seq,
                    epoch=feed.topic.epoch,
                    start_seq=subscription.start_seq,
                    start_epoch=feed.topic.epoch,
                )
            )
            position = session.positions[key]
        position.cursor, position.epoch = subscription.cursor, subscription.epoch

    def _say_gone(self, gone: list[Position]) -> None:
        """Tell of the first of the topics that were deleted while no stream was open."""
        assert self._stream is not None
        session, position = self._session, gone[0]
        if session.checkpoints is not None:
            session.checkpoints.join(position.key, (position.cursor, position.epoch))
            session.checkpoints.advance(position.key, (position.cursor, position.epoch))
        several = b'"partition":%d,' % position.partition if position.partition else b""
        text = topic_deleted_text(position.topic.encode(), several, position.cursor)
        event = Event(kind=Kind.TOPIC_DELETED, key=position.key, cursor=position.cursor, text=text)
        self._stream.send(b"id: %b\n%b" % (self._id(gone), nameless(event)))
        session.end(position.key)
        del gone[0]
