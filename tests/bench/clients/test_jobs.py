"""The workers in C against a server of ours, and against one that says the wrong things."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from threading import Thread

import pytest

from bench.clients.jobs import JobProtocol, Workers
from bench.clients.load import Client
from bench.clients.requests import http_writes
from bench.measures.heaps import HEAP, heap_batches
from bench.peers.topics import TOPIC, Topics
from bench.sizes import BATCH

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

JOBS = 1000


def test_all_jobs_are_done_and_one_more_is_not_there(tmp_path: Path) -> None:
    workers = Workers(tmp_path, 3, 8)
    with Topics(tmp_path / "data") as server:
        server.create_queue()
        Client(tmp_path).run(server.port, http_writes(TOPIC, 1, JOBS), 1, count=1)
        done = workers.run(JobProtocol.HTTP, server.port, JOBS, TOPIC)
        assert (done.jobs, done.jobs_per_s > 0, done.p99_us >= done.p50_us > 0) == (JOBS, True, True)
        with pytest.raises(RuntimeError, match="fewer jobs than there are"):
            workers.run(JobProtocol.HTTP, server.port, 8, TOPIC)


def test_all_messages_are_popped_and_acked_and_one_more_is_not_there(tmp_path: Path) -> None:
    workers = Workers(tmp_path, 2, 8)
    with Topics(tmp_path / "data") as server:
        server.create_heap(HEAP, 2)
        Client(tmp_path).run(server.port, heap_batches(), 1, count=1)
        assert workers.run(JobProtocol.HEAP, server.port, BATCH, HEAP).jobs == BATCH
        with pytest.raises(RuntimeError, match="fewer jobs than there are"):
            workers.run(JobProtocol.HEAP, server.port, 8, HEAP)


@pytest.mark.parametrize(
    ("protocol", "answers"),
    [
        (
            JobProtocol.RESP,
            [b"*1\r\n*2\r\n$1\r\nq\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$4\r\ndata\r\n$2\r\n{}\r\n", b":1\r\n"],
        ),
        (JobProtocol.NATS, [b"INFO {}\r\nPING\r\nMSG inbox.000000 1 $JS.ACK.q.1 2\r\n{}\r\n"]),
        (JobProtocol.ZSET, [b"*2\r\n$3\r\n001\r\n$2\r\n{}\r\n", b":1\r\n"]),
        (JobProtocol.BEANSTALK, [b"RESERVED 1 2\r\n{}\r\n", b"DELETED\r\n"]),
    ],
)
def test_each_protocol_is_cut_where_its_answers_end(
    protocol: JobProtocol, answers: list[bytes], tmp_path: Path
) -> None:
    """Its answers come a few bytes at a time."""

    def serve() -> None:
        stream, _ = listener.accept()
        with stream:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for answer in answers:
                stream.recv(4096)
                for at in range(0, len(answer), 5):
                    stream.sendall(answer[at : at + 5])
            # A worker that still acks must not find the connection closed.
            while stream.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Thread(target=serve)
        server.start()
        done = Workers(tmp_path, 1, 1).run(protocol, listener.getsockname()[1], 1, "q")
        server.join()
    assert done.jobs == 1


def test_an_answer_that_is_no_success_ends_the_run(tmp_path: Path) -> None:
    def serve() -> None:
        stream, _ = listener.accept()
        with stream:
            stream.recv(4096)
            stream.sendall(b"OUT_OF_MEMORY\r\n")
            stream.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Thread(target=serve)
        server.start()
        with pytest.raises(RuntimeError, match="OUT_OF_MEMORY"):
            Workers(tmp_path, 1, 1).run(JobProtocol.BEANSTALK, listener.getsockname()[1], 1, "q")
        server.join()
