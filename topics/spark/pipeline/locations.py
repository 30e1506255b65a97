"""Where a runner may read and write: below the locations that whoever runs it has named, or anywhere when none is."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from os.path import abspath
from typing import Final

from topics.errors import InvalidRequest

SHOWN_CHARS_MAX: Final = 200
_PASSWORD: Final = re.compile(r"//[^/@]*@")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Locations:
    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = tuple(map(_plain, allowed))

    def check(self, location: str, field: str) -> None:
        """Raise `InvalidRequest` unless a location is one of those that are allowed, or below one."""
        if not self._allowed:
            return
        plain = _plain(location)
        if not any(plain == each or plain.startswith(f"{each.rstrip('/')}/") for each in self._allowed):
            raise InvalidRequest(
                f"{field} {_shown(location)} is not a location that this runner may use; "
                "start the runner with --location for it, or declare another one",
                field=field,
                expected="a location below one of --location",
            )


def _plain(location: str) -> str:
    """A location in its one spelling, without dots. Links are followed: only who runs the runner makes them."""
    scheme = _SCHEME.match(location)
    if scheme is None or scheme[1].lower() == "file":
        return abspath(location[scheme.end() :] if scheme else location)
    host, slash, path = location[scheme.end() :].partition("/")
    inside = posixpath.normpath(f"/{path}") if slash else ""
    return f"{scheme[1].lower()}://{host}{inside.rstrip('/')}"


def _shown(location: str) -> str:
    """As much of it as an error repeats, without what may be a password."""
    return _PASSWORD.sub("//…@", location)[:SHOWN_CHARS_MAX]
