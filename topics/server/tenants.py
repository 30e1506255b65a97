"""Whose a name is that a client makes up: stages and producers of atomic batches.

Keys that are bound to prefixes of names share a server with others that must not meet them. Topics are told apart by
their names; stages and producers are not, so the server keeps them under the client's name and the tenant's: `job @t1.`
for `job` of a key bound to `t1.`. The tenant is the set of prefixes, not the key, so that a new key of the same tenant
goes on where the old one was. Keys without prefixes, signed-in users and embedded engines have the plain names.

No two tenants share a name: a tenant has no space in it, so what follows the last ` @` is the tenant.

What was published before names were kept like this stands under its plain name. It is still a tenant's own when all
that it wrote is within the tenant's prefixes: a batch that is sent again gets its first answer, and an older epoch is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from topics.core.batch import Batches
from topics.engine.enqueuing import PRODUCER
from topics.errors import InvalidRequest, TopicsError
from topics.limits import STAGE_ID_BYTES_MAX
from topics.server.principal import Principal

MARK: Final = " @"
TENANT_BYTES_MAX: Final = 32
"""Of a tenant in a name; a longer one is told by its digest."""
ONE_OFF: Final = "~"
"""What names begin with that are used once: it stays in front."""
_DIGEST_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class Tenant:
    suffix: str = ""
    """Behind each name; empty for those who may touch every name."""

    @classmethod
    def of(cls, principal: Principal) -> Tenant:
        if not principal.prefixes:
            return cls()
        text = "|".join(_shortest(principal.prefixes))
        return cls(MARK + (text if len(text.encode()) <= TENANT_BYTES_MAX else _digest(text)))

    def stored(self, name: str) -> str:
        """The name under which a client's name is kept."""
        if not self.suffix or not 1 <= len(name.encode()) <= STAGE_ID_BYTES_MAX:
            # What no name may be is for the engine to refuse.
            return name
        stored = name + self.suffix
        if len(stored.encode()) <= STAGE_ID_BYTES_MAX:
            return stored
        first = ONE_OFF if name.startswith(ONE_OFF) else ""
        return f"{first}{_digest(name)}{self.suffix}"

    def owns(self, stored: str) -> bool:
        """Whether a stored name is one of this tenant; those who may touch every name own all."""
        return stored.endswith(self.suffix)

    def given(self, stored: str) -> str:
        """What the tenant calls a stored name of its own."""
        return stored.removesuffix(self.suffix) if self.suffix else stored

    @contextmanager
    def naming(self, names: Iterable[str]) -> Iterator[None]:
        """What is raised inside names things as the client does."""
        try:
            yield
        except TopicsError as error:
            self.rename(error, names)
            raise

    def rename(self, error: TopicsError, names: Iterable[str]) -> None:
        if not self.suffix:
            return
        for name in names:
            stored = self.stored(name)
            error.message = error.message.replace(stored, name)
            error.args = (error.message, *error.args[1:])
            for field, value in error.detail.items():
                if isinstance(value, str):
                    error.detail[field] = value.replace(stored, name)


def check_producer(producer_id: str) -> None:
    """The engine's own producer is nobody else's."""
    if producer_id == PRODUCER:
        raise InvalidRequest(
            f'producer_id "{PRODUCER}" belongs to the server; use another one',
            field="producer_id",
            given=producer_id,
            expected="another id",
        )


def producer_of(principal: Principal, batches: Batches, producer_id: str, epoch: int) -> str:
    """The name under which a publish is looked for, and kept if it is new."""
    check_producer(producer_id)
    tenant = Tenant.of(principal)
    stored = tenant.stored(producer_id)
    if stored == producer_id or batches.newest_epoch.get(stored) is not None:
        return stored
    newest = batches.newest_epoch.get(producer_id)
    if newest is None or epoch > newest:
        return stored
    wrote = [batches.by_producer.get((producer_id, each)) for each in (newest, epoch)]
    parts = [part for batch in wrote if batch is not None and batch.answer is not None for part in batch.answer.written]
    return producer_id if parts and all(principal.may_touch(part.topic) for part in parts) else stored


def _shortest(prefixes: Iterable[str]) -> list[str]:
    """The prefixes in order, without those that begin with another one."""
    found: list[str] = []
    for prefix in sorted(set(prefixes)):
        if not found or not prefix.startswith(found[-1]):
            found.append(prefix)
    return found


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
