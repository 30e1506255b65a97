"""Managed keys and sessions on the ways in that are not plain HTTP: WebSocket, gRPC, claims on an open connection."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc.aio import AioRpcError
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.client.rig import on_loop, soon
from tests.server.accountrig import ADMIN_KEY, Served, accounts_served
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP, methods_of


async def made(served: Served, **fields: object) -> dict[str, Any]:
    served.api.key = ADMIN_KEY
    return (await served.api.post("/v1/keys", {"name": "ci", "scopes": ["read", "write"]} | fields)).body


def socket_url(served: Served) -> str:
    return served.server.url.replace("http", "ws") + "/v0/ws"


async def asked(socket: Any, **command: object) -> dict[str, Any]:
    await socket.send(json.dumps(command))
    found: dict[str, Any] = json.loads(await soon(socket.recv()))
    return found


@on_loop
async def test_a_socket_of_a_key_that_is_revoked_is_told_and_closed(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
        headers = {"Authorization": f"Bearer {new['key']}"}
        async with connect(socket_url(served), additional_headers=headers) as socket:
            publish = {"op": "publish", "topic": "t", "records": [{"data": 1}]}
            assert (await asked(socket, **publish))["op"] == "ack"
            await served.api.delete(f"/v1/keys/{new['id']}")
            with pytest.raises(ConnectionClosed):
                while True:
                    await soon(socket.recv())
        with pytest.raises(InvalidStatus) as refused:
            await connect(socket_url(served), additional_headers=headers)
        assert refused.value.response.status_code == 401


@on_loop
async def test_a_socket_of_a_session_is_for_pages_of_this_server(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        browser = await served.signed_up()
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        own = served.server.url
        async with connect(socket_url(served), additional_headers=cookie, origin=own) as socket:  # type: ignore[arg-type]
            assert (await asked(socket, op="ping"))["op"] == "pong"
        with pytest.raises(InvalidStatus) as refused:
            await connect(socket_url(served), additional_headers=cookie, origin="http://evil.example")  # type: ignore[arg-type]
        assert refused.value.response.status_code == 403


@on_loop
async def test_a_role_that_shrinks_counts_on_an_open_socket(tmp_path: Path) -> None:
    async with accounts_served(tmp_path) as served:
        admin = await served.signed_up()
        operator = await served.invited(admin, "op@x.org", "operator")
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in operator.cookies.items())}
        async with connect(socket_url(served), additional_headers=cookie) as socket:
            publish = {"op": "publish", "topic": "t", "records": [{"data": 1}]}
            assert (await asked(socket, **publish))["op"] == "ack"
            await admin.call("PATCH", "/v1/users/op@x.org", {"role": "viewer"})
            answer = await asked(socket, **publish)
            assert (answer["op"], answer["code"]) == ("error", "forbidden")


@on_loop
async def test_gRPC_takes_them_and_its_refusals_and_deeds_are_noted(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY, no_grpc=None, grpc_port="0") as served:
        new = await made(served, scopes=["read", "write", "admin"])
        async with grpc.aio.insecure_channel(served.server.grpc_address) as channel:

            def calling(name: str) -> Any:
                method = methods_of(DISHEAP)[name]
                return channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)

            key = (("authorization", f"Bearer {new['key']}"),)
            await calling("MakeHeap")(proto.MakeHeapReq(topic="jobs"), metadata=key)
            await calling("Enqueue")(proto.EnqueueReq(topic="jobs"), metadata=key)
            await served.api.delete(f"/v1/keys/{new['id']}")
            with pytest.raises(AioRpcError) as refused:
                await calling("Enqueue")(proto.EnqueueReq(topic="jobs"), metadata=key)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
            entries = (await served.api.get("/v1/audit")).body["entries"]
        noted = [(entry["action"].rpartition("/")[2], entry["over"], entry["outcome"]) for entry in reversed(entries)]
        assert noted == [
            *(("create_key", "http", outcome) for outcome in ("begun", "done")),
            *(("MakeHeap", "grpc", outcome) for outcome in ("begun", "done")),
            *(("revoke_key", "http", outcome) for outcome in ("begun", "done")),
            ("key_refused", "grpc", "unauthorized"),
        ]
        assert entries[3]["who"] == "ci" and entries[3]["key"] == f"dh_{new['id']}"


@on_loop
async def test_claims_on_an_open_connection_end_with_the_key(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
        await served.api.put("/v0/topics/jobs", {"type": "queue"})
        await served.api.write("jobs", *range(20))
        body = b'{"node":"n","max":1}'
        request = (
            b"POST /v0/topics/jobs/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %b\r\nContent-Length: %d\r\n\r\n%b" % (new["key"].encode(), len(body), body)
        )
        reader, writer = await asyncio.open_connection(served.api.address.hostname, served.api.address.port)

        async def send() -> int:
            writer.write(request)
            head = await soon(reader.readuntil(b"\r\n\r\n"))
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            return int(head.split()[1])

        assert [await send() for _ in range(4)] == [200] * 4
        await served.api.delete(f"/v1/keys/{new['id']}")
        assert [await send() for _ in range(2)] == [401] * 2
        writer.close()
        await writer.wait_closed()
