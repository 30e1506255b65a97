"""Reading event streams in tests: the frames of server-sent events, from bytes or from a socket."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.client.rig import soon
from tests.server.api import Api


@dataclass(frozen=True)
class Frame:
    """One block of a stream, as the standard reads it."""

    event: str = ""
    data: str = ""
    id: str | None = None
    retry: int | None = None
    comment: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        found = json.loads(self.data)
        assert isinstance(found, dict)
        return found

    @property
    def positions(self) -> dict[str, Any]:
        """What the id stands for."""
        assert self.id is not None
        return decoded(self.id)

    @property
    def seqs(self) -> list[int]:
        return [record["$seq"] for record in self.fields["records"]]


def decoded(event_id: str) -> dict[str, Any]:
    found = json.loads(urlsafe_b64decode(event_id + "=" * (-len(event_id) % 4)))
    assert isinstance(found, dict)
    return found


def parse_frame(block: bytes) -> Frame:
    values: dict[str, Any] = {}
    data: list[str] = []
    for line in block.decode().split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif not name:
            values["comment"] = value
        else:
            assert name in ("event", "id", "retry"), line
            values[name] = int(value) if name == "retry" else value
    return Frame(data="\n".join(data), **values)


def split_frames(received: bytes) -> tuple[list[Frame], bytes]:
    """The whole frames that bytes begin with, and what is left of them."""
    *blocks, rest = received.split(b"\n\n")
    return [parse_frame(block) for block in blocks], rest


class Listening:
    """An open stream. `next` waits for a frame; heartbeats are left out unless asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.beats: list[str] = []
        self._rest = b""
        self._frames: list[Frame] = []

    async def head(self) -> None:
        text = (await soon(self.reader.readuntil(b"\r\n\r\n"))).decode()
        status, *lines = text.strip().split("\r\n")
        self.status = int(status.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    async def next(self, *, beats: bool = False) -> Frame:
        while True:
            while not self._frames:
                found, self._rest = split_frames(self._rest + await self._receive())
                self._frames = found
            frame = self._frames.pop(0)
            if frame.comment:
                self.beats.append(frame.comment)
                if not beats:
                    continue
            return frame

    async def until(self, event: str) -> list[Frame]:
        """Frames up to the first of a kind, that one included."""
        found = [await self.next()]
        while found[-1].event != event:
            found.append(await self.next())
        return found

    async def rest(self) -> list[Frame]:
        """All frames until the server ends the stream."""
        found = self._frames
        received = self._rest
        while piece := await self._receive():
            received += piece
        frames, left = split_frames(received)
        assert left == b"", "the last frame is whole"
        return [frame for frame in [*found, *frames] if not frame.comment]

    async def _receive(self) -> bytes:
        """One piece of the body; empty at its end."""
        if self.headers.get("transfer-encoding") != "chunked":
            return await soon(self.reader.read(1 << 16))
        size = int(await soon(self.reader.readuntil(b"\r\n")), 16)
        piece = await soon(self.reader.readexactly(size))
        assert await soon(self.reader.readexactly(2)) == b"\r\n"
        return piece

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def listening(
    api: Api, path: str, headers: Mapping[str, str] | None = None, version: str = "1.1"
) -> AsyncIterator[Listening]:
    """A stream whose head has come."""
    sent = {"Host": "localhost", "Accept": "text/event-stream"}
    if api.key is not None:
        sent["Authorization"] = f"Bearer {api.key}"
    sent |= headers or {}
    reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port, limit=1 << 22)
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value)
    writer.write(f"GET {path} HTTP/{version}\r\n{lines}\r\n".encode())
    stream = Listening(reader, writer)
    try:
        await stream.head()
        yield stream
    finally:
        await stream.close()


async def watching(api: Api, topics: Mapping[str, Any], **options: Any) -> str:
    """Make a session; where its stream is."""
    answer = await api.post("/v0/watch", {"topics": topics, **options})
    assert answer.status == 200, answer.body
    url = answer.body["stream_url"]
    assert isinstance(url, str)
    return url
