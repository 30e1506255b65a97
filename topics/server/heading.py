"""The beginning of answers, as far as it is the same for a second: the `Date`, and all that plain successes share.

Whoever looks after the connections sets the time once a second. So a date costs a request nothing but its bytes, and
may be a second old.
"""

from __future__ import annotations

from email.utils import formatdate
from typing import Final

from topics.limits import SECOND_MS

_OK: Final = b"HTTP/1.1 200 OK\r\n"
_JSON: Final = b"Content-Type: application/json\r\nX-Request-Id: %b\r\nContent-Length: %d\r\n\r\n%b"
_PLAIN: Final = _JSON.replace(b"%b", b"%b-%d", 1)


class Heading:
    """One for a server; its time is the one that records are stamped with."""

    __slots__ = ("date_line", "ok_json", "ok_plain")

    def __init__(self, now_ms: int) -> None:
        self.set_time(now_ms)

    def set_time(self, now_ms: int) -> None:
        self.date_line = b"Date: %b\r\n" % formatdate(now_ms // SECOND_MS, usegmt=True).encode()
        self.ok_json = _OK + self.date_line + _JSON
        """A plain success: `% (request id, length of the body, body)`."""
        self.ok_plain = _OK + self.date_line + _PLAIN
        """The same to a request on a track: `% (connection's id, number, length of the body, body)`."""
