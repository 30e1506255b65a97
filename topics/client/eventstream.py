"""Server-sent events out of bytes, however these are cut into pieces."""

from __future__ import annotations

from typing import NamedTuple


class ServerEvent(NamedTuple):
    name: str
    id: str
    """Empty when the event has none."""
    data: bytes


class EventParser:
    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._id = ""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """The events that are whole with this piece. Comments and what has no data are left out."""
        *lines, self._rest = (self._rest + piece).split(b"\n") if b"\n" in piece else (self._rest + piece,)
        events = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line:
                self._take(line)
                continue
            if self._data:
                events.append(ServerEvent(self._name or "message", self._id, b"\n".join(self._data)))
            self._name, self._id, self._data = "", "", []
        return events

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"event":
                self._name = value.decode(errors="replace")
            case b"id":
                self._id = value.decode(errors="replace")
            case b"data":
                self._data.append(value)
            case _:
                return
