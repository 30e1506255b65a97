"""Messages that two readers could take for two different ones: refused, and nothing behind them is ever looked at."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import urlsplit

from tests.client.rig import on_loop, soon
from tests.security.counting import Count
from tests.server.api import serving

HOST = b"Host: localhost\r\n"
POST = b"POST /v0/topics/a HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
HIDDEN = b"DELETE /v0/topics/hidden?force=true HTTP/1.1\r\n" + HOST + b"\r\n"
"""What must never be taken for a request of its own."""

REFUSED = {
    "a length and chunks": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n",
    "the same length twice": POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 0, 0\r\n\r\n",
    "a length with a sign": POST + b"Content-Length: +5\r\n\r\n",
    "a length in hex": POST + b"Content-Length: 0x5\r\n\r\n",
    "a length without end": POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding behind a tab": POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n",
    "chunks in HTTP/1.0": b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded header": POST + b"X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "a bare LF behind a header": POST + b"X-A: b\nContent-Length: 60\r\n\r\n",
    "a bare CR in a header": POST + b"X-A: b\rContent-Length: 60\r\n\r\n",
    "a space before a colon": POST + b"Content-Length : 0\r\n\r\n",
    "a NUL in a header": POST + b"X-A: \0\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + b"Host: other\r\n\r\n",
    "a chunk without end": POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    "a huge chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    "a chunk of a negative size": POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "a chunk that is longer than it says": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    "a proxy's method": b"CONNECT other:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "another version": b"GET / HTTP/3.0\r\n" + HOST + b"\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
}
"""Each is followed by the hidden one."""


async def exchanged(url: str, message: bytes) -> bytes:
    """All that comes back until the server ends the connection."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(message)
        writer.write_eof()
        return await soon(reader.read())
    finally:
        writer.close()
        await writer.wait_closed()


def statuses(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z][A-Za-z ]+\r\n", answers)]


@on_loop
async def test_what_is_ambiguous_is_refused(tmp_path: Path, record_property: Count) -> None:
    async with serving(tmp_path) as api:
        await api.write("hidden", 1)
        for name, message in REFUSED.items():
            answers = await exchanged(api.address.geturl(), message + HIDDEN)
            (status,) = statuses(answers)
            assert status in (400, 413, 417, 431), (name, answers)
            assert (await api.get("/v0/topics/hidden")).status == 200, f"{name}: the server goes on without it"
    record_property("ambiguous_requests", len(REFUSED))


@on_loop
async def test_chunks_with_extensions_and_trailers_are_read_as_what_they_are(tmp_path: Path) -> None:
    body = b'{"records":[{"data":1}]}'
    chunks = b"%x;name=value\r\n%b\r\n0;x\r\nX-Trailer: y\r\n\r\n" % (len(body), body)
    async with serving(tmp_path) as api:
        message = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunks
        answers = await exchanged(api.address.geturl(), message)
        assert statuses(answers) == [201]


@on_loop
async def test_extensions_and_trailers_have_a_bound(tmp_path: Path) -> None:
    begin = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    for endless in (b"1;" + b"x" * 200_000 + b"\r\n", b"0\r\n" + b"X-A: b\r\n" * 20_000):
        async with serving(tmp_path / endless[:1].decode()) as api:
            assert (await exchanged(api.address.geturl(), begin + endless)).startswith(b"HTTP/1.1 431")
