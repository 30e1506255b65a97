"""The C client of watchers and writers against a server that forwards every write, a few bytes at a time."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread

import pytest

from bench.clients.live import LiveClient, Pace
from bench.clients.requests import INBOX_NUMBER, Protocol
from bench.clients.watching import STAMP, Watching

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

PIECE = 7
READY = b"welcome"
ACK = b"+OK\r\n"
XREAD = b"more "
STAMPED = re.compile(rb'"live":"\d{20}-(\d{12})-(\d{12})"')

Forward = Callable[[int, bytes], bytes]
"""What a watcher is sent for the n-th write."""


class Server:
    def __init__(self, forward: Forward) -> None:
        self.lines: list[bytes] = []
        self._forward = forward
        self._watchers: list[socket.socket] = []
        self._writes = 0
        self._one_at_a_time = Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def serve(self, connections: int) -> None:
        """One thread a connection; writers are acked after everybody was sent what they wrote."""
        threads = []
        for _ in range(connections):
            stream, _ = self._listener.accept()
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threads.append(Thread(target=self._talk, args=(stream,)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self._listener.close()

    def _talk(self, stream: socket.socket) -> None:
        with stream, stream.makefile("rb") as lines:
            try:
                for line in lines:
                    self.lines.append(line)
                    if line == b"watch\n":
                        self._watchers.append(stream)
                        stream.sendall(READY)
                    elif STAMPED.search(line):
                        self._publish(line)
                        stream.sendall(ACK)
            except OSError:
                pass  # The client ends when it has seen enough.

    def _publish(self, line: bytes) -> None:
        with self._one_at_a_time:
            self._writes += 1
            text = self._forward(self._writes, line)
            for watcher in self._watchers:
                for at in range(0, len(text), PIECE):
                    watcher.sendall(text[at : at + PIECE])


@contextmanager
def forwarding(forward: Forward, connections: int) -> Iterator[Server]:
    server = Server(forward)
    thread = Thread(target=server.serve, args=(connections,))
    thread.start()
    yield server
    thread.join()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> LiveClient:
    return LiveClient(tmp_path_factory.mktemp("client"))


def watching(watchers: int) -> Watching:
    return Watching(
        protocol=Protocol.RESP,
        watchers=[b"watch\n"] * watchers,
        writes=[b"write {%b}\n" % STAMP],
        writer_greeting=b"I am %b\n" % INBOX_NUMBER,
        ready=READY,
    )


def test_everybody_gets_everything_in_any_pieces(client: LiveClient) -> None:
    with forwarding(lambda number, line: b"event " + line, connections=4) as server:
        found = client.run(None, server.port, watching(3), Pace(writes=5))
    assert (found.writes, found.deliveries) == (5, 15)
    assert 0 < found.p50_us <= found.p99_us
    assert b"I am 000000\n" in server.lines
    stamps = [made for line in server.lines if (made := STAMPED.search(line))]
    assert [(int(made[1]), int(made[2])) for made in stamps] == [(0, number) for number in range(5)]


def test_writers_are_counted_for_themselves(client: LiveClient) -> None:
    with forwarding(lambda number, line: line, connections=3) as server:
        found = client.run(None, server.port, watching(1), Pace(writes=6, writers=2, window=2))
    assert found.deliveries == 6
    stamps = [made for line in server.lines if (made := STAMPED.search(line))]
    assert {int(made[1]) for made in stamps} == {0, 1}


def test_a_pace_is_kept_until_the_time_is_over(client: LiveClient) -> None:
    with forwarding(lambda number, line: line, connections=2) as server:
        found = client.run(None, server.port, watching(1), Pace(per_s=100, seconds=0.2, window=100))
    assert 1 <= found.writes <= 21
    assert found.deliveries == found.writes


@pytest.mark.parametrize(
    "forward",
    [
        pytest.param(lambda number, line: line if number != 2 else b"", id="lost"),
        pytest.param(lambda number, line: line * 2 if number == 2 else line, id="repeated"),
    ],
)
def test_a_record_that_is_lost_or_repeated_ends_the_run(client: LiveClient, forward: Forward) -> None:
    told = pytest.raises(RuntimeError, match="lost, repeated or out of order")
    with forwarding(forward, connections=2) as server, told:
        client.run(None, server.port, watching(1), Pace(writes=5, window=5))


def test_a_reader_that_has_to_ask_goes_on_behind_the_last_entry(client: LiveClient) -> None:
    def reply(number: int, line: bytes) -> bytes:
        data = line.strip()
        entry = b"*2\r\n$3\r\n%d-0\r\n*2\r\n$4\r\ndata\r\n$%d\r\n%b\r\n" % (number, len(data), data)
        return b"*1\r\n*2\r\n$6\r\norders\r\n*1\r\n" + entry

    asking = Watching(
        protocol=Protocol.RESP,
        watchers=[b"watch\n"],
        writes=[b"write {%b}\n" % STAMP],
        ready=READY,
        again=XREAD,
    )
    with forwarding(reply, connections=2) as server:
        found = client.run(None, server.port, asking, Pace(writes=3))
    assert found.deliveries == 3
    assert [line for line in server.lines if line.startswith(XREAD) or line[1:3] == b"-0"][:4] == [
        b"more $3\r\n",
        b"1-0\r\n",
        b"more $3\r\n",
        b"2-0\r\n",
    ]
