"""The lane: plain writes of all connections, stored together once a turn of the loop; claims and acks likewise.

Most requests of a busy server are small writes that differ in little. What they cost on their own is not the work but
its repetition: route, key, decoding, command, ticket, frame, answer. So a connection whose request begins like a plain
write it has sent before (`track.py`) puts it on its track, and at the end of the turn each track is one command, one
ticket, one frame, and one template for the answers. What becomes of claims and acks is in `joblane.py`.

Nothing else may change for whoever asks. A head is on a track only when route, key and content type are settled by its
bytes alone. What was gathered goes on together only when the topic is there and nothing holds writes back. One that is
not valid is taken out, and when the engine refuses all of them together, each goes on by itself: the ordinary
way, with the answer it would have had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

from topics.core.auditchain import INTERNAL_TOPICS
from topics.core.commands import Append
from topics.core.records import Json, Records
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import TopicsError, Unauthorized
from topics.limits import KIB, TAIL_BATCH_RECORDS_MAX
from topics.model import Written
from topics.server.answers import bug, failure
from topics.server.auth import check_name, check_scope
from topics.server.context import Context
from topics.server.joblane import JobLane, JobTrack, dispatch_alone
from topics.server.managedkeys import Unverified
from topics.server.message import Dispatch, Reply, Request, Response
from topics.server.principal import EVERYBODY, NO_SCOPE, Principal
from topics.server.quota import Release
from topics.server.requesthead import RequestHead
from topics.server.route import Route
from topics.server.routes.queues import ack, claim
from topics.server.routes.records import write
from topics.server.table import Table
from topics.server.track import PLAIN_END, PLAIN_START, Track, Writer, around_length
from topics.server.traffic import RouteTraffic
from topics.server.written import Template, Timing
from topics.wire.plain import are_values

TOGETHER_MAX: Final = TAIL_BATCH_RECORDS_MAX
"""Writes that become one command. More are not cheaper, and a tail takes no more at once."""
ANSWER_BYTES_MAX: Final = 1 * KIB
"""More than the answer to a plain write takes: where so much is not compressed, no such answer is."""

PENDING: Final = Principal("", NO_SCOPE, owner="pending")
"""Whose a track is while nobody has compared the key in its head: it may do nothing."""

_JSON_TYPES: Final = frozenset({"application/json", "application/json; charset=utf-8"})
_BODY_AT: Final = b"\r\n\r\n"


class Lane:
    def __init__(self, context: Context, table: Table, dispatch: Dispatch, gzip_bytes_min: int) -> None:
        self._context = context
        self._table = table
        self._dispatch = dispatch
        self._gzips_answers = gzip_bytes_min < ANSWER_BYTES_MAX
        self._jobs = JobLane(context, dispatch, gzip_bytes_min)
        self._together_max = min(TOGETHER_MAX, context.record_limits.batch_records)
        self._traffic = context.traffic.of("POST", "/v0/topics/{topic}")
        self._tracks: WeakValueDictionary[tuple[bytes, bytes], Track] = WeakValueDictionary()
        """Alive as long as a connection uses them: their bytes may hold a key."""
        self._due: list[Track] = []
        self._received_ns = 0
        self._lone_id = 0
        """Names the connection that was alone in the last turn; 0 when there were several."""

    # ---- which requests

    def track_of(self, head_bytes: bytes, head: RequestHead) -> Track | None:
        """The track for requests with this head; None when they go the ordinary way."""
        if not self._is_simple(head):
            return None
        parts = around_length(head_bytes)
        if parts is None:
            return None
        track = self._tracks.get(parts)
        if track is None:
            try:
                route, params = self._table.find(head.method, head.path)
                if route.handler not in (write, claim, ack):
                    return None
                topic = params["topic"]
                principal = self._principal(route, head, topic)
            except Unverified:
                principal = PENDING
            except TopicsError:
                return None
            if route.handler is write:
                track = Track(parts, head, topic, principal, self._gather)
            else:
                most = self._context.settings.max_node_bytes
                track = JobTrack(parts, head, topic, principal, self._gather, route.handler is claim, most)
            self._tracks[parts] = track
        return track

    def _is_simple(self, head: RequestHead) -> bool:
        """Whether the answer to the request has no more in its head than all have."""
        headers = head.headers
        return (
            head.method == "POST"
            and not head.query
            and head.repeatable
            and head.version == "1.1"
            and not head.preflight
            and not head.gzip_body
            and not (head.gzip_answer and self._gzips_answers)
            and not head.answer_headers
            and not head.request_id
            and "idempotency-key" not in headers
            and headers.get("content-type") in _JSON_TYPES
        )

    def _principal(self, route: Route, head: RequestHead, topic: str) -> Principal:
        """Who asks with this head, and may write to the topic; raises what the dispatch would answer."""
        request = Request(head.method, head.path, head.query, head.headers, b"", 0)
        principal = self._context.authenticator.authenticate(request)
        if principal.session_id:
            raise Unauthorized("a session is looked at on each request")
        if principal is not EVERYBODY or topic in INTERNAL_TOPICS:
            check_scope(principal, route.scope)
            check_name(principal, topic)
        return principal

    def _may_still(self, track: Track) -> bool:
        """Whether a managed key still may do what it could when its track was laid, or may do it by now."""
        try:
            route, _ = self._table.find(track.head.method, track.head.path)
            track.principal = self._principal(route, track.head, track.topic)
        except TopicsError:
            return False
        return True

    # ---- a turn

    def _gather(self, track: Track) -> None:
        """The first write on a track in this turn. Who was alone the last time, too, waits for nobody."""
        due = self._due
        due.append(track)
        if len(due) == 1:
            self._received_ns = self._context.clock.ticks_ns()
            if id(track.writers[0]) == self._lone_id:
                self._run()
            else:
                asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """When several have come, more are on their way: the turn ends after another look at the sockets. One that is
        alone does not wait."""
        if len(self._due) > 1 or len(self._due[0].writers) > 1:
            self._lone_id = 0
            asyncio.get_running_loop().call_soon(self._run)
        else:
            self._lone_id = id(self._due[0].writers[0])
            self._run()

    def _run(self) -> None:
        due, self._due = self._due, []
        host = self._host()
        if host is None:
            for track in due:
                self._separate(track, *track.leave())
            return
        host.begin_turn()
        try:
            for track in due:
                if track.principal.owner and not self._may_still(track):
                    self._separate(track, *track.leave())
                    continue
                if isinstance(track, JobTrack):
                    self._jobs.run(host, track, self._received_ns)
                    continue
                writers, texts = track.leave()
                if host.engine.machine.topics.get(track.topic) is None:
                    self._separate(track, writers, texts)
                    continue
                for at in range(0, len(writers), self._together_max):
                    end = at + self._together_max
                    self._store(host.engine, track, writers[at:end], texts[at:end])
        finally:
            host.end_turn()

    def _host(self) -> Host | None:
        """The engine's host when nothing holds writes back."""
        context = self._context
        return None if context.draining or context.throttle.share < 1.0 else context.host

    def _store(self, engine: Engine, track: Track, writers: list[Writer], texts: list[bytes]) -> None:
        if not are_values(texts):
            writers, texts = self._take_out_invalid(track, writers, texts)
            if not writers:
                return
        context = self._context
        datas: list[Json] = list(texts)
        try:
            release = context.quota.enter(track.principal, len(writers))
        except TopicsError:
            self._separate(track, writers, texts)
            return
        try:
            records = Records.check(datas, limits=context.record_limits)
            submitted_ns = context.clock.ticks_ns()
            ticket = engine.submit(Append(track.topic, records))
        except TopicsError:
            # Perhaps it is one of them only. Nothing has changed, so each may try by itself, with the slots of all.
            release()
            self._separate(track, writers, texts)
            return
        except Exception as error:
            for writer, text in zip(writers, texts, strict=True):
                request, reply = _ordinary(track, writer, text, self._received_ns)
                reply(bug(context, request, error))
            return
        timing = Timing(self._received_ns, submitted_ns)
        _Stored(context, self._traffic, track, writers, texts, timing, release, ticket)

    def _take_out_invalid(
        self, track: Track, writers: list[Writer], texts: list[bytes]
    ) -> tuple[list[Writer], list[bytes]]:
        valid = [are_values([text]) for text in texts]
        pairs = list(zip(valid, writers, texts, strict=True))
        invalid = [(writer, text) for is_valid, writer, text in pairs if not is_valid]
        self._separate(track, [writer for writer, _ in invalid], [text for _, text in invalid])
        kept = [(writer, text) for is_valid, writer, text in pairs if is_valid]
        return [writer for writer, _ in kept], [text for _, text in kept]

    def _separate(self, track: Track, writers: Sequence[Writer], texts: Sequence[bytes]) -> None:
        for writer, text in zip(writers, texts, strict=True):
            dispatch_alone(self._dispatch, writer, *_ordinary(track, writer, text, self._received_ns))


class _Stored:
    """Writes that became one command, until its ticket is done."""

    def __init__(
        self,
        context: Context,
        traffic: RouteTraffic,
        track: Track,
        writers: Sequence[Writer],
        texts: Sequence[bytes],
        timing: Timing,
        release: Release,
        ticket: Ticket,
    ) -> None:
        self._context = context
        self._track = track
        self._writers = writers
        self._texts = texts
        self._timing = timing
        self._release = release
        self._traffic = traffic
        self._timed_count = traffic.arrived_together(len(writers))
        ticket.on_done(self._done)

    def _done(self, ticket: Ticket) -> None:
        # The slots are free before a client can know: its next request finds room.
        self._release()
        duration_ns = self._context.clock.ticks_ns() - self._timing.received_ns
        for _ in range(self._timed_count):
            self._traffic.answered(duration_ns)
        if ticket.error is not None:
            self._fail(ticket.error)
        else:
            self._answer(ticket)

    def _answer(self, ticket: Ticket) -> None:
        written = ticket.reply
        assert isinstance(written, Written)
        templates = Template(self._context, ticket, self._timing)
        template, seq_digits = b"", 0
        for number, seq in enumerate(written.seqs):
            text = b"%d" % seq
            if len(text) != seq_digits:
                seq_digits = len(text)
                template = templates.of(seq_digits)
            # Whoever resolves tickets, and everybody else here, must never be stopped by the making of one answer.
            try:
                if not self._writers[number].answer_plain(template, text):
                    body = (template % (b"", 0, text, text, text, text)).partition(_BODY_AT)[2]
                    self._ordinary(number)[1](Response(200, body))
            except Exception as error:
                request, reply = self._ordinary(number)
                reply(bug(self._context, request, error))

    def _fail(self, error: TopicsError) -> None:
        for number in range(len(self._writers)):
            request, reply = self._ordinary(number)
            reply(failure(self._context, request, error))

    def _ordinary(self, number: int) -> tuple[Request, Reply]:
        return _ordinary(self._track, self._writers[number], self._texts[number], self._timing.received_ns)


def _ordinary(track: Track, writer: Writer, text: bytes, received_ns: int) -> tuple[Request, Reply]:
    """A gathered request as one like any other."""
    body = text if isinstance(track, JobTrack) else PLAIN_START + text + PLAIN_END
    return writer.leave_track(track.head, body, received_ns)
