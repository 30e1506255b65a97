from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.client.rig import on_loop, settle, soon
from tests.client.scripted import OK, Side, keep_answering, scripted
from topics import connect, errors, testing


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOPICS_URL", "TOPICS_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@on_loop
async def test_url_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with testing.server() as server:
        monkeypatch.setenv("TOPICS_URL", server.url)
        async with connect() as client:
            await client.topic("orders").write(1)
    asked: list[bytes] = []

    async def note(side: Side) -> None:
        while True:
            asked.append(await side.request())
            side.send(OK)

    async with scripted(note) as there:
        monkeypatch.setenv("TOPICS_API_KEY", "from-the-environment")
        for key in (None, "given"):
            async with connect(str(there.address), key) as client:
                with pytest.raises(errors.Internal, match="not one that this client understands"):
                    await client.topic("orders").state()
    assert b"Bearer from-the-environment" in asked[0] and b"Bearer given" in asked[1]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"url": "nonsense"}, "is not the URL of a server"),
        ({"key": "two words"}, "key must be printable ASCII"),
        ({"key": "line\nbreak"}, "key must be printable ASCII"),
        ({"timeout_ms": 0}, "timeout_ms must be"),
        ({"connections_max": True}, "connections_max must be"),
        ({"url": "http://host", "ssl_context": ssl.create_default_context()}, "ssl_context is for https"),
    ],
)
def test_what_cannot_work_is_refused_at_once(how: dict[str, object], said: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=said) as refused:
        connect(**how)  # type: ignore[arg-type]
    assert "two words" not in refused.value.message


@on_loop
async def test_a_client_is_used_inside_its_block() -> None:
    async with scripted(keep_answering) as server:
        client = connect(str(server.address))
        with pytest.raises(errors.NotReady, match="is not connected"):
            await client.topic("orders").state()
        async with client:
            with pytest.raises(errors.InvalidRequest, match="connected already"):
                await client.__aenter__()
        await client.close()
        with pytest.raises(errors.NotReady):
            await client.topic("orders").state()


@on_loop
async def test_a_client_can_be_opened_again() -> None:
    async with testing.server() as server:
        client = server.client()
        for expected in (1, 2):
            async with client:
                assert (await client.topic("orders").write(1)).first_seq == expected


@on_loop
async def test_a_key_that_is_refused() -> None:
    async with testing.server(api_keys="reader-key:read") as server:
        async with server.client() as client:
            with pytest.raises(errors.Unauthorized):
                await client.topic("orders").write(1)
        async with server.client("reader-key") as client:
            with pytest.raises(errors.Forbidden) as refused:
                await client.topic("orders").write(1)
            assert refused.value.request_id


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate for this machine that nobody else trusts, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    files = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
    wanted = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    wanted += ["-subj", "/CN=localhost"]
    wanted += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", files[0], "-keyout", files[1]]
    subprocess.run([openssl, "req", *wanted], check=True, capture_output=True)
    return files


@on_loop
async def test_https(certificate: tuple[str, str]) -> None:
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(*certificate)
    body = b'{"topic":"t","deleted":true}'

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=here)
    url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with connect(url, ssl_context=ssl.create_default_context(cafile=certificate[0])) as client:
        assert (await soon(client.topic("t").drop())).deleted
    async with connect(url, attempts_max=1) as client:
        with pytest.raises(errors.ConnectionFailed, match=r"(?i)certificate") as failed:
            await soon(client.topic("t").drop())
        assert failed.value.detail == {"sent": False}
    listener.close()


@on_loop
async def test_nobody_speaks_https_there() -> None:
    client = connect("https://127.0.0.1:1", attempts_max=1)
    async with client:
        with pytest.raises(errors.ConnectionFailed, match="cannot connect to https://"):
            await client.topic("orders").state()


@on_loop
async def test_a_closed_client_leaves_no_task_and_no_socket() -> None:
    async with testing.server() as server:
        before = asyncio.all_tasks()
        async with server.client() as client:
            orders = client.topic("orders")
            await orders.create()
            await asyncio.gather(*(orders.write(n) for n in range(50)))
            stream = orders.follow(from_seq=49)
            await soon(anext(stream))
            parked = asyncio.create_task(anext(stream))
            await settle()
        with pytest.raises(errors.ShuttingDown):
            await soon(parked)
        await asyncio.sleep(0)
        left = {task for task in asyncio.all_tasks() - before if "topics/server" not in repr(task)}
        assert left == set()


@on_loop
async def test_a_call_that_is_cancelled_over_tls_ends_its_connection(certificate: tuple[str, str]) -> None:
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(*certificate)
    asked, ended = asyncio.Event(), asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await asyncio.gather(reader.read(), return_exceptions=True)
        ended.set()
        writer.close()

    listener = await asyncio.start_server(never_answer, "127.0.0.1", 0, ssl=here)
    url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with connect(url, ssl_context=ssl.create_default_context(cafile=certificate[0])) as client:
        waiting = asyncio.create_task(client.queue("jobs").claim(lease_ms=1000, wait_ms=5000))
        await soon(asked.wait())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(waiting)
        # A TLS connection has no end of one side alone: the server is told by the end of both.
        await soon(ended.wait())
    listener.close()


@on_loop
async def test_a_client_that_was_not_entered_says_so(tmp_path: Path) -> None:
    client = connect("http://127.0.0.1:9", attempts_max=1)
    for call in (client.topic("orders").state(), client.backup(tmp_path / "backup.tar.gz")):
        with pytest.raises(errors.NotReady, match="is not connected: use the client inside `async with"):
            await call
