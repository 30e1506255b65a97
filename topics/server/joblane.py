"""Claims and acks of all connections that came in one turn of the loop: one command for each, one pass and one fact.

Workers send the same two requests all day. What a claim asks for is mostly the same bytes each time, so it is decoded
once; of an ack the seqs are. Those of one track that came in one turn become one command, and each has its own answer.

Nothing else may change for whoever asks. A claim goes on together with others only when it can be served at once: there
is a job for each, nobody is before them in line, and no window in which others may join. An ack with results does not.
What is not valid, and all of them when the engine refuses them together, goes on by itself in the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from topics.core.claim import check_claimer
from topics.core.commands import Ack, Acks, Claimer
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.limits import KIB
from topics.model import ClaimedJobs
from topics.server.answers import bug, failure
from topics.server.context import Context
from topics.server.jobanswer import acked_texts, claimed_texts
from topics.server.message import Dispatch, Reply, Request, Response
from topics.server.principal import Principal
from topics.server.quota import Release
from topics.server.requesthead import RequestHead
from topics.server.track import Track, Writer
from topics.wire.queue import decode_claim, decode_plain_ack

BODY_BYTES_MAX: Final = 64 * KIB
"""An ack of a thousand jobs, with their lease ids, is shorter."""
CLAIMS_KNOWN_MAX: Final = 1024
"""Bodies of claims that a track remembers the meaning of: one a worker."""

NEVER_GZIP_BYTES: Final = 1 << 62

_CLAIM_PATH: Final = "/v0/topics/{topic}/claim"
_ACK_PATH: Final = "/v0/topics/{topic}/ack"


class JobTrack(Track):
    """Claims, or acks, of one queue: requests with the same head and any body."""

    def __init__(
        self,
        parts: tuple[bytes, bytes],
        head: RequestHead,
        topic: str,
        principal: Principal,
        due: Callable[[Any], None],
        claims: bool,
        node_bytes_max: int,
    ) -> None:
        super().__init__(parts, head, topic, principal, due, start=b"", end=b"", body_bytes=(1, BODY_BYTES_MAX))
        self.claims = claims
        self._node_bytes_max = node_bytes_max
        self._known: dict[bytes, _Claim] = {}

    def claim_of(self, body: bytes) -> _Claim:
        """What a body asks for; raises when it is not valid."""
        known = self._known.get(body)
        if known is None:
            found = decode_claim(body)
            claimer = Claimer(found.node, found.max, found.lease_ms)
            check_claimer(claimer, self._node_bytes_max)
            known = _Claim(claimer, found.partition, bool(found.wait_ms))
            if len(self._known) >= CLAIMS_KNOWN_MAX:
                self._known.clear()
            self._known[body] = known
        return known


class _Claim(NamedTuple):
    claimer: Claimer
    partition: int
    waits: bool


class JobLane:
    def __init__(self, context: Context, dispatch: Dispatch, gzip_bytes_min: int) -> None:
        self._context = context
        self._dispatch = dispatch
        self._gzip_bytes_min = gzip_bytes_min

    def run(self, host: Host, track: JobTrack, received_ns: int) -> None:
        """Let all that a track took be decided."""
        gzip_bytes_min = self._gzip_bytes_min if track.head.gzip_answer else NEVER_GZIP_BYTES
        group = _Group(self._context, host, track, self._dispatch, gzip_bytes_min, received_ns)
        if track.claims:
            _claim(group)
        else:
            _ack(group)


class _Group:
    """Requests of one track in one turn."""

    def __init__(
        self,
        context: Context,
        host: Host,
        track: JobTrack,
        dispatch: Dispatch,
        gzip_bytes_min: int,
        received_ns: int,
    ) -> None:
        self.context = context
        self.host = host
        self.track = track
        self.received_ns = received_ns
        self.writers, self.bodies = track.leave()
        self._dispatch = dispatch
        self._gzip_bytes_min = gzip_bytes_min

    def separate(self, numbers: Sequence[int]) -> None:
        """These go on by themselves."""
        for number in numbers:
            dispatch_alone(self._dispatch, self.writers[number], *self._ordinary(number))

    def _ordinary(self, number: int) -> tuple[Request, Reply]:
        return self.writers[number].leave_track(self.track.head, self.bodies[number], self.received_ns)

    def decide(self, numbers: Sequence[int], decide: Callable[[], Ticket | None], texts: Texts, path: str) -> None:
        """Submit these as one command, and answer each when it is done."""
        try:
            release = self.context.quota.enter(self.track.principal, len(numbers))
        except TopicsError:
            self.separate(numbers)
            return
        ticket = None
        try:
            ticket = decide()
        except TopicsError:
            pass  # Perhaps it is one of them only. Nothing has changed, so each may try by itself.
        except Exception as error:
            self._tell_bug(numbers, error)
            return
        if ticket is None:
            release()
            self.separate(numbers)
            return
        ticket.on_done(lambda ticket: self._done(ticket, numbers, release, texts, path))

    def _done(self, ticket: Ticket, numbers: Sequence[int], release: Release, texts: Texts, path: str) -> None:
        # The slots are free before a client can know: its next request finds room.
        release()
        context = self.context
        traffic = context.traffic.of("POST", path)
        timed_count = traffic.arrived_together(len(numbers))
        if timed_count:
            duration_ns = context.clock.ticks_ns() - self.received_ns
            for _ in range(timed_count):
                traffic.answered(duration_ns)
        # Whoever resolves tickets, and everybody else here, must never be stopped by the making of one answer.
        try:
            if ticket.error is not None:
                for number in numbers:
                    request, reply = self._ordinary(number)
                    reply(failure(context, request, ticket.error))
                return
            bodies = texts(ticket)
        except Exception as error:
            self._tell_bug(numbers, error)
            return
        ok_plain = context.heading.ok_plain
        for number, body in zip(numbers, bodies, strict=True):
            try:
                if len(body) >= self._gzip_bytes_min or not self.writers[number].answer_body(ok_plain, body):
                    self._ordinary(number)[1](Response(200, body))
            except Exception as error:
                self._tell_bug([number], error)

    def _tell_bug(self, numbers: Sequence[int], error: Exception) -> None:
        for number in numbers:
            request, reply = self._ordinary(number)
            reply(bug(self.context, request, error))


def dispatch_alone(dispatch: Dispatch, writer: Writer, request: Request, reply: Reply) -> None:
    """Let a request that was on a track be answered like any other. Its client may have gone before it was one."""
    dispatch(request, reply)
    if request.on_gone is not None and writer.is_lost:
        request.on_gone()


Texts = Callable[[Ticket], list[bytes]]
"""The bodies of the answers to all that were decided together."""


def _claim(group: _Group) -> None:
    together: dict[int, list[int]] = {}
    wanted: list[_Claim | None] = []
    for number, body in enumerate(group.bodies):
        try:
            found = group.track.claim_of(body)
        except TopicsError:
            wanted.append(None)
            group.separate([number])
        else:
            wanted.append(found)
            together.setdefault(found.partition, []).append(number)
    for partition, numbers in together.items():
        _claim_part(group, partition, numbers, [claim for claim in map(wanted.__getitem__, numbers) if claim])


def _claim_part(group: _Group, partition: int, numbers: list[int], wanted: list[_Claim]) -> None:
    host, topic = group.host, group.track.topic
    claimers = tuple(claim.claimer for claim in wanted)
    may_wait = any(claim.waits for claim in wanted)

    def texts(ticket: Ticket) -> list[bytes]:
        assert isinstance(ticket.reply, tuple)
        answers: list[ClaimedJobs] = list(ticket.reply)
        for place, number in enumerate(numbers):
            if group.writers[number].is_lost:
                answers[place] = host.engine.claiming.give_back(answers[place])
        return claimed_texts(group.context, host, answers, group.received_ns)

    def decide() -> Ticket | None:
        if host.fresh(topic) is not None:
            # Each waits by itself.
            return None
        host.engine.check_claims()
        return host.engine.claiming.claim_together(topic, claimers, partition, may_wait)

    group.decide(numbers, decide, texts, _CLAIM_PATH)


def _ack(group: _Group) -> None:
    together: dict[int, list[int]] = {}
    acks: list[Ack | None] = []
    topic = group.track.topic
    for number, body in enumerate(group.bodies):
        found = decode_plain_ack(body)
        if found is None:
            acks.append(None)
            group.separate([number])
        else:
            acks.append(Ack(topic, found.node, found.seqs, found.lease_ids, found.partition))
            together.setdefault(found.partition, []).append(number)
    for partition, numbers in together.items():
        _ack_part(group, partition, numbers, [ack for ack in map(acks.__getitem__, numbers) if ack])


def _ack_part(group: _Group, partition: int, numbers: list[int], acks: list[Ack]) -> None:
    host, topic = group.host, group.track.topic

    def texts(ticket: Ticket) -> list[bytes]:
        assert isinstance(ticket.reply, tuple)
        return acked_texts(group.context, host, ticket.reply, ticket, group.received_ns)

    group.decide(numbers, lambda: host.decide(Acks(topic, acks, partition)), texts, _ACK_PATH)
