"""What a key may do, as statements ask for it, and what of the metrics it may see as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_

from topics.server.auth import check_name, check_place, check_scope
from topics.server.context import Context
from topics.server.exposition import Family
from topics.server.metrics import collect
from topics.server.principal import NO_SCOPE, Principal, Scope
from topics.storage.walmetrics import Histogram


class KeyAccess:
    """A `topics.sqlengine.access.Access` of whoever a key belongs to."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    @property
    def owner(self) -> str:
        return self._principal.key_id

    def need(self, scopes: Iterable[str]) -> None:
        check_scope(self._principal, reduce(or_, (Scope[name.upper()] for name in scopes), NO_SCOPE))

    def touch(self, name: str, field: str) -> None:
        check_name(self._principal, name, field)

    def place(self, field: str) -> None:
        check_place(self._principal, field)

    def may_touch(self, name: str) -> bool:
        return self._principal.may_touch(name)


def samples(context: Context, principal: Principal) -> Iterator[tuple[str, dict[str, str], float]]:
    """Every sample of a scrape: name, labels and value; of a histogram its sum and count."""
    for family in collect(context, principal):
        yield from _of(family)


def _of(family: Family) -> Iterator[tuple[str, dict[str, str], float]]:
    for labels, value in family.samples:
        if isinstance(value, Histogram):
            yield f"{family.name}_sum", dict(labels), float(value.total)
            yield f"{family.name}_count", dict(labels), float(sum(value.counts))
        else:
            yield family.name, dict(labels), float(value)
