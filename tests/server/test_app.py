from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

import topics
from tests.server.api import Api
from topics.clock import SystemClock
from topics.engine.engine import Engine
from topics.engine.host import Opener
from topics.engine.opening import opener
from topics.engine.recovery import Progress
from topics.errors import Damaged, DirectoryLocked, InvalidSetting
from topics.server import app
from topics.server.app import MakeOpener, Server
from topics.server.signing import DIRECTORY, FILE
from topics.settings import Settings
from topics.storage.committer import Post


def settings(directory: Path, **others: Any) -> Settings:
    return Settings(data_dir=str(directory / "data"), port=0, throttle_lag_ms=0, **({"no_grpc": True} | others))


async def ask(server: Server, method: str, path: str) -> tuple[int, dict[str, str], Any]:
    """One request on a connection of its own."""
    parts = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, msgspec.json.decode(body)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


def test_it_serves_what_is_in_the_directory(tmp_path: Path) -> None:
    with topics.sync.open(tmp_path / "data") as client:
        client.topic("orders").write(1)

    async def test() -> None:
        async with Server(settings(tmp_path), SystemClock()) as server:
            await server.ready()
            assert server.topic_count == 1
            status, _, state = await ask(server, "GET", "/v0/topics/orders")
            assert (status, state["count"]) == (200, 1)
        with topics.sync.open(tmp_path / "data") as client:
            assert client.topic("orders").state().count == 1

    run(test)


def holding_up(begun: Event, go_on: Event) -> MakeOpener:
    """A recovery that takes as long as the test wants, on its own thread."""

    def held_up(chosen: Settings, on_progress: Progress) -> Opener:
        def slow(post: Post) -> Engine:
            on_progress(0.25)
            begun.set()
            go_on.wait(60)
            return opener(chosen, on_progress)(post)

        return slow

    return held_up


def test_who_is_signed_in_is_told_to_wait_while_it_recovers(tmp_path: Path) -> None:
    begun, go_on = Event(), Event()

    async def test() -> None:
        async with Server(settings(tmp_path, auth=True), SystemClock(), holding_up(begun, go_on)) as server:
            try:
                api = Api(server.url)
                answer = await api.call("GET", "/v0/topics", headers={"Cookie": "topics_session=x"})
                assert answer.refusal == (503, "not_ready")
                assert (await api.get("/v0/topics")).refusal == (401, "unauthorized")
            finally:
                go_on.set()
            await server.ready()
            answer = await api.call("GET", "/v0/topics", headers={"Cookie": "topics_session=x"})
            assert answer.refusal == (401, "unauthorized")

    run(test)


def test_probes_are_answered_while_it_recovers_and_all_else_is_told_to_wait(tmp_path: Path) -> None:
    begun, go_on = Event(), Event()
    held_up = holding_up(begun, go_on)

    async def test() -> None:
        async with Server(settings(tmp_path), SystemClock(), held_up) as server:
            try:
                assert (await ask(server, "GET", "/v0/health"))[0] == 200
                await asyncio.to_thread(begun.wait, 60)
                for path in ("/v0/ready", "/v0/topics/orders"):
                    status, headers, answer = await ask(server, "GET", path)
                    assert (status, answer["error"]["code"]) == (503, "not_ready")
                    assert int(headers["retry-after"]) >= 1
                    assert answer["error"]["detail"]["replay_progress"] == 0.25
            finally:
                go_on.set()
            await server.ready()
            assert (await ask(server, "GET", "/v0/ready"))[0] == 200
            assert (await ask(server, "GET", "/v0/topics/orders"))[0] == 404

    run(test)


def test_a_stop_before_it_is_ready_is_noticed(tmp_path: Path) -> None:
    async def test() -> None:
        stop = asyncio.Event()
        async with Server(settings(tmp_path), SystemClock()) as server:
            stop.set()
            await server.ready_before(stop)
        await server.ready()
        with topics.sync.open(tmp_path / "data"):
            pass

    run(test)


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            taken = Settings(data_dir=str(tmp_path / "data"), port=port)
            with pytest.raises(InvalidSetting, match=f"cannot listen on 127.0.0.1 port {port}: .*in use.*TOPICS_PORT"):
                await Server(taken, SystemClock()).start()
        assert not (tmp_path / "data").exists(), "the directory is not touched before the address is had"

    run(test)


def test_a_name_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        nowhere = settings(tmp_path, host="no-such-host.invalid", allow_insecure_no_auth=True)
        with pytest.raises(InvalidSetting, match=r"cannot listen on no-such-host\.invalid"):
            await Server(nowhere, SystemClock()).start()

    run(test)


def test_the_world_is_not_let_in_without_keys(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="TOPICS_API_KEYS"):
        Server(settings(tmp_path, host="0.0.0.0"), SystemClock())


def test_a_directory_that_somebody_has_open_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with Server(settings(tmp_path), SystemClock()) as first:
            await first.ready()
            with pytest.raises(DirectoryLocked):
                async with Server(settings(tmp_path), SystemClock()) as second:
                    await second.ready()
            assert (await ask(first, "GET", "/v0/ready"))[0] == 200

    run(test)


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")

    async def test() -> None:
        async with Server(settings(tmp_path), SystemClock()) as server:
            with pytest.raises(InvalidSetting, match=r"TOPICS_DATA_DIR=.*expected a directory"):
                await server.ready()

    run(test)


def test_closing_twice_and_closing_what_never_started_do_no_harm(tmp_path: Path) -> None:
    async def test() -> None:
        server = Server(settings(tmp_path), SystemClock())
        await server.close()
        await server.start()
        await server.close()
        await server.close()

    run(test)


def test_origins_come_from_the_setting(tmp_path: Path) -> None:
    chosen = settings(tmp_path, cors_origins="https://a.example, https://b.example")
    assert app._http_options(chosen).cors.origins == {"https://a.example", "https://b.example"}
    assert app._http_options(settings(tmp_path)).cors.origins == frozenset()


def test_secrets_that_cannot_be_read_refuse_the_start_and_let_go_of_the_directory(tmp_path: Path) -> None:
    secrets = tmp_path / "data" / DIRECTORY / FILE
    secrets.parent.mkdir(parents=True)
    secrets.write_text("not secrets")

    async def test() -> None:
        async with Server(settings(tmp_path, auth=True), SystemClock()) as server:
            with pytest.raises(Damaged, match=r"does not hold signing secrets .*: remove it, and a new one is made"):
                await server.ready()
            status, _, answer = await ask(server, "GET", "/v0/ready")
            assert (status, answer["error"]["code"]) == (503, "not_ready")
            secrets.unlink()
            async with Server(settings(tmp_path, auth=True), SystemClock()) as second:
                await second.ready()
                assert second.set_up_link.startswith(second.url)

    run(test)


def test_a_start_that_failed_is_closed_without_harm(tmp_path: Path) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            taken = settings(tmp_path, no_grpc=False, grpc_port=other.getsockname()[1])
            server = Server(taken, SystemClock())
            with pytest.raises(InvalidSetting, match="--grpc-port"):
                await server.start()
        await server.close()
        with pytest.raises(ConnectionError):
            await ask(server, "GET", "/v0/health")
        assert not (tmp_path / "data").exists()

    run(test)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ({"host": "127.0.0.1"}, 0),
        ({"host": "0.0.0.0", "no_grpc": False}, 2),
        ({"host": "0.0.0.0", "no_grpc": True}, 1),
        ({"host": "0.0.0.0", "no_grpc": True, "forwarded": True}, 0),
    ],
)
def test_keys_in_plain_text_on_a_network_are_warned_of(
    tmp_path: Path, values: dict[str, Any], texts: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with Server(settings(tmp_path, **({"auth": True, "grpc_port": 0} | values)), SystemClock()) as server:
            await server.ready()

    asyncio.run(scenario())
    assert len([record for record in caplog.records if "in plain text" in record.getMessage()]) == texts
