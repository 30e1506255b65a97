"""Asking a server about itself, one plain request at a time: health, readiness, metrics.

Not a client: it answers also where a client could not work, on a server that is still recovering or refuses the key.
"""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from topics.clock import Clock, SystemClock
from topics.errors import ConnectionFailed, InvalidRequest, TimedOut
from topics.jsontext import NOT_UNDERSTOOD

TIMEOUT_S = 10.0
NS_PER_MS = 1_000_000
BODY_BYTES_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    fields: dict[str, Any]
    """The JSON object it answered; empty when it was none."""
    elapsed_ms: float
    server_now_ms: int | None
    """The server's clock, to the second, where it says."""

    @property
    def error(self) -> dict[str, Any]:
        """The error object, empty when all went well."""
        error = self.fields.get("error")
        return error if isinstance(error, dict) else {}


class Probe:
    def __init__(self, url: str, key: str | None, clock: Clock | None = None, timeout_s: float = TIMEOUT_S) -> None:
        expected = "http://HOST:PORT or https://HOST:PORT"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InvalidRequest(f"{url} is no address: {error}; expected {expected}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest(f"{url} is no address of a server; expected {expected}")
        self.url = url.rstrip("/")
        self.host = parts.hostname
        self.is_tls = parts.scheme == "https"
        self._port = port
        self._path = parts.path.rstrip("/")
        self._headers = {"accept": "application/json"} | ({} if key is None else {"authorization": f"Bearer {key}"})
        self._clock = clock or SystemClock()
        self._timeout_s = timeout_s

    def get(self, path: str) -> Answer:
        make = http.client.HTTPSConnection if self.is_tls else http.client.HTTPConnection
        connection = make(self.host, self._port, timeout=self._timeout_s)
        started_ns = self._clock.ticks_ns()
        try:
            connection.request("GET", self._path + path, headers=self._headers)
            response = connection.getresponse()
            body = response.read(BODY_BYTES_MAX)
        except TimeoutError:
            raise TimedOut(f"{self.url} does not answer within {self._timeout_s:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConnectionFailed(f"{self.url} cannot be reached: {why}") from None
        finally:
            connection.close()
        elapsed_ms = (self._clock.ticks_ns() - started_ns) / NS_PER_MS
        return Answer(response.status, _object(body), elapsed_ms, _date_ms(response.headers.get("date")))


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(body)
    except NOT_UNDERSTOOD:
        return {}
    return fields if isinstance(fields, dict) else {}


def _date_ms(text: str | None) -> int | None:
    try:
        return None if text is None else int(parsedate_to_datetime(text).timestamp() * 1000)
    except ValueError:
        return None
