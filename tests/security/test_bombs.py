"""Small requests that mean a lot of work or memory: refused with a word why, in bounded memory."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import grpc
import pyarrow as pa
import pytest
from grpc.aio import AioRpcError

from tests.client.rig import on_loop, soon
from tests.security.peak import grows_at_most
from tests.server.api import Api, serving
from tests.server.wsrig import HANDSHAKE
from topics import testing
from topics.limits import KIB, MIB, NESTING_MAX
from topics.proto import messages as proto
from topics.proto.messages import DISHEAP, HEAPS, methods_of

BODY_BYTES_MAX = 4 * MIB
BOMB_BYTES = 128 * MIB
ROOM = 64 * MIB
"""What a refusal may cost at its peak: a few copies of the largest body, and what lies around."""
MESSAGE_TOO_BIG = (1009).to_bytes(2, "big")
GZIP = grpc.Compression.Gzip
LONG = "x" * (2 * BODY_BYTES_MAX)
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def gzipped(count_bytes: int) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    piece = bytes(1 * MIB)
    return b"".join(packer.compress(piece) for _ in range(count_bytes // len(piece))) + packer.flush()


def deep(opening: bytes, closing: bytes, depth: int) -> bytes:
    return opening * depth + b"1" + closing * depth


def bounded(directory: Path) -> AbstractAsyncContextManager[Api]:
    return serving(directory, max_body_bytes=BODY_BYTES_MAX, ws_compression=1)


async def alive(api: Api) -> None:
    assert (await api.post("/v0/topics/alive", {"records": [{"data": 1}]})).status in (200, 201)


@on_loop
async def test_a_gzip_bomb(tmp_path: Path) -> None:
    bomb = gzipped(BOMB_BYTES)
    assert len(bomb) < 2 * MIB
    async with bounded(tmp_path) as api:
        await alive(api)
        with grows_at_most(ROOM):
            answer = await api.post("/v0/topics/a", bomb, {"Content-Encoding": "gzip"})
        assert answer.refusal == (413, "payload_too_large")
        # Many small members, each of which is a copy of all that follows it.
        many = await api.post("/v0/topics/a", gzipped(0) * 50_000, {"Content-Encoding": "gzip"})
        assert many.refusal == (400, "invalid_request")
        await alive(api)


@on_loop
async def test_a_bomb_in_a_websocket(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    payload = packer.compress(b" " * BOMB_BYTES) + packer.flush(zlib.Z_SYNC_FLUSH)[:-4]
    frame = b"\xc1\xff" + len(payload).to_bytes(8, "big") + bytes(4) + payload
    handshake = HANDSHAKE.replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
    async with bounded(tmp_path) as api:
        reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
        writer.write(handshake)
        assert b"permessage-deflate" in await soon(reader.readuntil(b"\r\n\r\n"))
        with grows_at_most(ROOM):
            writer.write(frame)
            said = await soon(reader.read())
        assert b"payload_too_large" in said and MESSAGE_TOO_BIG in said, "it is told why, and the connection ends"
        writer.close()
        await writer.wait_closed()
        await alive(api)


@on_loop
async def test_json_that_is_deep_or_has_endless_numbers(tmp_path: Path) -> None:
    digits = b"9" * (1 * MIB)
    async with bounded(tmp_path) as api:
        for path, body in (
            ("/v0/topics/a", b'{"records":[{"data":%b}]}' % deep(b"[", b"]", NESTING_MAX * 100)),
            ("/v0/topics/a", b'{"records":[{"data":1,"meta":%b}]}' % deep(b'{"a":', b"}", NESTING_MAX * 100)),
            ("/v0/topics/a", deep(b"[", b"]", 500_000)),
            ("/v0/topics/a", b'{"records":[{"data":1}],"sequence":%b}' % digits),
            ("/v0/topics/a", b'{"records":[{"data":1}],"delay_ms":1e%b}' % digits),
            ("/v0/topics/a/diff", b'{"from_seq":%b}' % digits),
            ("/v0/topics/a/diff", b'{"match":%b}' % deep(b"[", b"]", 100_000)),
            ("/v0/sql", b'{"sql":"SELECT %b"}' % deep(b"(", b")", 5_000)),
            ("/v0/sql", b'{"sql":"SELECT %b 1"}' % (b"NOT " * 5_000)),
            ("/v0/sql", b'{"sql":"SELECT %b"}' % (b"1," * 400_000)),
            ("/v0/sql", b'{"sql":"INSERT INTO TOPIC a VALUES %b"}' % (b"(1)," * 200_000)),
            ("/v0/sql", b'{"sql":"%b"}' % (b";" * 1_000_000)),
            ("/v0/watch", b'{"topics":{%b}}' % b",".join(b'"t%d":{}' % n for n in range(20_000))),
        ):
            with grows_at_most(4 * ROOM):
                answer = await api.post(path, body)
            assert 400 <= answer.status < 500, (path, body[:60], answer.raw[:200])
            assert answer.error["message"]
        # A number stays the text it is, however long: nobody makes a number of it.
        kept = await api.post("/v0/topics/a", b'{"records":[{"data":%b}]}' % b"9".ljust(10_000, b"9"))
        assert kept.status == 201
        await alive(api)


def stream(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def arrow_bombs() -> dict[str, bytes]:
    texts = pa.table({"data": ["1"] * 1_000})
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), pa.array(["x" * (1 * MIB)]))
    nothing = pa.RecordBatch.from_arrays([pa.nulls(1_000_000)], names=["data"])
    return {
        "compressed with zstd": stream(pa.table({"data": ["0" * MIB]}), compression="zstd"),
        "compressed with lz4": stream(pa.table({"data": ["0" * MIB]}), compression="lz4"),
        "a dictionary of tags": stream(pa.table({"data": ["1"] * 10_000, "tag": long})),
        "a dictionary of data": stream(pa.table({"data": long})),
        "a million nulls": stream(pa.Table.from_batches([nothing])),
        "repeated runs": stream(
            pa.table({"data": pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1]), pa.array(["1" * 1024]))})
        ),
        "a length beyond the body": stream(texts).replace((1_000).to_bytes(8, "little"), (2**62).to_bytes(8, "little")),
        "a negative length": stream(texts).replace((1_000).to_bytes(8, "little"), b"\xff" * 8),
        "a head without end": b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    }


@on_loop
async def test_arrow_that_says_more_than_it_is(tmp_path: Path) -> None:
    async with bounded(tmp_path) as api:
        assert (await api.post("/v0/topics/a", stream(pa.table({"data": ["1"]})), ARROW)).status == 201
        for name, body in arrow_bombs().items():
            assert len(body) <= BODY_BYTES_MAX, name
            with grows_at_most(ROOM):
                answer = await api.post("/v0/topics/a", body, ARROW)
            assert answer.status == 400 and answer.error["message"], (name, answer.raw[:200])
        await alive(api)


@on_loop
async def test_heads_that_are_too_large(tmp_path: Path) -> None:
    async with bounded(tmp_path) as api:
        many = {f"X-{number}": "y" * 16 for number in range(10_000)}
        for headers, path in ((many, "/v0/topics"), ({"X-A": "y" * (1 * MIB)}, "/v0/topics"), ({}, "/v0/" + "a" * MIB)):
            with grows_at_most(ROOM):
                answer = await api.call("GET", path, headers=headers)
            assert answer.refusal == (431, "headers_too_large")
        assert (await api.get("/v0/topics?" + "a=b&" * 10_000)).status in (400, 200)
        await alive(api)


@on_loop
async def test_messages_and_metadata_that_are_too_large_for_grpc(tmp_path: Path) -> None:
    enqueue, work = methods_of(DISHEAP)["Enqueue"], methods_of(HEAPS)["Work"]
    options = [("grpc.max_send_message_length", -1), ("grpc.max_metadata_size", 64 * MIB)]
    async with (
        testing.server(no_grpc=False, max_body_bytes=BODY_BYTES_MAX) as server,
        grpc.aio.insecure_channel(server.grpc_address, options=options) as channel,
    ):
        call = channel.unary_unary(enqueue.path, enqueue.request.SerializeToString, enqueue.response.FromString)
        with grows_at_most(2 * ROOM):
            with pytest.raises(AioRpcError) as refused:
                await soon(call(proto.EnqueueReq(topic="a", payload=bytes(8 * BODY_BYTES_MAX))))
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with grows_at_most(2 * ROOM):
            with pytest.raises(AioRpcError) as refused:
                packed = call(proto.EnqueueReq(topic="a", payload=bytes(8 * BODY_BYTES_MAX)), compression=GZIP)
                await soon(packed)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, "what it is when it is unpacked counts"
            working = channel.stream_stream(work.path, work.request.SerializeToString, work.response.FromString)()
            await working.write(proto.WorkRequest(settle=proto.Settle(acks=[{"lease_token": LONG}])))
            assert await soon(working.code()) is grpc.StatusCode.RESOURCE_EXHAUSTED
        for metadata in ([("x", "y" * (256 * KIB))], [(f"x-{number}", "y" * 64) for number in range(5_000)]):
            with pytest.raises(AioRpcError):
                await soon(call(proto.EnqueueReq(topic="a"), metadata=metadata))
        with pytest.raises(AioRpcError) as missing:
            await soon(call(proto.EnqueueReq(topic="a")))
        assert missing.value.code() is grpc.StatusCode.NOT_FOUND, "the server goes on"
