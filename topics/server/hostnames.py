"""The host names under which requests may address a server: the defence against DNS rebinding.

A web page can point its own DNS name at this machine. The browser then treats this server as part of the page's site,
so no check of origins helps; but it sends the page's name in `Host`. A server without keys therefore accepts loopback
names only, and those that `TOPICS_ALLOWED_HOSTS` lists. Where others reach its address, it accepts IP addresses too:
no DNS name can take the place of one. With keys the names are checked only when the setting lists some, because a
rebound page has neither a key nor a cookie of this server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from topics.core.names import shorten
from topics.errors import Forbidden, InvalidSetting
from topics.settings import Settings

VARIABLE: Final = "TOPICS_ALLOWED_HOSTS"
ANY: Final = "*"
_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
_LOOPBACK_DOMAIN: Final = ".localhost"
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\\?#\s]+)(?::([0-9]{1,5}))?")
_PATTERN: Final = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    names: frozenset[str] = frozenset()
    """Names in lower case, without a dot at their end; `*` is any."""
    domains: tuple[str, ...] = ()
    """`.example.com`: every name that ends with it."""
    addresses: bool = False
    """Whether IP addresses other than loopback ones are accepted."""

    @classmethod
    def of(cls, settings: Settings, keys: bool) -> AllowedHosts | None:
        """The names that a server with these settings accepts; None when it accepts any."""
        listed = [name.strip().lower() for name in (settings.allowed_hosts or "").split(",") if name.strip()]
        for name in listed:
            _check_listed(name)
        if ANY in listed or (keys and not listed):
            return None
        domains = tuple(name[1:] for name in listed if name.startswith("*."))
        bound = name_in(settings.host if ":" not in settings.host else f"[{settings.host.strip('[]')}]")
        names = {name_in(name) or name for name in listed} | ({bound} if bound else set())
        return cls(frozenset(names), domains, addresses=not is_loopback_name(bound or ""))

    def check(self, host: str | None, target_authority: str | None = None) -> None:
        """Raise `Forbidden` unless every name that a request gives is accepted. HTTP/1.0 need not give one; browsers
        always do."""
        for authority in (host, target_authority):
            if authority is not None and not self._accepts(authority):
                raise Forbidden(
                    f'host name "{shorten(authority)}" is not accepted by this server; '
                    f"use a loopback name such as localhost, or list the name in {VARIABLE}",
                    field="host",
                    given=shorten(authority),
                    expected="a loopback name or a configured one",
                )

    def _accepts(self, authority: str) -> bool:
        name = name_in(authority)
        if name is None:
            return False
        if is_loopback_name(name) or name in self.names or name.endswith(self.domains):
            return True
        return self.addresses and _address(name) is not None


def name_in(authority: str) -> str | None:
    """The host of `host:port`, in lower case and without brackets or a final dot; None when that is not valid."""
    found = _AUTHORITY.fullmatch(authority)
    if found is None or (found[2] and int(found[2]) > 65_535):
        return None
    return found[1].strip("[]").lower().removesuffix(".") or None


def is_loopback_name(name: str) -> bool:
    """Whether a name always leads to the machine of its user."""
    if name in _LOOPBACK_NAMES or name.endswith(_LOOPBACK_DOMAIN):
        return True
    address = _address(name)
    if isinstance(address, IPv6Address):
        return address.is_loopback or (address.ipv4_mapped is not None and address.ipv4_mapped.is_loopback)
    return address is not None and address.is_loopback


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


def _check_listed(name: str) -> None:
    if name == ANY or _PATTERN.fullmatch(name.removesuffix(".")) or _address(name.strip("[]")) is not None:
        return
    raise InvalidSetting(
        f'{VARIABLE}: "{shorten(name)}" is not a host name; expected names without scheme and port, such as '
        "topics.example.com, *.example.com for all names below it, or * for any",
        settings=[VARIABLE],
    )
