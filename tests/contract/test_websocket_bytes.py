"""A WebSocket from below: handshakes, frames cut anywhere, frames that are wrong, and clients that vanish."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import CloseCode, Opcode

from tests.client.rig import soon
from tests.contract.sockets import socket_count
from tests.server.api import serving
from tests.server.wsrig import HANDSHAKE, Rig, run

MASK = b"\x5a\x00\xff\x81"
PING = b'{"op":"ping","request_id":"still here"}'


def frame(opcode: Opcode, data: bytes, fin: bool = True) -> bytes:
    """As a client sends it, or would if it might: wrong ones, too."""
    size = len(data)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = struct.pack(">BH", 0xFE, size) if size < 1 << 16 else struct.pack(">BQ", 0xFF, size)
    masked = bytes(byte ^ MASK[at % 4] for at, byte in enumerate(data))
    return bytes([opcode | (0x80 if fin else 0)]) + length + MASK + masked


def text(data: bytes) -> bytes:
    return frame(Opcode.TEXT, data)


def close_frame(code: int, reason: bytes = b"") -> bytes:
    return frame(Opcode.CLOSE, struct.pack(">H", code) + reason)


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Opcode and payload of what the server sends: one whole frame, not masked."""
    first, second = await soon(reader.readexactly(2))
    assert first & 0xF0 == 0x80 and second < 128
    size = second
    if size > 125:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    return first & 15, await soon(reader.readexactly(size))


async def said(reader: asyncio.StreamReader) -> dict[str, Any]:
    opcode, payload = await read_frame(reader)
    assert opcode == Opcode.TEXT, payload
    found = json.loads(payload)
    assert isinstance(found, dict)
    return found


async def closed_with(reader: asyncio.StreamReader) -> int:
    opcode, payload = await read_frame(reader)
    assert opcode == Opcode.CLOSE
    assert await soon(reader.read()) == b"", "nothing comes behind a close frame but the end"
    return int.from_bytes(payload[:2], "big")


def hang_up(writer: asyncio.StreamWriter) -> None:
    """Vanish with a RST."""
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


# ---- handshakes


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ((b"Upgrade: websocket\r\n", b""), 426),
        ((b"Connection: Upgrade\r\n", b""), 426),
        ((b"Upgrade: websocket", b"Upgrade: h2c"), 426),
        ((b"Version: 13", b"Version: 12"), 426),
        ((b"Sec-WebSocket-Version: 13\r\n", b""), 400),
        ((b"dGhlIHNhbXBsZSBub25jZQ==", b"short"), 400),
        ((b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b""), 400),
        ((b"HTTP/1.1", b"HTTP/1.0"), 426),
        ((b"GET", b"POST"), 405),
        ((b"Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b"Key: dGhlIHNhbXBsZSBub25jZQ==\r\nUPGRADE: x\r\n"), 101),
        ((b"websocket\r\n", b"WebSocket\r\n"), 101),
    ],
)
def test_a_handshake_is_right_or_refused(tmp_path: Path, change: tuple[bytes, bytes], status: int) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await asyncio.open_connection(rig.api.address.hostname, rig.api.address.port)
        writer.write(HANDSHAKE.replace(*change))
        head = (await soon(reader.readuntil(b"\r\n\r\n"))).decode()
        assert int(head.split()[1]) == status, head
        if status == 426:
            assert "\r\nUpgrade: websocket\r\n" in head and "\r\nSec-WebSocket-Version: 13\r\n" in head
        if status == 101:
            assert "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
        writer.close()

    run(tmp_path, scenario)


# ---- frames


def test_a_message_may_come_in_fragments_with_control_frames_between(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        writer.write(
            frame(Opcode.TEXT, PING[:5], fin=False)
            + frame(Opcode.PING, b"are you there")
            + frame(Opcode.CONT, b"", fin=False)
            + frame(Opcode.PONG, b"unasked")
            + frame(Opcode.CONT, PING[5:])
        )
        heard = dict([await read_frame(reader), await read_frame(reader)])
        assert heard[Opcode.PONG] == b"are you there"
        assert json.loads(heard[Opcode.TEXT])["request_id"] == "still here"
        writer.close()

    run(tmp_path, scenario)


def test_a_message_may_be_cut_anywhere(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        message = text(PING)
        for at in range(len(message) + 1):
            writer.write(message[:at])
            await writer.drain()
            await asyncio.sleep(0)
            writer.write(message[at:])
            assert (await said(reader))["op"] == "pong"
        for at in range(len(message)):
            writer.write(message[at : at + 1])
            await writer.drain()
            await asyncio.sleep(0)
        assert (await said(reader))["op"] == "pong"
        writer.close()

    run(tmp_path, scenario)


@pytest.mark.parametrize("size", [125, 126, 65535, 65536, 200_000])
def test_every_length_of_frame(tmp_path: Path, size: int) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        body = b'{"op":"publish","topic":"jobs","records":[{"data":"%b"}]}' % (b"x" * size)
        writer.write(text(body))
        assert (await said(reader))["op"] == "ack"
        writer.write(text(b'{"op":"subscribe","topic":"jobs"}'))
        heard = {each["op"]: each for each in [await said(reader) for _ in range(3)]}
        assert set(heard) == {"subscribed", "record", "caught_up"}
        assert heard["record"]["records"][0]["data"] == "x" * size
        writer.close()

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff", b'{"op":"ping","request_id":"b"}'], ids=["empty", "bytes", "JSON in bytes"]
)
def test_a_binary_message_is_answered_and_the_connection_stays(tmp_path: Path, data: bytes) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        writer.write(frame(Opcode.BINARY, data[:1], fin=False) + frame(Opcode.CONT, data[1:]) + text(PING))
        error = await said(reader)
        assert (error["op"], error["code"]) == ("error", "invalid_request")
        assert error["request_id"] == ("b" if b"ping" in data else None)
        assert (await said(reader))["op"] == "pong"
        writer.close()

    run(tmp_path, scenario)


FATAL: dict[str, tuple[bytes, CloseCode, str]] = {
    "too large": (text(b"x" * 1001), CloseCode.MESSAGE_TOO_BIG, "payload_too_large"),
    "said to be too large": (b"\x81\xff" + b"\x7f" + b"\xff" * 7, CloseCode.MESSAGE_TOO_BIG, "payload_too_large"),
    "too large in fragments": (
        frame(Opcode.TEXT, b"x" * 600, fin=False) + frame(Opcode.CONT, b"x" * 600),
        CloseCode.MESSAGE_TOO_BIG,
        "payload_too_large",
    ),
    "not UTF-8": (text(b'{"op":"\xff"}'), CloseCode.INVALID_DATA, "invalid_request"),
    "half a character": (text(b'{"op":"ping"}\xc3'), CloseCode.INVALID_DATA, "invalid_request"),
    "not masked": (b"\x81\x05hello", CloseCode.PROTOCOL_ERROR, ""),
    "reserved bit": (b"\xc1\x80aaaa", CloseCode.PROTOCOL_ERROR, ""),
    "unknown opcode": (b"\x83\x80aaaa", CloseCode.PROTOCOL_ERROR, ""),
    "fragmented control frame": (frame(Opcode.PING, b"", fin=False), CloseCode.PROTOCOL_ERROR, ""),
    "long control frame": (frame(Opcode.PING, b"x" * 126), CloseCode.PROTOCOL_ERROR, ""),
    "continues nothing": (frame(Opcode.CONT, b"x"), CloseCode.PROTOCOL_ERROR, ""),
    "new message inside another": (frame(Opcode.TEXT, b"x", fin=False) + text(b"y"), CloseCode.PROTOCOL_ERROR, ""),
    "close with one byte": (frame(Opcode.CLOSE, b"x"), CloseCode.PROTOCOL_ERROR, ""),
    "close with a code that is none": (close_frame(999), CloseCode.PROTOCOL_ERROR, ""),
    "close with a reason that is no text": (close_frame(1000, b"\xff"), CloseCode.INVALID_DATA, ""),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_ends_a_connection_says_why(tmp_path: Path, name: str) -> None:
    sent, code, error = FATAL[name]

    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        writer.write(text(PING) + sent)
        assert (await said(reader))["op"] == "pong", "what came before is answered"
        if error:
            assert (await said(reader))["code"] == error
        assert await closed_with(reader) == code
        writer.close()

    run(tmp_path, scenario, max_body_bytes=1000, max_record_bytes=500)


@pytest.mark.parametrize("body", [b"", struct.pack(">H", 1000) + b"bye", struct.pack(">H", 3000)])
def test_a_close_frame_is_repeated(tmp_path: Path, body: bytes) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        writer.write(frame(Opcode.CLOSE, body) + text(PING))
        assert await read_frame(reader) == (Opcode.CLOSE, body)
        assert await soon(reader.read()) == b""
        writer.close()

    run(tmp_path, scenario)


# ---- fuzz

pieces = st.one_of(
    st.builds(text, st.sampled_from([PING, b"{", b'{"op":"subscribe","topic":"*"}', b"\xff", b""])),
    st.builds(
        frame,
        st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.CONT, Opcode.PING, Opcode.PONG, Opcode.CLOSE]),
        st.binary(max_size=130),
        st.booleans(),
    ),
    st.binary(max_size=20),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a server on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = serving(tmp_path_factory.mktemp("served"))
    try:
        api = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        assert api.address.hostname is not None and api.address.port is not None
        yield api.address.hostname, api.address.port
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def exchanged(address: tuple[str, int], sent: list[bytes]) -> list[tuple[int, bytes]]:
    """The frames that come back."""
    with socket.create_connection(address, timeout=30) as connected:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.sendall(HANDSHAKE)
        got = b""
        while b"\r\n\r\n" not in got:
            got += connected.recv(65536)
        try:
            for each in sent:
                connected.sendall(each)
            connected.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass  # it was closed for what came before
        while more := connected.recv(65536):
            got += more
    return frames_of(got.partition(b"\r\n\r\n")[2])


def frames_of(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while data:
        size, at = data[1], 2
        if size > 125:
            at += 2 if size == 126 else 8
            size = int.from_bytes(data[2:at], "big")
        assert len(data) >= at + size, "a frame is whole"
        found.append((data[0] & 15, data[at : at + size]))
        data = data[at + size :]
    return found


def told(frames: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """What does not depend on the packets. A pong may come before or behind what was asked in the same one, and of two
    wrong things in one the second may be found first, which is then the reason of the close frame."""
    return sorted((opcode, b"" if opcode == Opcode.CLOSE else payload) for opcode, payload in frames)


@given(st.data())
def test_no_bytes_cut_anywhere_break_the_server(served: tuple[str, int], data: st.DataObject) -> None:
    """The same nonsense in other pieces leads to the same answers, and the next client is served."""
    stream = b"".join(data.draw(st.lists(pieces, max_size=8), label="pieces"))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=6), label="cuts"))
    whole = exchanged(served, [stream])
    cut = exchanged(served, [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)])
    assert told(whole) == told(cut)
    assert exchanged(served, [text(PING)]) == [(Opcode.TEXT, b'{"op":"pong","request_id":"still here"}')]


# ---- clients that vanish


def test_a_reset_in_the_middle_of_anything_frees_everything(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", *range(100))
        for sent in (
            b"",
            text(PING)[:3],
            text(b'{"op":"subscribe","topic":"jobs"}'),
            text(b'{"op":"publish","topic":"jobs","records":[{"data":1}]}') * 50,
            frame(Opcode.TEXT, b"{", fin=False),
        ):
            _, writer = await rig.call()
            writer.write(sent)
            await writer.drain()
            assert rig.stream_count == 1
            hang_up(writer)
            await rig.until(lambda: rig.stream_count == 0)
            await rig.until(lambda: rig.watched_count == 0)

    run(tmp_path, scenario)


def test_hundreds_of_sockets_leave_nothing_behind(tmp_path: Path) -> None:
    count = 300

    async def crowd(rig: Rig) -> None:
        callers = [await rig.call() for _ in range(count)]
        for _, writer in callers:
            writer.write(text(b'{"op":"subscribe","topic":"jobs","tail":true}'))
        for reader, _ in callers:
            assert [(await said(reader))["op"] for _ in range(2)] == ["subscribed", "caught_up"]
        assert (rig.stream_count, rig.watched_count) == (count, 1)
        await rig.api.write("jobs", "news")
        for reader, _ in callers:
            assert (await said(reader))["records"][0]["data"] == "news"
        for number, (_, writer) in enumerate(callers):
            match number % 3:
                case 0:
                    hang_up(writer)
                case 1:
                    writer.write(close_frame(1000))
                    writer.close()
                case 2:
                    writer.close()
        await rig.until(lambda: rig.stream_count == 0 and rig.watched_count == 0)
        await rig.until(lambda: len(rig.server._connections) == 0)

    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 1)
        await crowd(rig)
        gc.collect()
        before = (socket_count(), len(asyncio.all_tasks()), len(gc.get_objects()))
        await crowd(rig)
        gc.collect()
        after = (socket_count(), len(asyncio.all_tasks()), len(gc.get_objects()))
        assert after[:2] == before[:2]
        assert after[2] - before[2] < count, "not one object a connection"

    run(tmp_path, scenario)
