"""How a client reaches consumer groups: the verbs, and the requests they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from topics.groupmodel import (
    AckedGroup,
    DroppedGroup,
    ExtendedGroup,
    GroupBatch,
    GroupState,
    NackedGroup,
    PausedGroup,
    PlacedGroup,
    Start,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeRequest:
    """Records for one consumer. A partition of None is any; a visibility of None is as long as the topic says."""

    limit: int
    wait_ms: int = 0
    start: Start | None = None
    partition: int | None = None
    consumer: str = ""
    visibility_ms: int | None = None
    max_batch_bytes: int = 0
    include_tags: bool = True
    acked: GroupBatch | None = None
    """Acked before, in the same call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleRequest:
    """Which records an ack, a nack or an extend is about."""

    upto_seq: int | None = None
    from_seq: int = 0
    partition: int = 0
    consumer: str = ""
    claim_id: str | None = None


class GroupTransport(Protocol):
    async def consume(self, topic: str, group: str, request: ConsumeRequest) -> GroupBatch:
        """Waits up to `wait_ms` for records; whoever is cancelled meanwhile leaves none claimed."""

    async def ack_group(self, topic: str, group: str, request: SettleRequest) -> AckedGroup: ...

    async def nack_group(self, topic: str, group: str, request: SettleRequest, *, delay_ms: int) -> NackedGroup: ...

    async def extend_group(
        self, topic: str, group: str, request: SettleRequest, *, visibility_ms: int | None
    ) -> ExtendedGroup: ...

    async def reset_group(self, topic: str, group: str, start: Start, *, partition: int) -> PlacedGroup: ...

    async def pause_group(self, topic: str, group: str, *, paused: bool) -> PausedGroup: ...

    async def drop_group(self, topic: str, group: str) -> DroppedGroup: ...

    async def group_state(self, topic: str, group: str, *, partition: int) -> GroupState: ...

    async def groups(self, topic: str) -> list[GroupState]:
        """All of a topic, by name and partition."""
