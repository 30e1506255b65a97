"""`topics serve` as an operator meets it: a process, signals, a directory that outlives it."""

from __future__ import annotations

import signal
import socket
from http.client import HTTPException, RemoteDisconnected
from itertools import count
from pathlib import Path
from shutil import copytree
from threading import Thread

import pytest

from tests.e2e.served import Caller, refusal, served


def write(caller: Caller, topic: str, *data: object) -> dict[str, object]:
    status, answer = caller.ask("POST", f"/v0/topics/{topic}", {"records": [{"data": each} for each in data]})
    assert status in (200, 201), answer
    assert isinstance(answer, dict)
    return answer


def stored(caller: Caller, topic: str) -> list[object]:
    status, page = caller.ask("POST", f"/v0/topics/{topic}/diff", {"from_seq": 0, "limit": 1000})
    assert (status, page["tombstone"]) == (200, None)
    return [record["data"] for record in page["records"]]


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server, server.connect() as caller:
        write(caller, "orders", 1, 2)
        assert server.stop() == 0
    with served(tmp_path / "data") as server, server.connect() as caller:
        assert server.said[-1]["last_stop"] == "clean"
        assert server.said[-1]["facts"] == 0, "a clean stop leaves a checkpoint and nothing to replay"
        assert stored(caller, "orders") == [1, 2]
        assert write(caller, "orders", 3)["last_seq"] == 3


def test_what_was_acked_outlives_a_kill(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server, server.connect() as caller:
        for number in range(50):
            write(caller, "orders", number)
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    with served(tmp_path / "data") as server, server.connect() as caller:
        assert server.said[-1]["last_stop"] == "process died"
        assert stored(caller, "orders") == list(range(50))
        assert write(caller, "orders", 50)["first_seq"] == 51, "nothing is skipped"


def test_disk_that_went_back_in_time_gives_no_acked_seq_out_again(tmp_path: Path) -> None:
    wal = tmp_path / "data" / "wal"
    # So that nothing is synced behind the copy.
    with served(tmp_path / "data", "--disk-sync-ms", "1min") as server, server.connect() as caller:
        write(caller, "orders", 0)
        snapshot = {path: path.read_bytes() for path in wal.glob("*.wal")}
        acked = [write(caller, "orders", number)["last_seq"] for number in range(1, 20)][-1]
        server.stop(signal.SIGKILL)
    for path, content in snapshot.items():
        path.write_bytes(content)
    with served(tmp_path / "data") as server, server.connect() as caller:
        assert server.said[-1]["last_stop"] == "process died, disk lost writes"
        assert stored(caller, "orders") == [0]
        assert write(caller, "orders", "after")["first_seq"] > acked
        _, page = caller.ask("POST", "/v0/topics/orders/diff", {"from_seq": acked})
        gap = page["tombstone"]
        assert gap["reason"] == "restart" and gap["gap_to"] >= acked


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_answers_who_waits_and_who_writes(tmp_path: Path, number: int) -> None:
    with served(tmp_path / "data") as server, server.connect() as reader, server.connect() as writer:
        write(writer, "orders", 1)
        reader.send("POST", "/v0/topics/orders/diff", {"from_seq": 1, "wait_ms": 30_000})
        # Half a request is one in flight: the rest comes while the server drains.
        half = socket.create_connection(writer.address)
        body = b'{"records": [{"data": 2}]}'
        head = b"POST /v0/topics/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        half.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
        write(writer, "orders-more", 1)
        server.process.send_signal(number)
        status, page = reader.answer()
        assert (status, page["records"], page["caught_up"]) == (200, [], True)
        half.sendall(body[5:])
        answer = b"".join(iter(lambda: half.recv(65536), b""))
        half.close()
        assert answer.startswith(b"HTTP/1.1 503 ") and b"shutting_down" in answer and b"Retry-After" in answer
        assert server.ended() == 0
        assert [line["event"] for line in server.said][-2:] == ["draining", "stopped"]
        assert server.said[-1]["cut_off"] == 0


def test_every_write_that_was_acked_while_it_drained_is_kept(tmp_path: Path) -> None:
    acked: list[int] = []
    with served(tmp_path / "data") as server, server.connect() as caller:

        def write_until_refused() -> None:
            with server.connect() as writer:
                for number in count():
                    try:
                        status, answer = writer.ask("POST", "/v0/topics/orders", {"records": [{"data": number}]})
                    except (HTTPException, ConnectionError):
                        return
                    if status == 503:
                        assert answer["error"]["code"] == "shutting_down"
                        return
                    acked.append(number)

        thread = Thread(target=write_until_refused)
        thread.start()
        while caller.ask("GET", "/v0/topics/orders")[0] == 404:
            pass
        assert server.stop() == 0
        thread.join()
    with served(tmp_path / "data") as server, server.connect() as caller:
        kept = stored(caller, "orders")
        # The last one may be stored and its answer cut off by the client's own time-out, never the other way round.
        assert kept[: len(acked)] == acked


def test_a_request_that_never_ends_is_cut_off_when_the_time_is_over(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--drain-ms", "50") as server, server.connect() as caller:
        write(caller, "orders", 1)
        with socket.create_connection(caller.address) as slow:
            slow.sendall(b"POST /v0/topics/orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
            write(caller, "orders", 2)
            assert server.stop() == 0
        assert server.said[-1]["cut_off"] == 1


def test_the_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--drain-ms", "1h") as server, server.connect() as caller:
        slow = socket.create_connection(caller.address)
        slow.sendall(b"POST /v0/topics/orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        write(caller, "orders", 1)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("draining")
        assert server.stop() == -signal.SIGTERM
        slow.close()


def test_an_idle_connection_does_not_hold_the_end_up(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--drain-ms", "1h") as server, server.connect() as caller:
        write(caller, "orders", 1)
        assert server.stop() == 0
        with pytest.raises((RemoteDisconnected, ConnectionError)):
            caller.ask("GET", "/v0/health")


def test_it_stops_cleanly_when_nobody_reads_its_log(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server, server.connect() as caller:
        write(caller, "orders", 1)
        assert server.process.stderr is not None
        server.process.stderr.close()
        server.process.stderr = None
        assert server.stop() == 0
    with served(tmp_path / "data") as server:
        assert server.said[-1]["last_stop"] == "clean"


def test_a_second_server_on_the_directory_is_refused(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server, server.connect() as caller:
        code, errors = refusal(tmp_path / "data")
        assert (code, "directory_locked" in errors, "Traceback" in errors) == (2, True, False), errors
        assert caller.ask("GET", "/v0/ready")[0] == 200


def test_damage_ends_with_a_message_and_what_to_do_next(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server, server.connect() as caller:
        # Synced writes: what stands behind the damage was promised, so it cannot be taken for a torn end.
        caller.ask("PUT", "/v0/topics/orders", {"durability": "fsync"})
        for number in range(20):
            write(caller, "orders", number)
        server.stop(signal.SIGKILL)
    copytree(tmp_path / "data", tmp_path / "copy")
    for file in (tmp_path / "copy" / "wal").rglob("*"):
        content = bytearray(file.read_bytes()) if file.is_file() else bytearray()
        at = content.find(b'"data":3')
        if at > 0:
            content[at] ^= 1
            file.write_bytes(content)
    code, errors = refusal(tmp_path / "copy")
    assert code == 1, errors
    assert "topics fsck" in errors and "Traceback" not in errors


def test_keys_decide_who_may_do_what(tmp_path: Path) -> None:
    keys = {"TOPICS_API_KEYS": "full-secret,reader-secret:read,tenant-secret::tenant:"}
    with served(tmp_path / "data", variables=keys) as server:
        nobody, full, reader, tenant = (
            Caller(server.url, key) for key in (None, "full-secret", "reader-secret", "tenant-secret")
        )
        records = {"records": [{"data": 1}]}
        status, answer = nobody.ask("POST", "/v0/topics/orders", records)
        assert (status, answer["error"]["code"], nobody.headers["WWW-Authenticate"]) == (401, "unauthorized", "Bearer")
        assert full.ask("POST", "/v0/topics/orders", records)[0] in (200, 201)
        assert reader.ask("POST", "/v0/topics/orders", records)[1]["error"]["code"] == "forbidden"
        assert reader.ask("POST", "/v0/topics/orders/diff", {})[0] == 200
        assert tenant.ask("POST", "/v0/topics/orders/diff", {})[0] == 403
        assert tenant.ask("POST", "/v0/topics/tenant:orders", records)[0] in (200, 201)
        assert [each["topic"] for each in tenant.ask("GET", "/v0/topics")[1]["topics"]] == ["tenant:orders"]
        assert nobody.ask("GET", "/v0/health")[0] == 200
        for caller in (nobody, full, reader, tenant):
            caller.close()
        assert server.stop() == 0
        assert "secret" not in str(server.said)
