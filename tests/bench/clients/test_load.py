"""The C client against a server that answers from a script, a few bytes at a time."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from bench.clients.load import Client
from bench.clients.requests import INBOX_NUMBER, Protocol, Requests

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

PIECE = 7
HTTP_OK = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 5\r\n\r\nhello"
RESP_NESTED = b"*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\na\r\n$4\r\nb\r\nc\r\n$-1\r\n"


@contextmanager
def answering(answer: Callable[[bytes], bytes], connections: int = 1, greeting: bytes = b"") -> Iterator[int]:
    """Serve connections one request a line; the port."""

    def serve(stream: socket.socket) -> None:
        with stream, stream.makefile("rb") as lines:
            try:
                stream.sendall(greeting)
                for line in lines:
                    told = answer(line.rstrip(b"\n"))
                    for at in range(0, len(told), PIECE):
                        stream.sendall(told[at : at + PIECE])
            except OSError:
                pass  # The client ends when it has seen enough.

    def accept() -> None:
        threads = []
        for _ in range(connections):
            stream, _ = listener.accept()
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threads.append(Thread(target=serve, args=(stream,)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Thread(target=accept)
        server.start()
        yield listener.getsockname()[1]
        server.join()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(tmp_path_factory.mktemp("client"))


def test_http_answers_are_cut_by_their_length(client: Client) -> None:
    sent: list[bytes] = []

    def answer(line: bytes) -> bytes:
        sent.append(line)
        return HTTP_OK

    with answering(answer) as port:
        load = client.run(port, Requests(protocol=Protocol.HTTP, sent=[b"a\n", b"b\n"]), 1, count=5)
    assert (load.requests, load.received_bytes) == (5, 5 * len(HTTP_OK))
    assert sent == [b"a", b"b", b"a", b"b", b"a"]
    assert 0 < load.p50_us <= load.p99_us


def test_resp_values_are_counted(client: Client) -> None:
    requests = Requests(protocol=Protocol.RESP, sent=[b"a\n"], replies=2)
    with answering(lambda line: b":1\r\n" + RESP_NESTED) as port:
        load = client.run(port, requests, 1, count=4)
    assert (load.requests, load.received_bytes) == (4, 4 * len(b":1\r\n" + RESP_NESTED))


def test_nats_connections_have_their_own_inbox(client: Client) -> None:
    sent: set[bytes] = set()

    def answer(line: bytes) -> bytes:
        sent.add(line)
        return b"PING\r\n" if line.startswith(b"SUB") else b"" if line == b"PONG\r" else b"MSG a 1 2\r\n{}\r\n"

    greeting = b"SUB %b\n" % INBOX_NUMBER
    requests = Requests(protocol=Protocol.NATS, sent=[b"to %b\n" % INBOX_NUMBER], greeting=greeting)
    with answering(answer, connections=2, greeting=b"INFO {}\r\n") as port:
        load = client.run(port, requests, 2, count=6)
    assert load.requests == 6
    assert sent >= {b"SUB 000000", b"SUB 000001", b"to 000000", b"to 000001"}


@pytest.mark.parametrize(
    ("protocol", "answer", "told"),
    [
        (Protocol.HTTP, HTTP_OK.replace(b"200", b"429"), "429"),
        (Protocol.RESP, b"-ERR no\r\n", "ERR no"),
        (Protocol.NATS, b'MSG a 1 11\r\n{"error":1}\r\n', "error"),
    ],
)
def test_a_refusal_ends_the_load_with_its_text(client: Client, protocol: Protocol, answer: bytes, told: str) -> None:
    with answering(lambda line: answer) as port, pytest.raises(RuntimeError, match=told):
        client.run(port, Requests(protocol=protocol, sent=[b"a\n"]), 1, count=2)
