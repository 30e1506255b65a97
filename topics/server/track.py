"""Requests that begin alike: the head of a plain write, a claim or an ack, whatever length it says its body has.

A client writes to a topic with the same bytes each time, but for the number in Content-Length and what it stands for.
So the whole beginning of a plain write follows from how long the request is, and comparing it is all the parsing there
is: the head, and the body up to where the data begins.

A plain write is one record with nothing but data, written without spaces, which is what most encoders make. Of a claim
or an ack only the head is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Protocol

from topics.limits import KIB
from topics.server.message import Reply, Request
from topics.server.principal import Principal
from topics.server.requesthead import RequestHead

PLAIN_START: Final = b'{"records":[{"data":'
PLAIN_END: Final = b"}]}"
PLAIN_BYTES_MIN: Final = len(PLAIN_START) + len("0") + len(PLAIN_END)
PLAIN_BYTES_MAX: Final = 4 * KIB
"""Of a body. Gathering pays for small writes; large ones are as fast on their own."""
STARTS_MAX: Final = 256
"""Lengths whose beginning a track remembers."""

_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([1-9][0-9]*)\r\n")
_NEVER: Final = b"\r"
"""No request that is taken begins with this."""


class Writer(Protocol):
    """A connection whose request is on a track, and has not been answered."""

    def answer_plain(self, template: bytes, seq: bytes) -> bool:
        """Answer with the template, which has room for the request's id and number and four times for the seq. False
        when it takes more than that: a connection that ends, or whose answers have to wait for each other."""

    def answer_body(self, ok_plain: bytes, body: bytes) -> bool:
        """Answer with a body of its own behind a head that has room for the request's id and number and the body's
        length. False as above."""

    @property
    def is_lost(self) -> bool:
        """Whether the client is gone, or has ended its side: it may not read the answer."""

    def leave_track(self, head: RequestHead, body: bytes, received_ns: int) -> tuple[Request, Reply]:
        """The same request in its ordinary form, to be answered like any other."""


class Track:
    """Requests of one turn of the loop about one topic, from all connections that send the same head.

    Those whose body begins with `start` and ends with `end`, and has so many bytes.
    """

    def __init__(
        self,
        parts: tuple[bytes, bytes],
        head: RequestHead,
        topic: str,
        principal: Principal,
        due: Callable[[Any], None],
        *,
        start: bytes = PLAIN_START,
        end: bytes = PLAIN_END,
        body_bytes: tuple[int, int] = (PLAIN_BYTES_MIN, PLAIN_BYTES_MAX),
    ) -> None:
        self.head = head
        """Of one such request. Of the others only the length is another."""
        self.topic = topic
        self.principal = principal
        self.starts = _Starts(parts, start, body_bytes)
        self.end = end
        self.writers: list[Writer] = []
        """Whose writes were taken and have not left."""
        self._due = due
        self._requests: list[bytes] = []

    def take(self, writer: Writer, request: bytes) -> None:
        """A whole request that begins with `starts[len(request)]` and ends with `end`."""
        self.writers.append(writer)
        self._requests.append(request)
        if len(self.writers) == 1:
            self._due(self)

    def leave(self) -> tuple[list[Writer], list[bytes]]:
        """All that was taken: who asks, and the body of each without its start and end, as text that nobody has looked
        at yet."""
        writers, self.writers = self.writers, []
        requests, self._requests = self._requests, []
        starts, end_bytes = self.starts, len(self.end)
        return writers, [request[len(starts[len(request)]) : len(request) - end_bytes] for request in requests]


class _Starts(dict[int, bytes]):
    """How a request of so many bytes begins; for a length that none has, something that no request begins with."""

    def __init__(self, parts: tuple[bytes, bytes], start: bytes, body_bytes: tuple[int, int]) -> None:
        self._before, self._after = parts
        self._start_of_body = start
        self._bytes_min, self._bytes_max = body_bytes

    def __missing__(self, request_bytes: int) -> bytes:
        start = self._start(request_bytes)
        if len(self) >= STARTS_MAX:
            self.clear()
        self[request_bytes] = start
        return start

    def _start(self, request_bytes: int) -> bytes:
        room_bytes = request_bytes - len(self._before) - len(self._after)
        # The number takes some of the room that is left for it and the body, and the less of it the smaller it is.
        for digits in (len(str(room_bytes)), len(str(room_bytes)) - 1):
            body_bytes = room_bytes - digits
            if len(str(body_bytes)) == digits and self._bytes_min <= body_bytes <= self._bytes_max:
                return b"%b%d%b%b" % (self._before, body_bytes, self._after, self._start_of_body)
        return _NEVER


def around_length(head: bytes) -> tuple[bytes, bytes] | None:
    """What stands before and behind the number in Content-Length; None unless it is there once, as most write it."""
    found = list(_LENGTH.finditer(head))
    return (head[: found[0].start(1)], head[found[0].end(1) :]) if len(found) == 1 else None


TrackOf = Callable[[bytes, RequestHead], Track | None]
"""Says whether requests that begin with a head go on a track, and on which."""


def no_track(head_bytes: bytes, head: RequestHead) -> None:
    """Every request goes the ordinary way."""
