"""Calls of clients over the network, and what each client knows of them afterwards.

A request may be held up, cut on its way, carried out and its answer cut, or come twice. The caller gives up when its
time is over. Whatever happens, the call ends in the history as its client sees it: answered, refused, or unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from topics.testing.checkers.events import Call, Fault, Heard, History, Outcome
from topics.testing.sim.http import ResponseReader, request_bytes
from topics.testing.sim.network import Link, Network
from topics.testing.sim.timeline import Timeline

TIMEOUT_MS = 4000
LATE_MS = 3000
NOT_DONE_CODES = frozenset({"not_ready", "shutting_down", "not_found"})
"""Of answers 5xx: those to requests that were not even begun."""

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    verb: str
    place: str
    method: str
    path: str
    body: object = None
    """Sent as JSON; bytes go as they are."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[Fields], Fields] = lambda fields: {}
    """What of the answer goes into the history."""
    timeout_ms: int = TIMEOUT_MS
    may_repeat: bool = True
    """Whether the network may bring it twice."""
    headers: Mapping[str, str] = field(default_factory=dict)
    decode: Callable[[ResponseReader], Fields] = ResponseReader.fields
    """The fields of an answer that went well."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the client knows. `fields` are the answer, or of a refusal its code and detail."""

    outcome: Outcome
    fields: Fields = field(default_factory=dict)
    body: bytes = b""

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def code(self) -> str:
        error = self.fields.get("error")
        return str(error.get("reason") or error.get("code")) if isinstance(error, dict) else ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that is under way."""

    client: str
    verb: str
    place: str
    asked: Mapping[str, Any]
    sent: int
    sent_ms: int
    wall_ms: int


class Notebook:
    """The history, as it is written."""

    def __init__(self, timeline: Timeline) -> None:
        self.history = History()
        self.counts: Counter[str] = Counter()
        """Operations by kind."""
        self.faults: Counter[str] = Counter()
        """What went wrong, by kind."""
        self.problems: list[str] = []
        """Answers that no client should ever get."""
        self._timeline = timeline
        self._moment = 0
        self._latest_ms = 0

    def go_on(self, history: History) -> None:
        """Write into a history that is there already."""
        self.history = history
        self._moment = max([0, *(call.done or call.sent for call in history.calls)])

    def moment(self) -> int:
        self._moment += 1
        return self._moment

    @property
    def now_ms(self) -> int:
        return self._timeline.now_ns // 1_000_000

    @property
    def wall_ms(self) -> int:
        return self._timeline.clock.now_ms()

    @property
    def latest_ms(self) -> int:
        """The latest time that the clock on the wall has ever shown."""
        self._latest_ms = max(self._latest_ms, self.wall_ms)
        return self._latest_ms

    def jump(self, ms: int) -> None:
        """Set the clock on the wall to another time."""
        self._latest_ms = self.latest_ms
        self.history.jumps.append(self.moment())
        self._timeline.clock.jump(ms)

    def died(self, power: bool, window_ms: int, stopped: bool, sick_from: int | None) -> None:
        self.history.faults.append(Fault(self.moment(), self.now_ms, power, window_ms, stopped, sick_from))

    def note(self, call: Asked, outcome: Outcome, answer: Fields, copies: int = 1) -> None:
        """What became of a call, as its client knows it at this moment."""
        self.history.calls.append(
            Call(
                verb=call.verb,
                place=call.place,
                asked=call.asked,
                sent=call.sent,
                done=None if outcome is Outcome.UNKNOWN else self.moment(),
                outcome=outcome,
                answer=answer,
                copies=copies,
                sent_ms=call.sent_ms,
                done_ms=self.now_ms,
                client=call.client,
                wall_ms=call.wall_ms,
                latest_ms=self.latest_ms,
            )
        )

    def ask(self, client: str, verb: str, place: str, asked: Mapping[str, Any]) -> Asked:
        """A call begins."""
        self.counts[verb] += 1
        return Asked(client, verb, place, asked, self.moment(), self.now_ms, self.wall_ms)

    def heard(self, event: Heard) -> None:
        self.counts["heard"] += 1
        self.history.heard.append(event)


class Caller:
    """Performs requests, one connection each."""

    def __init__(self, network: Network, notes: Notebook) -> None:
        self.network = network
        self.notes = notes
        self.under_way: list[_Attempt] = []

    def perform(self, client: str, request: Request, resume: Callable[[Reply], None]) -> None:
        attempt = _Attempt(self, client, request, resume)
        self.under_way.append(attempt)
        attempt.begin()

    def give_up(self) -> None:
        """The end: whoever still waits knows nothing."""
        for attempt in list(self.under_way):
            attempt.finish(Outcome.UNKNOWN)


class _Attempt:
    def __init__(self, caller: Caller, client: str, request: Request, resume: Callable[[Reply], None]) -> None:
        self._caller = caller
        self._request = request
        self._resume = resume
        self._reader = ResponseReader()
        self._link: Link | None = None
        self._copies = 1
        self._is_over = False
        self._asked = caller.notes.ask(client, request.verb, request.place, request.asked)

    def begin(self) -> None:
        request, network = self._request, self._caller.network
        chance, weather = network.chance, network.weather
        data = request_bytes(request.method, request.path, request.body, request.headers)
        self._link = network.connect(self._receive)
        if self._link is None:
            network.timeline.after(1 + chance.random() * 20, lambda: self.finish(Outcome.REFUSED))
            return
        delay_ms = 0.0
        if chance.random() < weather.late:
            self._caller.notes.faults["late request"] += 1
            delay_ms = chance.random() * LATE_MS
        if chance.random() < weather.cut:
            self._break(self._link, data, delay_ms)
        else:
            self._link.send(data, delay_ms)
        if request.may_repeat and chance.random() < weather.twice:
            self._copies = 2
            self._caller.notes.faults["repeated request"] += 1
            network.timeline.after(chance.random() * LATE_MS, lambda: self._again(data))
        network.timeline.after(request.timeout_ms, lambda: self.finish(Outcome.UNKNOWN))

    def _break(self, link: Link, data: bytes, delay_ms: float) -> None:
        """Cut it somewhere: in the request, behind it, or in the answer."""
        chance, timeline = self._caller.network.chance, self._caller.network.timeline
        self._caller.notes.faults["cut connection"] += 1
        where = chance.randrange(3)
        if where == 0:
            link.send(data[: chance.randrange(len(data))], delay_ms)
            timeline.after(delay_ms + 5, link.cut)
        elif where == 1:
            link.send(data, delay_ms)
            timeline.after(delay_ms + chance.random() * 6, link.cut)
        else:
            link.cut_after = chance.randrange(400)
            link.send(data, delay_ms)

    def _again(self, data: bytes) -> None:
        """The same bytes come once more; nobody reads the answer."""
        link = self._caller.network.connect(lambda _: None)
        if link is not None:
            link.send(data)
            self._caller.network.timeline.after(200, link.cut)

    def _receive(self, data: bytes | None) -> None:
        if self._is_over:
            return
        if data is None:
            self.finish(Outcome.UNKNOWN)
            return
        self._reader.feed(data)
        if self._reader.is_whole:
            self._answered()

    def _answered(self) -> None:
        reader, notes = self._reader, self._caller.notes
        if reader.status < 300:
            self.finish(Outcome.OK)
            return
        reply = Reply(Outcome.REFUSED, reader.fields())
        code = reply.code
        unsure = reader.status >= 500 and code not in NOT_DONE_CODES
        if reader.status == 500:
            notes.problems.append(f"{self._request.method} {self._request.path} was answered {reply.fields}")
        notes.counts[f"refused: {code}"] += 1
        self.finish(Outcome.UNKNOWN if unsure or self._copies > 1 else Outcome.REFUSED)

    def finish(self, outcome: Outcome) -> None:
        if self._is_over:
            return
        self._is_over = True
        caller, request = self._caller, self._request
        caller.under_way.remove(self)
        if self._link is not None:
            self._link.cut()
        reply = self._reply(outcome)
        answer = request.read(reply.fields) if reply.ok else {}
        caller.notes.note(self._asked, outcome, answer, self._copies)
        caller.network.timeline.after(0, lambda: self._resume(reply))

    def _reply(self, outcome: Outcome) -> Reply:
        reader = self._reader
        if not reader.is_whole:
            return Reply(outcome)
        decode = self._request.decode if outcome is Outcome.OK else ResponseReader.fields
        return Reply(outcome, decode(reader), bytes(reader.body))
