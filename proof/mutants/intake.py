"""Mutants of `topics/server/intake`: the order of pipelined requests, what connections may hold, their turns."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

_HTTP = "topics/server/http.py"
_ORDER = "topics/server/intake/order.py"
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
)
