"""How a client reaches an engine: a dozen verbs, and the requests they carry.

In process it is `topics/embedded.py`; over a network it will be HTTP. A client knows nothing else of the engine, and a
transport knows nothing of the client: requests go in, values of `topics.model` or errors of `topics.errors` come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from topics.model import (
    Aborted,
    Configured,
    Deleted,
    Dropped,
    Page,
    Published,
    StageState,
    TopicState,
    Written,
)

Match = str | tuple[str, str, str] | list[str]
"""A tag, or `["tag", "Eq", tag]`, or `["tag", "Glob", "prefix*"]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """One atomic write to one partition. None is "not said"."""

    records: Sequence[Mapping[str, Any]]
    node: str | None = None
    partition: int | None = None
    key: str | None = None
    idempotency_key: str | None = None
    producer: tuple[str, int, int] | None = None
    create: bool | None = None
    config: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A page behind a cursor. A limit of 0 is the default, one above the allowed is clamped."""

    from_seq: int = 0
    partition: int = 0
    limit: int = 0
    max_batch_bytes: int = 0
    nodes: Sequence[str] = ()
    match: Match | None = None
    include_tags: bool = True
    include_meta: bool = True
    wait_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """Records of one partition, by seq, by tag, or by both at once."""

    partition: int = 0
    before_seq: int | None = None
    match: Match | None = None
    erase: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """Records put aside for one partition of a topic."""

    stage: str
    topic: str
    records: Sequence[Mapping[str, Any]]
    node: str | None = None
    partition: int | None = None
    key: str | None = None


class Transport(Protocol):
    async def open(self) -> None:
        """Get ready for the verbs below. After `close` it may be opened again."""

    async def close(self) -> None:
        """Finish what was begun; closing what is closed does nothing. Readers that wait get `ShuttingDown`."""

    async def configure(self, topic: str, fields: Mapping[str, object], *, merge: bool) -> Configured:
        """Create a topic or replace its config; with `merge`, change an existing one."""

    async def drop(self, topic: str, *, if_empty: bool) -> Dropped: ...

    async def write(self, topic: str, request: WriteRequest) -> Written: ...

    async def read(self, topic: str, request: ReadRequest) -> Page:
        """Waits up to `wait_ms` for something to tell, and never past it; nothing that comes meanwhile is missed."""

    async def delete(self, topic: str, request: DeleteRequest) -> Deleted: ...

    async def state(self, topic: str, *, partition: int, touch: bool) -> TopicState: ...

    async def topics(self, *, prefix: str, after: str, limit: int) -> list[TopicState]:
        """Topics by name behind `after`; fewer than `limit` means that there are no more."""

    async def stage(self, request: StageRequest) -> StageState: ...

    async def publish(self, stages: Sequence[str], *, producer: tuple[str, int]) -> Published: ...

    async def abort(self, stages: Sequence[str]) -> Aborted: ...
