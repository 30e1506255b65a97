"""NATS JetStream: a stream in files, one replica. Every publish waits for its ack, as a write with us does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bench.peers.process import HOST, LeftOut, Process, connected, free_port

SUBJECT = b"orders"


def program() -> str:
    found = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
    if found is None:
        raise LeftOut("nats-server is not installed (Debian: apt install nats-server)")
    return found


def version() -> str:
    told = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True, timeout=10).stdout
    return told.split()[-1].removeprefix("v")


class Nats:
    name = "NATS JetStream, files"

    def __init__(self, directory: Path, retention: str = "limits") -> None:
        """With the retention `workqueue` a message is gone when it is acked."""
        self._retention = retention
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        command = [program(), "--addr", HOST, "--port", str(self.port), "--jetstream", "--store_dir", str(directory)]
        self.process = Process(command, directory.parent / f"{directory.name}.log")
        try:
            self.process.wait_until(self._has_stream)
        except BaseException:
            self.process.kill()
            raise

    def _has_stream(self) -> bool:
        """Make the stream, or be told that it is there; before the server is up there is no answer that says so."""
        subject = SUBJECT.decode()
        wanted = {
            "name": subject,
            "subjects": [subject],
            "storage": "file",
            "retention": self._retention,
            "num_replicas": 1,
        }
        return self._makes(b"STREAM.CREATE.%b" % SUBJECT, wanted)

    def add_consumer(self, name: str) -> None:
        """Somebody from whom workers pull, each message to one of them until it is acked."""
        config = {"durable_name": name, "ack_policy": "explicit", "deliver_policy": "all"}
        wanted = {"stream_name": SUBJECT.decode(), "config": config}
        if not self._makes(b"CONSUMER.DURABLE.CREATE.%b.%b" % (SUBJECT, name.encode()), wanted):
            raise RuntimeError(f"NATS made no consumer {name}")

    def _makes(self, call: bytes, wanted: Mapping[str, object]) -> bool:
        body = msgspec.json.encode(wanted)
        with connected(self.port) as stream, stream.makefile("rb") as replies:
            stream.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB made 1\r\n')
            stream.sendall(b"PUB $JS.API.%b made %d\r\n%b\r\nPING\r\n" % (call, len(body), body))
            for line in replies:
                if line.startswith(b"MSG "):
                    return b'"config"' in replies.readline()
        return False

    def __enter__(self) -> Nats:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()
