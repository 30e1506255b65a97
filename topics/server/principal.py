"""Who asks, and what they may do: scopes and name prefixes, from whichever kind of key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto


class Scope(Flag):
    READ = auto()
    WRITE = auto()
    DELETE = auto()
    ADMIN = auto()


ALL_SCOPES = Scope.READ | Scope.WRITE | Scope.DELETE | Scope.ADMIN
NO_SCOPE = Scope(0)


@dataclass(frozen=True, slots=True)
class Principal:
    key_id: str
    """Names the key in logs and quotas; never the secret. Empty when authentication is off."""
    scopes: Scope
    prefixes: tuple[str, ...] = ()
    """Names must begin with one of them; empty is any name."""
    patterns: tuple[str, ...] = ()
    """What a stream token was narrowed to: names, and beginnings of names with a `*` behind; empty is any name."""

    def may(self, needed: Scope) -> bool:
        return needed in self.scopes

    def may_touch(self, name: str) -> bool:
        if self.prefixes and not name.startswith(self.prefixes):
            return False
        return not self.patterns or any(_matches(name, pattern) for pattern in self.patterns)


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


EVERYBODY = Principal("", ALL_SCOPES)
