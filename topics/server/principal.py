"""Who asks, and what they may do: scopes and name prefixes, from whichever kind of key or sign-in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Flag, auto
from functools import reduce
from operator import or_


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
    name: str = ""
    """What people call it: the e-mail of a user, the name of a managed key."""
    owner: str = ""
    """Under which accounts know it; empty for a static key, whose rights end with the process only."""
    expires_ms: int = 0
    """When its rights end by themselves; 0 is never."""
    user_id: str = ""
    session_id: str = ""
    """Of somebody who signed in."""

    def may(self, needed: Scope) -> bool:
        return needed in self.scopes

    def may_touch(self, name: str) -> bool:
        if self.prefixes and not name.startswith(self.prefixes):
            return False
        return not self.patterns or any(_matches(name, pattern) for pattern in self.patterns)

    @property
    def who(self) -> str:
        """For people: the audit log, and who made a key."""
        return self.name or self.key_id


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def scopes_of(names: Iterable[str]) -> Scope:
    return reduce(or_, (Scope[name.upper()] for name in names), NO_SCOPE)


def scope_names(scopes: Scope) -> list[str]:
    return [str(scope.name).lower() for scope in scopes]


EVERYBODY = Principal("", ALL_SCOPES)
