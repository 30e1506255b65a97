"""Who asks, as far as statements have to know: asked before the first of them runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Access(Protocol):
    @property
    def owner(self) -> str:
        """The key that queries count for; empty when there are no keys."""

    def need(self, scopes: Iterable[str]) -> None:
        """Raises `Forbidden` when one of `read`, `write`, `delete`, `admin` is missing."""

    def touch(self, name: str, field: str) -> None:
        """Raises `Forbidden` when this name is none of theirs; `field` is what it names."""

    def may_touch(self, name: str) -> bool:
        """Whether a list may show this name."""

    def place(self, field: str) -> None:
        """Raises `Forbidden` when they may not say where a runner reads or writes; `field` says it."""


class FullAccess:
    """The process that has the directory open may do everything."""

    owner = ""

    def need(self, scopes: Iterable[str]) -> None:
        return

    def touch(self, name: str, field: str) -> None:
        return

    def may_touch(self, name: str) -> bool:
        return True

    def place(self, field: str) -> None:
        return
