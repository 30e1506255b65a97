"""Streams of requests for tests that search at random: valid ones, mutated ones, and bytes that only look like some."""

from __future__ import annotations

import gzip
from typing import NamedTuple

from hypothesis import strategies as st

from tests.server.httprig import chunked, get, post


class Sent(NamedTuple):
    """A valid request, and the path and body that it must arrive with."""

    message: bytes
    path: str
    body: bytes


def _sent(path: str, pieces: list[bytes], form: str, header: str) -> Sent:
    body = b"".join(pieces)
    forms = {
        "get": (get(path, header), b""),
        "head": (get(path, header).replace(b"GET", b"HEAD", 1), b""),
        "length": (post(body, header, path=path), body),
        "chunked": (
            chunked(*(piece for piece in pieces if piece)).replace(b"POST /", b"POST " + path.encode(), 1),
            body,
        ),
        "gzip": (post(gzip.compress(body, mtime=0), "Content-Encoding: gzip", header, path=path), body),
        "offer": (post(body, "Connection: upgrade", "Upgrade: h2c", header, path=path), body),
        "blank line": (b"\r\n" + post(body, header, path=path), body),
        "bare": (f"GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".encode(), b""),
    }
    return Sent(forms[form][0], path, forms[form][1])


FORMS = ("get", "head", "length", "chunked", "gzip", "offer", "blank line", "bare")
paths = st.sampled_from(["/", "/a", "/v0/topics/jobs"])
bodies = st.lists(st.binary(max_size=20) | st.sampled_from([b"\r\n\r\n", b"GET / HTTP/1.1\r\n"]), max_size=3)
headers = st.sampled_from(["X-A: b", "X-A:", "Accept-Encoding: gzip", "Accept: */*"])
requests = st.builds(_sent, paths, bodies, st.sampled_from(FORMS), headers)
runs = st.builds(lambda sent, count: [sent] * count, requests, st.integers(1, 4))
streams = st.lists(runs, min_size=1, max_size=4).map(lambda found: [sent for run in found for sent in run])
"""Requests often stand several times in a row, as a client's do."""

_words = st.sampled_from(
    [
        *(b"\r\n", b"\r", b"\n", b"\r\n\r\n", b" ", b":", b"\0", b"\xff", b"%", b"0", b"5", b"-1"),
        *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n"),
        *(
            b"Connection: close\r\n",
            b"Upgrade: h2c\r\n",
            b"Host: a\r\n",
            b"GET ",
            b"CONNECT ",
            b"HTTP/1.1",
            b"HTTP/1.0",
        ),
        *(b"ffffffffffffffff\r\n", b"3\r\nabc\r\n0\r\n\r\n"),
    ]
)
noise = st.lists(_words | st.binary(max_size=8), max_size=30).map(b"".join)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = b"".join(sent.message for sent in draw(streams))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 6)))
        data = data[:at] + draw(_words | st.binary(max_size=4) | st.just(data[at:end] * 2)) + data[end:]
    return data


@st.composite
def cuts(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The same bytes in pieces."""
    at = sorted(draw(st.sets(st.integers(0, len(data)), max_size=12)))
    return [data[begin:end] for begin, end in zip([0, *at], [*at, len(data)], strict=True) if begin < end]
