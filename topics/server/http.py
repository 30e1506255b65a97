"""HTTP/1.1 on a socket: bytes in, whole requests to the dispatch, answers out in the order of the requests.

How it works. A whole request becomes an `Exchange` at the end of `_pending`, and is dispatched. An answer may come at
any time, but only the front of `_pending` is ever written, so pipelined requests are answered in order, and each once.
They are carried out in order, too: a request that must not begin yet (`intake/order.py`) waits in `_waiting`.

Input is parsed in slices, and stops (`_blocked`) while a request waits, while `pipeline_max` exchanges are pending or
while the client leaves its answers unread. What the last slice brought beyond that stands in `_waiting` (parsed) and
`_unread` (not yet).

A connection that will take no more input is `_deaf`: after a `Connection: close`, a refusal, the client's own end of
sending, or while draining. When the last pending answer of a deaf connection is written, the connection ends. A
refusal is an answer like any other, behind those of the requests before it. The client may still be sending then, and
closing on it would destroy the answer before it is read. So we end our side only and throw away what still comes, until
the client ends its side too or has had its time.

What is large and compressed is inflated on a thread; the requests behind it wait so long, and are dispatched in order.

An answer that is a stream waits in `_openings` until it is at the front of `_pending`. What becomes of it there is in
`streamed.py`.
"""

from __future__ import annotations

import asyncio
import socket
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from topics.errors import InvalidRequest, Throttled, TopicsError
from topics.limits import KIB
from topics.server.connections import NEVER_NS, Connections
from topics.server.encoding import gunzip, gunzip_if_small
from topics.server.ending import EndingProtocol
from topics.server.exchange import CONTINUE, Exchange
from topics.server.httpoptions import HttpOptions
from topics.server.intake.gate import Gate
from topics.server.intake.headcheck import NO_CHECK, HeadCheck
from topics.server.intake.order import UNSAFE, Order, may_begin_behind
from topics.server.message import Dispatch, Refuse, Request, Response
from topics.server.requesthead import RequestHead
from topics.server.requestparser import Part, RequestParser
from topics.server.streaming import StreamResponse

# Looking a member up in its enum takes several times as long as comparing it.
NOTHING: Final = Part.NOTHING

SLICE_BYTES: Final = 16 * KIB
"""What is parsed before looking whether to go on."""
SMALL_SLICE_BYTES: Final = 4 * KIB
GATHERED_BYTES_MAX: Final = 64 * KIB
"""Answers that are gathered into one write."""

HELD_BYTES_MAX: Final = 64 * KIB
"""What is read ahead behind a request or a stream that the next request waits for."""

Opening = tuple[bytes, bool, StreamResponse]
"""The head of a stream, whether it is chunked, and what opens it."""


class HttpProtocol(EndingProtocol):
    def __init__(
        self,
        dispatch: Dispatch,
        refuse: Refuse,
        options: HttpOptions,
        connections: Connections,
        check: HeadCheck = NO_CHECK,
    ) -> None:
        super().__init__(options, connections)
        self._dispatch = dispatch
        self._order_of = check.order_of
        self._gate = Gate(check, connections.held, connections.turns, self._unblock_soon)
        self._refused = refuse
        self._clock = connections.clock
        self.heading = connections.heading
        self._parser = RequestParser(options, self)
        self._slice_bytes = min(SLICE_BYTES, options.header_bytes_max)
        self._last_head: RequestHead | None = None
        self._owes_continue = False
        """Whether the client waits for a word before it sends the body."""
        self._request_count = 0
        self.gzip_bytes_min = options.gzip_bytes_min
        self._unblocking = False
        self._inflating = False
        self._openings: dict[Exchange, Opening] = {}
        # Answers on their way.
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._gathering = False
        self._peer = ""
        self._client_ends = False
        """Whether the client's end of sending has come behind what is still unread."""

    # ---- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A transport of uvloop can all that one of asyncio can, and does not inherit from it.
        transport = self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._id = self._connections.add(self)
        if self._connections.draining:
            self._end()
            return
        transport.set_write_buffer_limits(high=self._options.write_buffer_high_bytes)
        peer = transport.get_extra_info("peername")
        self._peer = self._gate.peer = str(peer[0]) if isinstance(peer, tuple) else ""
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deaf = True
        abandoned = list(self._pending)
        self._pending.clear()
        self._waiting.clear()
        self._out.clear()
        self._unread = b""
        self._parser.close()
        self._last_head = None
        self._gate.release()
        self._connections.remove(self)
        for exchange in abandoned:
            exchange.abandon()

    def data_received(self, data: bytes) -> None:
        if self._deaf or self._blocked:
            self._hold(data)
        else:
            self._gathering = True
            at = self._parser.take_known(data)
            if at < len(data):
                self._parse(data[at:] if at else data)
            self._flush()
        if self._unread or self._waiting or self._parser.part is not NOTHING or self._gate.holds:
            self._account()

    def eof_received(self) -> bool:
        """The client sends no more, but still reads: what it asked for is answered before the end."""
        if self._blocked and self._unread and not self._deaf:
            # The server first carries out what came before the end.
            self._client_ends = True
        else:
            self._end_of_input()
        for exchange in list(self._pending):
            exchange.abandon()
        self._flush()
        return True

    def _end_of_input(self) -> None:
        if self.receiving and not self._deaf:
            self._refuse(InvalidRequest("the connection ended in the middle of a request", expected="a whole request"))
        self._deaf = True
        self._client_ended = True

    def pause_writing(self) -> None:
        self._write_paused = True
        self._await_client(self._options.write_timeout_s)
        self._block()

    def resume_writing(self) -> None:
        self._write_paused = False
        self._set_deadline()
        self._unblock_soon()

    # ---- input

    def _parse(self, data: bytes) -> None:
        parser, gate, size = self._parser, self._gate, self._slice_bytes
        try:
            at = 0 if self._blocked else parser.learn(data)
            view: bytes | memoryview = data if len(data) <= SMALL_SLICE_BYTES else memoryview(data)
            while at < len(data) and not self._blocked and not self._deaf:
                # Heads come in small slices: what a slice brings is begun, or waits, as a whole.
                end = at + (size if parser.body_left_bytes >= size else min(size, SMALL_SLICE_BYTES))
                parser.feed(view[at:end])
                if gate.take_bytes(end - at, parser.take_pieces()):
                    self._blocked = True
                at = end
                if parser.part is Part.BODY and at < len(data):
                    self._check_head()
            self._unread += data[at:]
            if parser.part is Part.BODY:
                self._check_head()
        except TopicsError as error:
            self._refuse(error)
        # Who is blocked has its deadline already.
        if self.receiving and not self._blocked:
            self._set_deadline()

    def _check_head(self) -> None:
        """Decide whether the rest of a body may come; raises the refusal."""
        head, gate = self._parser.head, self._gate
        if head is None or self._deaf:
            return
        if not gate.admit(head, self._verified):
            self._blocked = True
            return
        if gate.body_bytes_max is not None:
            self._parser.bound_body(gate.body_bytes_max)
        if self._owes_continue:
            self._owes_continue = False
            self._enqueue(Exchange.known(self, CONTINUE))

    def _verified(self, error: TopicsError | None) -> None:
        if error is not None and not self._transport.is_closing():
            self._unread = b""
            self._refuse(error)

    def _account(self) -> None:
        """Count what is held for this connection, and refuse its request when that is too much."""
        waiting_bytes = sum(len(each.request.body) for each in self._waiting if each.request is not None)
        held_bytes = waiting_bytes + len(self._unread) + self._parser.held_bytes
        try:
            self._gate.hold(held_bytes, self._parser.head or self._last_head)
        except Throttled as error:
            self._unread = b""
            self._gate.hold(waiting_bytes, None)
            self._refuse(error)

    def put_back(self, data: bytes) -> None:
        self._unread += data

    def _hold(self, data: bytes) -> None:
        """Keep for later what is not taken now, up to a bound, unless nothing is taken any more."""
        if not self._deaf:
            self._unread += data
            if len(self._unread) > HELD_BYTES_MAX:
                self._transport.pause_reading()

    def began(self, part: Part) -> None:
        self._part_since_ns = self._connections.now_ns

    def may_take(self) -> bool:
        return not self._blocked and not self._deaf

    def take(self, head: RequestHead, body: bytes) -> None:
        if self._deaf:
            return
        self._last_head = head
        self._owes_continue = False
        self._request_count += 1
        request_id = head.request_id or f"{self._id}-{self._request_count}"
        received_ns = self._clock.ticks_ns()
        request = Request(head.method, head.path, head.query, head.headers, body, received_ns, request_id, self._peer)
        if not head.keep_alive:
            self._deaf = True
            self._lingers = True
        self._enqueue(Exchange(self, head, request))

    def learned(self, head_bytes: bytes, head: RequestHead) -> None:
        """Nothing is made of it here."""

    def send_continue(self) -> None:
        self._owes_continue = True

    # ---- requests and answers

    def _enqueue(self, exchange: Exchange) -> None:
        if self._blocked:
            self._waiting.append(exchange)
        elif self._may_begin(exchange):
            self._begin(exchange)
        else:
            # Reading continues up to a bound, so that the server sees the client go.
            self._waiting.append(exchange)
            self._blocked = True

    def _may_begin(self, exchange: Exchange) -> bool:
        """Whether what came before allows it, see `intake/order.py`. All that is not answered yet has one order, or it
        would not have begun, so the last of it decides."""
        if not self._pending or exchange.head is None:
            return True
        for earlier in reversed(self._pending):
            if earlier.answer is None:
                return may_begin_behind(self._order(earlier), earlier.request, self._order(exchange))
        return True

    def _order(self, exchange: Exchange) -> Order:
        head = exchange.head
        if head is None:
            return UNSAFE
        order = head.order
        if order is None:
            order = head.order = self._order_of(head.method, head.path)
        return order

    def _begin(self, exchange: Exchange) -> None:
        pending = self._pending
        pending.append(exchange)
        head, request = exchange.head, exchange.request
        if head is None or request is None:
            self.answered(exchange)
            return
        self.deadline_ns = NEVER_NS
        if head.preflight:
            exchange(Response(204, headers=self._options.cors.preflight_headers(head.headers)))
        elif not head.gzip_body:
            self._dispatch(request, exchange)
        else:
            self._inflate(request, exchange)
        if self._gate.take_request():
            self._blocked = True
        if len(pending) >= self._options.pipeline_max:
            self._block()

    def _inflate(self, request: Request, exchange: Exchange) -> None:
        gate, head = self._gate, exchange.head
        assert head is not None
        try:
            if not gate.admit(head, partial(self._verified_compressed, request, exchange)):
                return
            most = gate.body_bytes_max or self._options.body_bytes_max
            body = gunzip_if_small(request.body, most)
        except TopicsError as error:
            exchange(self._refused(request, error))
            return
        if body is None:
            self._inflating = True
            self._block()
            self.aside(partial(gunzip, request.body, most), partial(self._inflated, request, exchange))
        else:
            request.body = body
            self._dispatch(request, exchange)

    def _verified_compressed(self, request: Request, exchange: Exchange, error: TopicsError | None) -> None:
        if exchange not in self._pending:
            return
        if error is not None:
            exchange(self._refused(request, error))
        else:
            self._inflate(request, exchange)

    def _inflated(self, request: Request, exchange: Exchange, done: asyncio.Future[bytes]) -> None:
        self._inflating = False
        try:
            request.body = done.result()
        except TopicsError as error:
            exchange(self._refused(request, error))
        else:
            # Of somebody who is gone no request is begun.
            if exchange in self._pending:
                self._dispatch(request, exchange)
        self._unblock_soon()

    def aside(self, work: Callable[[], bytes], done: Callable[[asyncio.Future[bytes]], None]) -> None:
        self._loop.run_in_executor(None, work).add_done_callback(done)

    def _refuse(self, error: TopicsError) -> None:
        """The last answer of the connection, to what cannot be taken as a request."""
        self._deaf = True
        self._lingers = True
        head = self._parser.head
        self._parser.close()
        self._request_count += 1
        request_id = f"{self._id}-{self._request_count}"
        method, path = ("", "") if head is None else (head.method, head.path)
        request = Request(method, path, "", {}, b"", self._clock.ticks_ns(), request_id)
        self._enqueue(Exchange.refusal(self, self._refused(request, error), request_id))

    def answered(self, exchange: Exchange) -> None:
        pending = self._pending
        if not pending or pending[0] is not exchange:
            return
        while pending and (answer := pending[0].answer) is not None:
            pending.popleft()
            self._out.append(answer)
            self._out_bytes += len(answer)
        if pending and self._openings:
            self._open_stream()
        if self._gathering:
            if self._out_bytes > GATHERED_BYTES_MAX:
                self._write()
        elif pending:
            # The answers behind this one may well come in the same turn of the loop.
            self._gathering = True
            self._loop.call_soon(self._flush)
        else:
            self._flush()

    def closes_after(self, exchange: Exchange) -> bool:
        if not (self._deaf or self._connections.draining):
            return False
        if self._waiting or self.receiving or (self._pending and self._pending[-1] is not exchange):
            return False
        self._deaf = True
        return True

    @abstractmethod
    def begin_stream(self, exchange: Exchange, head: bytes, chunked: bool, response: StreamResponse) -> None: ...

    @abstractmethod
    def _open_stream(self) -> None:
        """Open the stream at the front, if there is one."""

    # ---- output

    def _write(self) -> None:
        out = self._out
        if out:
            joined = out[0] if len(out) == 1 else b"".join(out)
            out.clear()
            self._out_bytes = 0
            self._transport.write(joined)

    def _flush(self) -> None:
        self._gathering = False
        self._write()
        if self._blocked:
            self._unblock_soon()
        if self._pending or self._waiting:
            return
        if self._deaf or (self._connections.draining and not self.receiving):
            self._end()
        else:
            self._set_deadline()

    # ---- back-pressure

    def _block(self) -> None:
        if not self._blocked and not self._transport.is_closing():
            self._blocked = True
            self._transport.pause_reading()

    def _unblock_soon(self) -> None:
        if not self._unblocking and self._may_unblock():
            self._unblocking = True
            self._loop.call_soon(self._unblock)

    def _may_unblock(self) -> bool:
        return (
            not self._write_paused
            and not self._inflating
            and not self._gate.is_closed
            and len(self._pending) < self._options.pipeline_max
            and not (self._waiting and not self._may_begin(self._waiting[0]))
        )

    def _unblock(self) -> None:
        self._unblocking = False
        if self._transport.is_closing() or not self._blocked or not self._may_unblock():
            return
        self._blocked = False
        self._gathering = True
        self._part_since_ns = self._connections.now_ns
        while self._waiting and not self._blocked:
            if self._may_begin(self._waiting[0]):
                self._begin(self._waiting.popleft())
            else:
                self._blocked = True
        if not self._blocked and not self._deaf and self._parser.part is Part.BODY:
            try:
                self._check_head()
            except TopicsError as error:
                self._refuse(error)
        if self._unread and not self._blocked:
            data, self._unread = self._unread, b""
            if not self._deaf:
                self._parse(data)
        self._account()
        if not self._blocked:
            self._transport.resume_reading()
            if self._client_ends:
                self._client_ends = False
                self._end_of_input()
        self._flush()
