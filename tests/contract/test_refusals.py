"""What is refused before there is a request is answered, counted and logged like everything else."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from pathlib import Path

import pytest

from tests.client.rig import soon
from tests.server.api import Api, serving

HEAD = b"POST /v0/topics/jobs HTTP/1.1\r\nHost: localhost\r\n"
REFUSED: dict[str, tuple[bytes, int, str, str]] = {
    "no HTTP": (b"hello\r\n\r\n", 400, "invalid_request", ""),
    "long head": (b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000, 431, "headers_too_large", ""),
    "long body": (HEAD + b"Content-Length: 2000000\r\n\r\n", 413, "payload_too_large", ""),
    "long chunked body": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nf4241\r\n" + b"x" * 1_000_001,
        413,
        "payload_too_large",
        "/v0/topics/jobs",
    ),
    "no gzip": (
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
        400,
        "invalid_request",
        "/v0/topics/jobs",
    ),
    "a bomb": (
        HEAD
        + b"Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        % len(gzip.compress(b"\0" * 2_000_000))
        + gzip.compress(b"\0" * 2_000_000),
        413,
        "payload_too_large",
        "/v0/topics/jobs",
    ),
}


async def ask(api: Api, sent: bytes) -> tuple[int, dict[str, object]]:
    reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
    writer.write(sent)
    writer.write_eof()
    head, _, body = (await soon(reader.read())).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_one_like_all_others(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    sent, status, code, path = REFUSED[name]

    async def scenario() -> None:
        async with serving(tmp_path, access_log=True, max_body_bytes=1_000_000, max_record_bytes=500_000) as api:
            answered, body = await ask(api, sent)
            assert answered == status
            assert set(body) == {"error", "performance"} and body["error"]["code"] == code  # type: ignore[index]
            scraped = (await api.get("/v0/metrics")).raw.decode()
            assert f'topics_http_errors_total{{status="{status}",code="{code}"}} 1' in scraped

    with caplog.at_level(logging.INFO, "topics"):
        asyncio.run(scenario())
    lines = [record.__dict__["fields"] for record in caplog.records if record.message == "request"]
    assert (lines[0]["status"], lines[0]["path"]) == (status, path)
