"""Many requests over one connection, sent ahead of their answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.client.rig import soon

AHEAD = 32
"""Requests under way at once."""


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str] = field(hash=False)
    body: bytes = b""

    @property
    def text(self) -> bytes:
        lines = {"Host": "localhost", **self.headers}
        if self.body:
            lines |= {"Content-Type": "application/json", "Content-Length": str(len(self.body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{self.method} {self.path} HTTP/1.1\r\n{head}\r\n".encode() + self.body


@dataclass(frozen=True)
class Told:
    status: int
    body: bytes

    @property
    def message(self) -> str:
        try:
            return str(json.loads(self.body)["error"]["message"])
        except (ValueError, KeyError, TypeError):
            return ""


async def ask_all(url: str, asked: Sequence[Asked]) -> list[Told]:
    """The answers, in order. A server that refuses a request before its body has come ends the connection: the rest is
    sent on another one."""
    told: list[Told] = []
    while len(told) < len(asked):
        told += await _ask_some(url, asked[len(told) :])
    return told


async def _ask_some(url: str, asked: Sequence[Asked]) -> list[Told]:
    """The answers that come before the connection ends, of which there is at least one."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    told: list[Told] = []
    try:
        for at in range(0, len(asked), AHEAD):
            some = asked[at : at + AHEAD]
            writer.write(b"".join(each.text for each in some))
            for _ in some:
                answer, is_last = await soon(_read(reader))
                told.append(answer)
                if is_last:
                    return told
        return told
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def ask_head(url: str, asked: Asked) -> Told:
    """The head of an answer that may have no end, on a connection of its own."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(asked.text)
        status, headers = await soon(_head(reader))
        length = headers.get("content-length")
        return Told(status, b"" if length is None else await soon(reader.readexactly(int(length))))
    finally:
        writer.close()
        await writer.wait_closed()


async def read_answer(reader: asyncio.StreamReader) -> Told:
    return (await _read(reader))[0]


async def _read(reader: asyncio.StreamReader) -> tuple[Told, bool]:
    """An answer, and whether it is the last one of the connection."""
    status, headers = await _head(reader)
    is_last = headers.get("connection") == "close"
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while size := int((await reader.readline()).strip(), 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        return Told(status, b"".join(parts)), is_last
    return Told(status, await reader.readexactly(int(headers.get("content-length", 0)))), is_last


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines if line)
    return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}
