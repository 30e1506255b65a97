"""What a client says and hears: a request as bytes, an answer out of bytes, and events out of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httptools
import msgspec

KEY: Final = "sim"
"""What every client brings, but those who try without."""


def request_bytes(
    method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, key: str = KEY
) -> bytes:
    """A request as it goes over the wire; a body is JSON, or bytes of the type that the headers name."""
    content = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = [f"{method} {path} HTTP/1.1", "Host: topics"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if content:
        lines.append(f"Content-Length: {len(content)}")
    if content and not isinstance(body, bytes):
        lines.append("Content-Type: application/json")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


class ResponseReader:
    """Takes the bytes of one answer. `on_body` gets the body as it comes; `is_whole` says that it has ended."""

    def __init__(self, on_body: Callable[[bytes], None] | None = None) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._given = on_body
        self.headers: dict[bytes, bytes] = {}
        """By their names in small letters."""
        self.body = bytearray()
        self.is_whole = False
        self.broken = False

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.broken = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, data: bytes) -> None:
        if self._given is None:
            self.body += data
        else:
            self._given(data)

    def on_message_complete(self) -> None:
        self.is_whole = True

    @property
    def status(self) -> int:
        return int(self._parser.get_status_code())

    def fields(self) -> dict[str, Any]:
        """A JSON body; nothing when it is something else."""
        decoded = msgspec.json.decode(bytes(self.body)) if self.body[:1] == b"{" else {}
        assert isinstance(decoded, dict)
        return decoded


@dataclass(slots=True)
class Frame:
    """One event of a stream."""

    event: str = ""
    id: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)


class FrameReader:
    """Cuts server-sent events out of bytes, however they come."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            frame = _frame(block.decode())
            if frame.event:
                yield frame


def _frame(block: str) -> Frame:
    found = Frame()
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            found.event = value
        elif name == "id":
            found.id = value
        elif name == "data":
            found.fields = msgspec.json.decode(value)
    return found
