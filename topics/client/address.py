"""Where a server is: a URL taken apart, once, with a clear word on what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from topics.errors import InvalidRequest

_PORTS = {"http": 80, "https": 443}
_EXPECTED = "http://host:port or https://host:port, with a path if the server is behind one"


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool
    path: str = ""
    """In front of `/v0`, for a server behind a proxy; without a slash at its end."""

    @property
    def authority(self) -> str:
        """What the Host header says: the port only where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.path}"


def parse_address(url: str) -> Address:
    """The address of a URL. A key does not belong into it: URLs end up in logs."""
    if not isinstance(url, str):
        raise _refuse(f"a URL must be a string, not {type(url).__name__}")
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise _refuse(f"{_shown(url)} is not a URL: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise _refuse(f"{_shown(url)} is not the URL of a server")
    if parts.username is not None or parts.password is not None:
        raise _refuse("a URL must not hold a key or password: pass it as key=…")
    if parts.query or parts.fragment:
        raise _refuse(f"{_shown(url)} has a query or a fragment, which the address of a server has not")
    tls = parts.scheme == "https"
    return Address(parts.hostname, _PORTS[parts.scheme] if port is None else port, tls, parts.path.rstrip("/"))


def _shown(url: str) -> str:
    """A URL for an error, without what may be a secret."""
    return repr(url.rpartition("@")[2] if "@" in url else url)


def _refuse(message: str) -> InvalidRequest:
    return InvalidRequest(f"{message}; expected {_EXPECTED}", field="url", expected=_EXPECTED)
