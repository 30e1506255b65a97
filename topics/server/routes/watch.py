"""Watching many topics over one stream: `POST /v0/watch` says what, `GET /v0/watch/{wid}` is the stream.

Two steps, because what to watch is too much for an address, and a browser's `EventSource` can send nothing else. All
that can be wrong is refused in the first one, while a client can still read why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from topics.engine.engine import Engine
from topics.engine.watcher import key_of
from topics.errors import InvalidRequest, NotAcceptable, TopicNotFound
from topics.server.answers import later, success, when_fresh
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Principal, Scope
from topics.server.route import Operation, Route
from topics.server.sessions import Position, Session
from topics.server.shapes import TEXT, answer, body, flag_parameter
from topics.server.sse import EventStream
from topics.server.streaming import StreamResponse
from topics.wire.query import Query
from topics.wire.streamcursor import Checkpoint, Positions, decode_stream_cursor
from topics.wire.watch import Wanted, WatchRequest, decode_watch, parse_key

EVENT_STREAM = b"text/event-stream; charset=utf-8"
STREAM_HEADERS = ((b"Cache-Control", b"no-store"), (b"X-Accel-Buffering", b"no"))
"""The second one tells a proxy to pass each event on at once."""

SLICE: Final = 256
"""Topics that a wildcard adds to a session before the loop gets a turn."""

_NOWHERE = Positions({})


def create(context: Context, request: Request, reply: Reply) -> None:
    context.ready()
    lenient = Query(request.query).flag("lenient", False)
    asked = decode_watch(request.body)
    cursor = _cursor(context, request.principal, asked)
    wanted = _all_wanted(asked, cursor)
    most = context.settings.max_watch_topics
    if len(wanted) > most:
        raise InvalidRequest(
            f"topics names {len(wanted)}, at most {most} are allowed (TOPICS_MAX_WATCH_TOPICS)",
            field="topics",
            limit="max_watch_topics",
            max=most,
        )
    for each in wanted:
        check_name(request.principal, each.topic, "topics")
    named = [each.topic for each in wanted if not each.wildcard]
    when_fresh(context, request, reply, named, lambda: _made(context, request, reply, asked, wanted, cursor, lenient))


def _made(
    context: Context,
    request: Request,
    reply: Reply,
    asked: WatchRequest,
    wanted: Sequence[Wanted],
    cursor: Positions,
    lenient: bool,
) -> None:
    engine = context.ready().engine
    context.sessions.check_room()
    session = Session(request.principal, asked.heartbeat_ms)
    for each in wanted:
        if not each.wildcard:
            _add(engine, session, each, cursor, lenient)
    wildcards = [each for each in wanted if each.wildcard]
    if wildcards:
        later(context, request, reply, _add_matching(context, request, session, wildcards, cursor))
    else:
        reply(_created(context, request, session, _summaries(engine, session)))


def _created(context: Context, request: Request, session: Session, summaries: dict[str, dict[str, int]]) -> Response:
    context.sessions.add(session)
    fields = {
        "wid": session.wid,
        "stream_url": f"/v0/watch/{session.wid}",
        "session_ttl_ms": context.sessions.ttl_ms,
        "topics": summaries,
    }
    return success(context, request, fields)


async def _add_matching(
    context: Context, request: Request, session: Session, wildcards: Sequence[Wanted], cursor: Positions
) -> Response:
    """Add what wildcards find, a slice at a time: they may find thousands of topics."""
    engine = context.ready().engine
    summaries = _summaries(engine, session)
    for wanted in wildcards:
        session.patterns[wanted.topic] = wanted.view
        # With a cursor, what it does not know has come since.
        start = Wanted(topic="", view=wanted.view) if cursor.seqs else wanted
        found = engine.watch.places(wanted.topic, session.positions.keys())
        for number, (topic, partition) in enumerate(found, 1):
            each = msgspec.structs.replace(start, topic=topic.name, wildcard=False, partition=partition)
            with suppress(TopicNotFound):
                # It may be dropped meanwhile.
                position = _position(engine, each, cursor)
                summaries[position.key] = _summary(engine, position)
                session.add(position)
            if number % SLICE == 0:
                await asyncio.sleep(0)
    context.sessions.check_room()
    return _created(context, request, session, summaries)


def _cursor(context: Context, principal: Principal, asked: WatchRequest) -> Positions:
    if asked.cursor is None:
        return _NOWHERE
    cursor = decode_stream_cursor(asked.cursor)
    if isinstance(cursor, Checkpoint):
        return context.sessions.named(cursor.session, principal).positions_at(cursor)
    return cursor


def _all_wanted(asked: WatchRequest, cursor: Positions) -> tuple[Wanted, ...]:
    """What the body names; and when it names nothing, what the cursor does."""
    if asked.wanted:
        return asked.wanted
    parsed = [parse_key(key, "cursor") for key in cursor.seqs]
    return tuple(Wanted(topic=topic, partition=partition, view=asked.view) for topic, partition, _ in parsed)


def _add(engine: Engine, session: Session, wanted: Wanted, cursor: Positions, lenient: bool) -> None:
    try:
        session.add(_position(engine, wanted, cursor))
    except TopicNotFound:
        if not lenient:
            raise


def _position(engine: Engine, wanted: Wanted, cursor: Positions) -> Position:
    topic, log = engine.watch.find(wanted.topic, wanted.partition)
    key = key_of(wanted.topic, wanted.partition)
    epoch = topic.epoch
    if key in cursor.seqs:
        seq, epoch = cursor.seqs[key], cursor.epochs.get(key, epoch)
    else:
        seq = log.visible_seq if wanted.tail else wanted.from_seq
    return Position(
        key=key,
        topic=wanted.topic,
        partition=wanted.partition,
        view=wanted.view,
        cursor=seq,
        epoch=epoch,
        start_seq=seq,
        start_epoch=epoch,
    )


def _summaries(engine: Engine, session: Session) -> dict[str, dict[str, int]]:
    return {key: _summary(engine, position) for key, position in session.positions.items()}


def _summary(engine: Engine, position: Position) -> dict[str, int]:
    state = engine.state(position.topic, position.partition)
    return {"from_seq": position.cursor, "head_seq": state.head_seq, "earliest_seq": state.earliest_seq}


def stream(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    session = context.sessions.find(request.params["wid"], request.principal)
    check_accept(request.headers.get("accept", ""))
    for name in session.names():
        # A stream token may be for less than the session is.
        check_name(request.principal, name, "topics")
    outlet = EventStream(
        host,
        context.sessions,
        session,
        context.clock,
        request.headers.get("last-event-id", ""),
        context.settings.slow_consumer_timeout_ms,
    )
    reply(
        StreamResponse(
            200,
            content_type=EVENT_STREAM,
            headers=STREAM_HEADERS,
            outlet=outlet,
            buffer_bytes=context.settings.watch_buffer_bytes,
        )
    )


def check_accept(accept: str) -> None:
    """`NotAcceptable` unless a client takes an event stream; one that says nothing takes everything."""
    ranges = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    if accept and not {"text/event-stream", "text/*", "*/*"} & set(ranges):
        expected = "text/event-stream"
        raise NotAcceptable(f"this is {expected}, which Accept does not allow", given=accept[:80], expected=expected)


_WID: dict[str, object] = {
    "name": "wid",
    "in": "path",
    "required": True,
    "description": "The watch session.",
    "schema": TEXT,
}
ROUTES = (
    Route(
        "POST",
        "/v0/watch",
        Scope.READ,
        create,
        Operation(
            "Watch topics",
            "Makes a watch session: which topics to follow, each from where. `stream_url` is its event stream. A "
            "session remembers how far its stream has come, and ends when nobody has read it for `session_ttl_ms`. "
            "Keys of `topics` are names, `name#2` for a partition, or `tenant42:*` for all names that begin so, those "
            "to come included. With `cursor`, the `id` of an event, it goes on from there.",
            "watch",
            parameters=(flag_parameter("lenient", False, "Leave out topics that are not there."),),
            request_body=body("WatchRequest"),
            responses={"200": answer("WatchSession", "The session, and where its topics stand.")},
        ),
    ),
    Route(
        "GET",
        "/v0/watch/{wid}",
        Scope.READ,
        stream,
        Operation(
            "Stream what a session watches",
            "Server-sent events without end: `record`, `tombstone`, `caught-up`, `topic-deleted` and `error`, with a "
            "comment as heartbeat. The `id` of an event is where the stream stands in all topics; sent back as "
            "`Last-Event-ID` it takes the session back to that event. Only the key that made the session opens it; a "
            "second stream takes over from the first.",
            "watch",
            parameters=(_WID,),
            responses={
                "200": {
                    "description": "The stream.",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                },
                "406": answer("Error", "`Accept` does not allow `text/event-stream`."),
            },
        ),
        streams=True,
        takeover_param="wid",
        query_token=True,
    ),
)
