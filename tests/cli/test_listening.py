"""What `topics doctor` says of the two ports and the certificate of gRPC."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.cli.test_doctor import checks
from tests.e2e.served import Served, served
from tests.server.grpc.certificates import certificate, expired


@pytest.fixture
def bare(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


@pytest.fixture(autouse=True)
def ports(monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Two that are free, of HTTP and of gRPC."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        found = one.getsockname()[1], other.getsockname()[1]
    monkeypatch.setenv("TOPICS_PORT", str(found[0]))
    monkeypatch.setenv("TOPICS_GRPC_PORT", str(found[1]))
    return found


def test_a_port_of_grpc_that_is_free(bare: Command, ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(bare)["gRPC"]["found"] == f"127.0.0.1 port {ports[1]} is free"
    monkeypatch.setenv("TOPICS_GRPC_PORT", "0")
    assert checks(bare)["gRPC"]["found"] == "any port that is free"
    monkeypatch.setenv("TOPICS_GRPC_PORT", str(ports[0]))
    same = checks(bare)["gRPC"]
    assert same["verdict"] == "bad" and "is that of HTTP" in same["found"]
    monkeypatch.setenv("TOPICS_NO_GRPC", "1")
    assert "switched off" in checks(bare)["gRPC"]["found"]


def test_a_port_of_grpc_that_somebody_has(bare: Command, ports: tuple[int, int]) -> None:
    with socket.create_server(("127.0.0.1", ports[1])):
        found = checks(bare)["gRPC"]
    assert (found["verdict"], found["found"]) == ("bad", f"127.0.0.1 port {ports[1]}: Address already in use")
    assert "--grpc-port" in found["advice"]


@pytest.mark.parametrize("is_tls", [False, True])
def test_a_port_of_grpc_that_is_ours(
    bare: Command, ports: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_tls: bool
) -> None:
    if is_tls:
        key, chain = certificate(tmp_path)
        monkeypatch.setenv("TOPICS_GRPC_TLS_CERT", str(chain))
        monkeypatch.setenv("TOPICS_GRPC_TLS_KEY", str(key))
    tls = {"TOPICS_GRPC_TLS_CERT": str(chain), "TOPICS_GRPC_TLS_KEY": str(key)} if is_tls else {}
    http, grpc = ports
    with served(tmp_path / "data", f"--grpc-port={grpc}", port=http, variables={"TOPICS_NO_GRPC": "0", **tls}):
        found = checks(bare)
    assert found["gRPC"]["found"] == f"is served on 127.0.0.1 port {grpc}"
    assert ("gRPC TLS" in found) is is_tls


def test_the_certificate_of_grpc(bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "gRPC TLS" not in checks(bare)
    key, chain = certificate(tmp_path, days=90)
    monkeypatch.setenv("TOPICS_GRPC_TLS_CERT", str(chain))
    assert "set both" in checks(bare)["gRPC TLS"]["advice"]
    monkeypatch.setenv("TOPICS_GRPC_TLS_KEY", str(key))
    # openssl counts from the second it is called in.
    assert checks(bare)["gRPC TLS"]["found"] in (f"{chain} is good for {days} days" for days in (89, 90))
    monkeypatch.setenv("TOPICS_GRPC_TLS_CLIENT_CA", str(tmp_path / "nowhere.pem"))
    said = bare("doctor").lines
    assert [each["verdict"] for each in said if each["check"] == "gRPC TLS"] == ["ok", "bad"]
    monkeypatch.setenv("TOPICS_GRPC_TLS_CLIENT_CA", str(chain))
    assert "is good for" in checks(bare)["gRPC TLS"]["found"]


def test_a_certificate_that_no_client_would_believe(
    bare: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    key, chain = certificate(tmp_path)
    other_key, _ = certificate(tmp_path / "other")
    monkeypatch.setenv("TOPICS_GRPC_TLS_CERT", str(expired(key, chain)))
    monkeypatch.setenv("TOPICS_GRPC_TLS_KEY", str(key))
    found = checks(bare)["gRPC TLS"]
    assert found["verdict"] == "bad" and "has expired" in found["found"]
    monkeypatch.setenv("TOPICS_GRPC_TLS_KEY", str(other_key))
    assert "KEY_VALUES_MISMATCH" in checks(bare)["gRPC TLS"]["found"]
    monkeypatch.setenv("TOPICS_GRPC_TLS_KEY", str(tmp_path / "nowhere.pem"))
    assert "No such file" in checks(bare)["gRPC TLS"]["found"]
    (tmp_path / "garbage.pem").write_text("hello")
    monkeypatch.setenv("TOPICS_GRPC_TLS_KEY", str(tmp_path / "garbage.pem"))
    assert checks(bare)["gRPC TLS"]["verdict"] == "bad"


def test_a_port_of_grpc_that_somebody_has_beside_a_server_of_ours(
    bare: Command, server: Served, ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICS_PORT", server.url.rpartition(":")[2])
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", ports[1]))
        found = checks(bare)
    assert "runs on" in found["port"]["found"]
    assert (found["gRPC"]["verdict"], found["gRPC"]["found"]) == (
        "bad",
        f"127.0.0.1 port {ports[1]}: Address already in use",
    )
