from __future__ import annotations

import email.utils

import pytest

from topics.server.heading import Heading


@pytest.mark.parametrize(
    ("now_ms", "date"),
    [
        (0, b"Thu, 01 Jan 1970 00:00:00 GMT"),
        (784_111_777_999, b"Sun, 06 Nov 1994 08:49:37 GMT"),
        (1_794_744_000_000, b"Sun, 15 Nov 2026 12:00:00 GMT"),
    ],
)
def test_the_date_is_in_the_one_form_that_http_wants(now_ms: int, date: bytes) -> None:
    heading = Heading(now_ms)
    assert heading.date_line == b"Date: %b\r\n" % date
    parsed = email.utils.parsedate_to_datetime(date.decode())
    assert int(parsed.timestamp()) == now_ms // 1000


def test_a_plain_success_has_it() -> None:
    heading = Heading(0)
    heading.set_time(1_000)
    assert heading.ok_json % (b"id", 2, b"{}") == (
        b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:01 GMT\r\nContent-Type: application/json\r\n"
        b"X-Request-Id: id\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert heading.ok_plain % (b"id", 3, 2, b"{}") == heading.ok_json % (b"id-3", 2, b"{}")
