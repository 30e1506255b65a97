from __future__ import annotations

import pickle
import socket
import socketserver
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import pyarrow as pa
import pytest

from tests.spark.rig import datas, fill
from topics.errors import ConnectionFailed, Forbidden, InvalidSql, TopicNotFound
from topics.spark import server as server_module
from topics.spark.server import Server
from topics.testing.served import RunningServer, running_server

GUARD_S = 60
TIMEOUT_MS = 60_000


class _HangsUp(socketserver.StreamRequestHandler):
    """Takes a request, and ends the connection without a word."""

    asked_count = 0

    def handle(self) -> None:
        type(self).asked_count += self.rfile.readline().startswith(b"POST")


def test_what_is_refused_is_raised_as_what_it_is(topics_server: RunningServer) -> None:
    server = Server(topics_server.url, "", TIMEOUT_MS)
    with pytest.raises(TopicNotFound):
        server.state("none")
    assert not server.is_there("none")
    server.create("t")
    server.create("t")
    assert server.is_there("t") and [state.topic for state in server.topics("")] == ["t"]
    server.close()


def test_topics_are_found_over_all_pages(topics_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PAGE_SIZE_MAX", 2)
    server = Server(topics_server.url, "", TIMEOUT_MS)
    names = [f"in.{number}" for number in range(5)]
    for name in [*names, "out"]:
        server.create(name)
    assert [state.topic for state in server.topics("in.")] == names
    server.close()


def test_a_server_that_is_away_is_asked_again(topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1)
    server = Server(topics_server.url, "", TIMEOUT_MS)
    assert server.state("t").head_seq == 1
    topics_server.stop()
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(server.state, "t")
        topics_server.start()
        assert asked.result(GUARD_S).head_seq == 1
    server.close()


def test_it_is_given_up_when_the_time_is_over(topics_server: RunningServer) -> None:
    server = Server(topics_server.url, "", 0)
    topics_server.stop()
    with pytest.raises(ConnectionFailed, match="cannot be asked"):
        server.state("t")
    topics_server.start()


def test_an_address_that_says_nothing_is_given_up_sooner_than_one_that_works(
    topics_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_CONNECT_S", 0.2)
    fill(topics_server, "t", 1)
    server = Server(topics_server.url, "", 0)
    assert server.read("t", from_seq=1, wait_ms=500).facts.head_seq == 1, "what waits for long waits on"
    server.close()
    # A listener whose line is full lets nobody in and sends nobody away.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as line:
        address = full.getsockname()
        while True:
            waits = line.enter_context(socket.socket())
            waits.settimeout(0.2)
            try:
                waits.connect(address)
            except TimeoutError:
                break
        nobody = Server(f"http://127.0.0.1:{address[1]}", "", 0)
        with ThreadPoolExecutor(1) as threads, pytest.raises(ConnectionFailed, match="cannot be asked: timed out"):
            threads.submit(nobody.check_scopes).result(GUARD_S)


def test_what_a_key_may_is_told() -> None:
    with running_server(api_keys="boss,reader:read") as served:
        reader = Server(served.url, "reader", TIMEOUT_MS)
        reader.check_scopes()
        reader.check_scopes("read")
        with pytest.raises(Forbidden, match="lacks the scope write and admin, and this needs read and write and admin"):
            reader.check_scopes("read", "write", "admin")
        reader.close()


def test_statements_are_asked_once(topics_server: RunningServer) -> None:
    server = Server(topics_server.url, "", TIMEOUT_MS)
    assert b'"message":"topic t created"' in server.sql("CREATE TOPIC t", [])
    topics_server.stop()
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(server.sql, "INSERT INTO TOPIC t VALUES (?)", [[1]])
        topics_server.start()
        assert b'"rows":[["t",0,1,1]]' in asked.result(GUARD_S), "what did not get there is asked again"
    assert server.query("SELECT seq FROM t").to_pydict() == {"seq": [1]}
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: server.sql("INSERT INTO TOPIC t VALUES (?)", [number]), range(32)))
    seqs = sorted(msgspec.json.decode(answer)["results"][0]["rows"][0][2] for answer in answers)
    assert seqs == [*range(2, 34)], "threads do not hear each other's answers"
    with pytest.raises(InvalidSql):
        server.sql("CREATE TOPC t", [])
    server.close()


def test_a_statement_without_an_answer_may_have_been_done() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), _HangsUp) as listener, ThreadPoolExecutor(1) as threads:
        served = threads.submit(listener.serve_forever)
        server = Server(f"http://127.0.0.1:{listener.server_address[1]}", "", TIMEOUT_MS)
        with pytest.raises(ConnectionFailed, match="may have done what was asked") as failed:
            server.sql("INSERT INTO TOPIC t VALUES (1)", [])
        listener.shutdown()
        served.result(GUARD_S)
    assert failed.value.detail["sent"] and _HangsUp.asked_count == 1


def test_elsewhere_it_is_an_address(topics_server: RunningServer) -> None:
    fill(topics_server, "t", 1)
    server = Server(topics_server.url, "a key", TIMEOUT_MS)
    assert "a key" not in repr(server)
    assert server.state("t").head_seq == 1
    there = pickle.loads(pickle.dumps(server))
    assert there.state("t").head_seq == 1
    there.close()
    server.close()


def test_staged_once_published_once(topics_server: RunningServer) -> None:
    server = Server(topics_server.url, "", TIMEOUT_MS)
    server.create("t")
    for at, rows in [(0, ["1", "2"]), (0, ["1", "2"]), (2, ["3"]), (2, ["3"])]:
        server.stage("s", "t", 0, at, pa.table({"data": rows}))
    assert [server.publish(["s"], "p", 1), server.publish(["s"], "p", 1)] == [False, True]
    server.abort(["s", "never was"])
    assert datas(topics_server, "t") == [1, 2, 3]
    server.close()
