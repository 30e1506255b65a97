"""Mutants of `topics/server/intake`: the order of pipelined requests, what connections may hold, their turns."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

_HTTP = "topics/server/http.py"
_ORDER = "topics/server/intake/order.py"
_SOCKET = "topics/server/ws.py"
_TESTS = "tests/server/intake/"

INTAKE = (
    Mutant(
        "pipelined-requests-overtake",
        "a request begins when those before it on its connection are answered",
        _HTTP,
        "        elif self._may_begin(exchange):\n",
        "        elif True:\n",
        (_TESTS + "test_order.py::test_diff_behind_the_delete_of_its_topic_does_not_find_it",),
    ),
    Mutant(
        "append-overtakes-an-undecided-one",
        "an append begins behind an append only when that has its place in the log",
        _ORDER,
        "request is not None and request.decided",
        "True",
        (_TESTS + "test_order.py::test_write_behind_one_that_waits_for_its_key_is_stored_behind_it",),
    ),
    Mutant(
        "requests-before-the-end-dropped",
        "requests before the client's end of sending are answered",
        _HTTP,
        "        if self._blocked and self._unread and not self._deaf:\n",
        "        if False:\n",
        (_TESTS + "test_order.py::test_requests_before_the_end_of_sending_are_all_answered",),
    ),
    Mutant(
        "body-taken-before-its-key",
        "a request without a key is refused before its body",
        "topics/server/intake/gate.py",
        "            most = self._check.admit(head, self.peer)\n",
        "            most = None\n",
        (_TESTS + "test_unfinished.py::test_request_without_a_key_is_refused_before_its_body",),
    ),
    Mutant(
        "message-taken-before-its-key",
        "a call over gRPC without a key is refused before its message",
        "topics/server/grpc/calls.py",
        "        return found.ordinary if lets_in else found.unread\n",
        "        return found.ordinary\n",
        ("tests/server/grpc/test_calls.py::test_call_without_a_good_key_is_refused_before_its_message",),
    ),
    Mutant(
        "unfinished-bodies-unbounded",
        "the bodies of all connections together are bounded",
        "topics/server/intake/held.py",
        "        if self.bytes + more_bytes > self.bytes_max:\n",
        "        if False:\n",
        (_TESTS + "test_unfinished.py::test_bodies_of_all_connections_together_are_bounded",),
    ),
    Mutant(
        "held-bytes-never-freed",
        "a connection that ends frees what it held",
        _HTTP,
        "        self._gate.release()\n",
        "",
        (_TESTS + "test_unfinished.py::test_connection_that_ends_frees_what_it_held",),
    ),
    Mutant(
        "turn-without-end",
        "a connection that has spent its turn waits",
        "topics/server/intake/turns.py",
        "        if self._spent_bytes >= TURN_BYTES:\n",
        "        if False:\n",
        (_TESTS + "test_turns.py::test_pipelined_requests_take_so_many_of_a_turn",),
    ),
    Mutant(
        "all-turns-at-once",
        "few of those who wait for their turn are resumed in one turn",
        "topics/server/intake/turns.py",
        "min(RESUMED_PER_TURN, len(self._line))",
        "len(self._line)",
        (_TESTS + "test_turns.py::test_few_of_the_line_are_resumed_in_each_turn",),
    ),
    Mutant(
        "socket-without-turns",
        "a WebSocket that has spent its turn waits",
        _SOCKET,
        "        self._budget.spend(len(piece) + FRAME_BYTES * len(frames))\n",
        "",
        (_TESTS + "test_sockets.py::test_tiny_fragments_take_so_many_of_a_turn",),
    ),
    Mutant(
        "fragments-unbounded",
        "a WebSocket message has a bound on its fragments",
        _SOCKET,
        "        if self._fragments > WS_FRAGMENTS_MAX:\n",
        "        if False:\n",
        (_TESTS + "test_sockets.py::test_message_of_too_many_fragments_is_refused",),
    ),
    Mutant(
        "socket-messages-not-counted",
        "unfinished WebSocket messages count with unfinished bodies",
        _SOCKET,
        "            self._share.set(unread_bytes + self._pieces_bytes + len(self._protocol.reader.buffer), True)\n",
        "            pass\n",
        (_TESTS + "test_sockets.py::test_unfinished_messages_of_all_connections_are_bounded_together",),
    ),
)
