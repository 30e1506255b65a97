"""HTTP: requests as the server reads them, and answers as the client does.

However the bytes are cut into pieces, the same requests come out, and the same refusal. Two readers that disagree on
where a message ends are what a smuggler looks for, so the way with the remembered heads is compared with the plain one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from proof.fuzz.pieces import cuttings, one_in
from proof.fuzz.target import Target
from topics.client import connection, refusal
from topics.client.connection import Answer, Connection
from topics.errors import TopicsError
from topics.server import encoding, requesthead, requestparser, target
from topics.server.encoding import gunzip
from topics.server.httpoptions import HttpOptions
from topics.server.requesthead import RequestHead
from topics.server.requestparser import Part, RequestParser

OPTIONS: Final = HttpOptions()
SMALL: Final = HttpOptions(header_bytes_max=256, body_bytes_max=512)
SMALL_EVERY: Final = 4
BODY_BYTES_MAX: Final = 64 * 1024

Taken = tuple[str, str, str, tuple[tuple[str, str], ...], bytes]


class Taker:
    """A `Sink` that writes down what it gets."""

    def __init__(self, options: HttpOptions) -> None:
        self.taken: list[Taken] = []
        self.refused = ""
        self._put_back = b""
        self._parser = RequestParser(options, self)

    def feed(self, data: bytes) -> None:
        """As a connection does, up to the first refusal."""
        if self.refused:
            return
        parser = self._parser
        try:
            at = parser.take_known(data)
            at += parser.learn(data[at:])
            if at < len(data):
                parser.feed(data[at:])
        except TopicsError as error:
            self.refused = error.code

    def began(self, part: Part) -> None:
        """Nothing depends on when."""

    def take(self, head: RequestHead, body: bytes) -> None:
        self.taken.append((head.method, head.path, head.query, tuple(head.headers.items()), body))

    def send_continue(self) -> None:
        """Nobody waits here."""

    def may_take(self) -> bool:
        return True

    def put_back(self, data: bytes) -> None:
        raise AssertionError("only who may not take has it put back")

    def learned(self, head_bytes: bytes, head: RequestHead) -> None:
        """Nothing is made of it."""


def read_requests(data: bytes) -> tuple[int, str]:
    whole = Taker(OPTIONS)
    whole.feed(data)
    for pieces in cuttings(data):
        other = Taker(OPTIONS)
        for piece in pieces:
            other.feed(piece)
        assert other.taken == whole.taken, f"cut otherwise, {other.taken} in place of {whole.taken}"
        assert other.refused == whole.refused, f"cut otherwise, {other.refused!r} in place of {whole.refused!r}"
    if one_in(SMALL_EVERY, data):
        small = Taker(SMALL)
        small.feed(data)
        for *_, body in small.taken:
            assert len(body) <= SMALL.body_bytes_max, f"a body of {len(body)} bytes"
    return len(whole.taken), whole.refused


PLAIN: Final = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n"
HEAD: Final = b"POST /v0/topics/a%20b?x=1 HTTP/1.1\r\nHost: topics\r\nContent-Type: application/json\r\n"

REQUESTS: Final = Target(
    name="http-request",
    run=read_requests,
    errors=(),
    modules=(requestparser, requesthead, target, encoding),
    seeds=(
        b"GET /v0/topics HTTP/1.1\r\nHost: topics\r\n\r\n" * 2,
        HEAD + b"Content-Length: 3\r\n\r\nabc" + HEAD + b"Content-Length: 2\r\n\r\nde",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n",
        HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        HEAD + b"Content-Encoding: gzip\r\nAccept-Encoding: gzip;q=0.5, *;q=0\r\nContent-Length: 0\r\n\r\n",
        b"GET http://topics/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET * HTTP/1.0\r\n\r\n",
        b"GET /v0/ws HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + PLAIN,
    ),
    words=(
        *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" ", b"\t", b"\0", b":", b": ", b"%2F", b"%", b"\xff", b"#", b"?"),
        *(b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: x\r\n"),
        *(b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Connection: close\r\n"),
        *(
            b"Upgrade: h2c\r\nConnection: Upgrade\r\n",
            b"Expect: 100-continue\r\n",
            b"Expect: x\r\n",
            b"X-Request-Id: a\r\n",
        ),
        *(
            b"0\r\n\r\n",
            b"1\r\nx\r\n",
            b"ffffffffffffffff\r\n",
            b"HTTP/1.1",
            b"HTTP/1.0",
            b"HTTP/2.0",
            b"CONNECT ",
            b"HEAD ",
        ),
        *(b"OPTIONS * ", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PLAIN),
    ),
    bytes_max=1024,
)


class _Nowhere(asyncio.Transport):
    """What is written goes nowhere, and nothing ends."""

    def write(self, data: Any) -> None:
        pass

    def abort(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class StillLoop:
    """A loop in which no time passes: a connection makes its future and its timer in it, and all else comes by hand."""

    def time(self) -> float:
        return 0.0

    def get_debug(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=LOOP)

    def call_at(self, when: float, callback: Callable[..., object], *args: object) -> StillLoop:
        return self

    def cancel(self) -> None:
        """A timer that never fires needs none."""


LOOP: Final = cast(asyncio.AbstractEventLoop, StillLoop())
NOWHERE: Final = _Nowhere()


def read_answer(data: bytes) -> tuple[object, ...]:
    whole = answer_of([data])
    shown = _shown(whole)
    for pieces in cuttings(data):
        other = _shown(answer_of(pieces))
        assert other == shown, f"cut otherwise, {other} in place of {shown}"
    if not isinstance(whole, Answer):
        return (shown,)
    if whole.status < 300:
        return whole.status, len(whole.headers)
    error = refusal.refusal(whole)
    return type(error), refusal.retry_after_ms(whole, error) is None


def _shown(answer: Answer | TopicsError) -> object:
    return answer if isinstance(answer, Answer) else type(answer)


def answer_of(pieces: Iterable[bytes]) -> Answer | TopicsError:
    """What a caller gets for these bytes and the end of the connection behind them."""
    asyncio._set_running_loop(LOOP)
    try:
        read = Connection("a server")
        read.connection_made(NOWHERE)
        asked = read.exchange(b"GET / HTTP/1.1\r\n\r\n", 60, 60)
        asked.send(None)
        for piece in pieces:
            read.data_received(piece)
        read.connection_lost(None)
        asked.send(None)
    except StopIteration as answered:
        found: Answer = answered.value
        return found
    except TopicsError as error:
        return error
    finally:
        asyncio._set_running_loop(None)
    raise AssertionError("it waits for more, behind the end of the connection")


ANSWERS: Final = Target(
    name="http-answer",
    run=read_answer,
    errors=(),
    modules=(connection, refusal),
    seeds=(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Request-Id: a\r\n\r\n{}",
        b"HTTP/1.1 429 x\r\nRetry-After: 3\r\nContent-Length: 62\r\n\r\n"
        b'{"error":{"code":"throttled","message":"m","detail":{"a":[1]}}}',
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 503 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.0 500 x\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 23\r\n\r\n"
        + bytes.fromhex("1f8b08000000000000034b040043beb7e801000000"),
    ),
    words=(
        *(b"\r\n", b"\r\n\r\n", b"Content-Length: 1\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"),
        *(b'{"error":', b'"detail":{"retry_after_ms":5}', b'"reason":"log_stopped"', b"[[[[[[[[", b'{"a":' * 40),
        *(
            b"HTTP/1.1 304 x\r\n\r\n",
            b"HTTP/1.1 999 x\r\n\r\n",
            b"Upgrade: x\r\nConnection: Upgrade\r\n",
            b"HTTP/1.1 101 x\r\n",
        ),
        *(b"Content-Encoding: gzip\r\n", b"Retry-After: \xb2\r\n", b"\xff", b"\0"),
    ),
    bytes_max=2048,
)


def inflate(data: bytes) -> None:
    small = encoding.gunzip_if_small(data, BODY_BYTES_MAX)
    assert small == gunzip(data, BODY_BYTES_MAX)


GZIP: Final = Target(
    name="gzip-body",
    run=inflate,
    errors=(TopicsError,),
    modules=(encoding,),
    seeds=(encoding.gzip(b""), encoding.gzip(b"abc" * 9), encoding.gzip(bytes(200_000)), encoding.gzip(b"x") * 17),
    words=(encoding.gzip(b""), b"\x1f\x8b\x08"),
    memory_factor=64,
)

TARGETS: Final = (REQUESTS, ANSWERS, GZIP)
