"""What every call passes, when something is wrong with the server itself."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from grpc.aio import AioRpcError

from tests.client.rig import on_loop, soon
from tests.server.grpc.test_listener import calling, code_of
from topics import testing
from topics.clock import SystemClock
from topics.engine.engine import Engine
from topics.engine.host import Opener
from topics.engine.opening import opener
from topics.engine.recovery import Progress
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP, HEAPS, methods_of
from topics.secret import Secret
from topics.server.app import MakeOpener, Server
from topics.server.grpc import calls
from topics.server.grpc.calls import CODE_KEY, METHOD, Calls, Served
from topics.server.principal import Scope
from topics.settings import Settings
from topics.storage.committer import Post


@asynccontextmanager
async def serving(
    directory: Path, make_opener: MakeOpener = opener, **others: Any
) -> AsyncIterator[tuple[Server, Any]]:
    settings = Settings(data_dir=str(directory / "data"), port=0, grpc_port=0, throttle_lag_ms=0, **others)
    async with (
        Server(settings, SystemClock(), make_opener) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        yield server, channel


async def refusal(call: Any) -> tuple[grpc.StatusCode, str, str]:
    """The status, our own code, and the words."""
    with pytest.raises(AioRpcError) as caught:
        await call
    error = caught.value
    return error.code(), dict(error.trailing_metadata())[CODE_KEY], error.details()


@on_loop
async def test_a_defect_is_told_by_a_number_that_the_log_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as (server, channel):
        await server.ready()
        host = server._context.host
        assert host is not None
        monkeypatch.setattr(host.engine.heaps, "list", lambda *_: 1 // 0)
        code, ours, words = await refusal(calling(channel, DISHEAP, "ListHeaps")(proto.ListHeapsReq()))
        assert (code, ours) == (grpc.StatusCode.INTERNAL, "internal") and "ZeroDivisionError" not in words
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert line.exc_info is not None and line.exc_info[0] is ZeroDivisionError
    assert words.endswith(vars(line)["fields"]["request_id"])


@on_loop
async def test_a_server_that_drains_takes_no_more_calls(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=Secret("key")) as (server, channel):
        await server.ready()
        server._context.draining = True
        # Before anybody is asked who they are: it is the same for all.
        code, ours, words = await refusal(calling(channel, DISHEAP, "ListHeaps")(proto.ListHeapsReq()))
        assert (code, ours) == (grpc.StatusCode.UNAVAILABLE, "shutting_down") and "ask another one" in words


@on_loop
async def test_a_stream_that_is_not_let_in_is_told_why_once_it_has_said_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client in Python that writes to a call which is over by then would see a fault in place of the refusal."""
    is_heard = asyncio.Event()
    hear = calls._first_message

    async def heard(caller: Any) -> None:
        is_heard.set()
        await hear(caller)

    monkeypatch.setattr(calls, "FIRST_MESSAGE_S", 60)
    monkeypatch.setattr(calls, "_first_message", heard)
    async with serving(tmp_path, api_keys=Secret("key")) as (server, channel):
        await server.ready()
        for message in (proto.WorkRequest(credits=1).SerializeToString(), b"\xff"):
            is_heard.clear()
            call = channel.stream_stream(methods_of(HEAPS)["Work"].path)()
            await soon(is_heard.wait())
            await call.write(message)
            code, ours, _ = await refusal(call.read())
            assert (code, ours) == (grpc.StatusCode.UNAUTHENTICATED, "unauthorized")


@on_loop
async def test_a_stream_that_is_not_let_in_and_says_nothing_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FIRST_MESSAGE_S", 0.01)
    async with serving(tmp_path, api_keys=Secret("key")) as (server, channel):
        await server.ready()
        code, ours, _ = await refusal(calling(channel, HEAPS, "Work")().read())
        assert (code, ours) == (grpc.StatusCode.UNAUTHENTICATED, "unauthorized")


@on_loop
async def test_while_it_recovers_all_that_asks_for_heaps_is_told_to_wait(tmp_path: Path) -> None:
    go_on = Event()

    def held_up(chosen: Settings, on_progress: Progress) -> Opener:
        def slow(post: Post) -> Engine:
            go_on.wait(60)
            return opener(chosen, on_progress)(post)

        return slow

    async with serving(tmp_path, held_up) as (server, channel):
        try:
            for call in (
                calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic="jobs")),
                calling(channel, DISHEAP, "ListHeaps")(proto.ListHeapsReq()),
            ):
                code, ours, words = await refusal(call)
                assert (code, ours) == (grpc.StatusCode.UNAVAILABLE, "not_ready") and "try again soon" in words
        finally:
            go_on.set()
        await server.ready()
        assert (await calling(channel, DISHEAP, "MakeHeap")(proto.MakeHeapReq(topic="jobs"))).topic == "jobs"


@on_loop
async def test_a_stream_whose_client_is_gone_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path) as (server, _):
        await server.ready()
        context = server._context

        class Gone:
            def invocation_metadata(self) -> tuple[()]:
                return ()

            def peer(self) -> str:
                return "ipv4:127.0.0.1:5"

        async def write(asker: Any, caller: Any) -> None:
            assert context.quota.stream_count == 1
            raise grpc.aio.InternalError("the connection is closed")

        method = methods_of(HEAPS)["Work"]
        await asyncio.wait_for(Calls(context)._stream(method, Served(Scope.READ, write))(None, Gone()), 10)
        assert context.quota.stream_count == 0
        assert context.traffic.errors == {} and context.traffic.of(METHOD, method.path).requests == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@on_loop
async def test_what_administers_says_of_what_and_whether_it_was_refused(tmp_path: Path) -> None:
    async with (
        testing.server(tmp_path, no_grpc=False) as server,
        grpc.aio.insecure_channel(server.grpc_address) as channel,
    ):
        made = calling(channel, DISHEAP, "MakeHeap")
        await made(proto.MakeHeapReq(topic="jobs"))
        assert await code_of(made(proto.MakeHeapReq(topic="no such name!"))) is grpc.StatusCode.INVALID_ARGUMENT
    lines = [json.loads(line) for line in (tmp_path / "audit" / "audit.jsonl").read_text().splitlines()]
    assert [(line["name"], line["outcome"]) for line in lines] == [
        ("jobs", "begun"),
        ("jobs", "done"),
        ("no such name!", "begun"),
        ("no such name!", "invalid_request"),
    ]
    assert lines[1]["detail"] == {"created": True, "changed": {"max_retries": {"old": 3, "new": 0}}}


async def silence(begun: asyncio.Event) -> AsyncIterator[bytes]:
    """A call whose message does not come."""
    begun.set()
    await asyncio.Event().wait()
    yield b""


def unsaid(channel: Any, service: str, name: str, *metadata: tuple[str, str]) -> Any:
    """A unary call that has sent its metadata and nothing else."""
    path = methods_of(service)[name].path
    return channel.stream_unary(path)(silence(asyncio.Event()), metadata=metadata)


@on_loop
@pytest.mark.parametrize("key", ["", "wrong", "reader", "dh_0123456789ab_" + "0" * 48])
async def test_call_without_a_good_key_is_refused_before_its_message(key: str, tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=Secret("key,reader:read"), auth=True) as (server, channel):
        await server.ready()
        metadata = [("authorization", f"Bearer {key}")] if key else []
        code, ours, _ = await soon(refusal(unsaid(channel, DISHEAP, "EnqueueBatch", *metadata)))
        refused = (grpc.StatusCode.UNAUTHENTICATED, "unauthorized")
        assert (code, ours) == ((grpc.StatusCode.PERMISSION_DENIED, "forbidden") if key == "reader" else refused)


@on_loop
async def test_key_that_was_never_seen_is_compared_before_the_message_is_read(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=Secret("key"), auth=True) as (server, channel):
        await server.ready()
        address = urlsplit(server.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        body = json.dumps({"name": "n", "scopes": ["read"]}).encode()
        lines = ["POST /v1/keys HTTP/1.1", "Host: localhost", "Authorization: Bearer key"]
        lines += ["Content-Type: application/json", "Connection: close", f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        made = json.loads((await reader.read()).partition(b"\r\n\r\n")[2])
        managed = server._context.authenticator.managed
        assert managed is not None
        managed._verified.clear()
        metadata = [("authorization", f"Bearer {made['key']}")]
        list_heaps = calling(channel, DISHEAP, "ListHeaps")
        for _ in range(2):
            assert not (await list_heaps(proto.ListHeapsReq(), metadata=metadata)).heaps
        managed._verified.clear()
        path = methods_of(DISHEAP)["ListHeaps"].path
        code, ours, _ = await refusal(channel.unary_unary(path)(b"\xff", metadata=metadata))
        assert (code, ours) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_request")
        writer.close()


@on_loop
async def test_few_refused_streams_are_read_from_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_MESSAGE_S", 60)
    async with serving(tmp_path, api_keys=Secret("key")) as (server, channel):
        await server.ready()
        asked = [asyncio.create_task(calling(channel, HEAPS, "Work")().read()) for _ in range(calls.HEARD_OUT_MAX + 2)]
        done = set()
        while len(done) < 2:
            done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=30)
        assert {task.exception().code() for task in done} == {grpc.StatusCode.UNAUTHENTICATED}  # type: ignore[union-attr]
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
