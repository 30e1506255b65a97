"""The verbs of consumer groups on the engine in this process."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from topics.client.grouptransport import ConsumeRequest, SettleRequest
from topics.core.commands import Command
from topics.core.groupcommands import (
    AckGroup,
    Consume,
    DropGroup,
    ExtendGroup,
    NackGroup,
    PauseGroup,
    ResetGroup,
)
from topics.engine.host import Host
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
from topics.limits import BYTE_BUDGET_DEFAULT, U64_MAX
from topics.wire.numbers import whole

T = TypeVar("T")


class EmbeddedGroups:
    """The part of a transport without a wire that is about consumer groups."""

    @abstractmethod
    def _open_host(self) -> Host: ...

    @abstractmethod
    async def _submit(self, command: Command, kind: type[T]) -> T: ...

    async def consume(self, topic: str, group: str, request: ConsumeRequest) -> GroupBatch:
        host = self._open_host()
        acked = request.acked
        if acked is not None:
            ack = AckGroup(topic, group, acked.last_seq, acked.partition, request.consumer, claim_id=acked.claim_id)
            await self._submit(ack, AckedGroup)
        command = Consume(
            topic,
            group,
            request.partition or 0,
            request.start,
            whole("limit", request.limit, U64_MAX),
            request.consumer,
            whole("max_batch_bytes", request.max_batch_bytes, U64_MAX) or BYTE_BUDGET_DEFAULT,
            None if request.visibility_ms is None else whole("visibility_ms", request.visibility_ms, U64_MAX),
            request.include_tags,
        )
        wait_ms = whole("wait_ms", request.wait_ms, U64_MAX)
        return await host.consume(command, wait_ms, anywhere=request.partition is None)

    async def ack_group(self, topic: str, group: str, request: SettleRequest) -> AckedGroup:
        command = AckGroup(
            topic,
            group,
            whole("upto_seq", request.upto_seq, U64_MAX),
            request.partition,
            request.consumer,
            whole("from_seq", request.from_seq, U64_MAX),
            request.claim_id,
        )
        return await self._submit(command, AckedGroup)

    async def nack_group(self, topic: str, group: str, request: SettleRequest, *, delay_ms: int) -> NackedGroup:
        command = NackGroup(
            topic,
            group,
            None if request.upto_seq is None else whole("upto_seq", request.upto_seq, U64_MAX),
            request.partition,
            request.consumer,
            whole("from_seq", request.from_seq, U64_MAX),
            request.claim_id,
            whole("delay_ms", delay_ms, U64_MAX),
        )
        return await self._submit(command, NackedGroup)

    async def extend_group(
        self, topic: str, group: str, request: SettleRequest, *, visibility_ms: int | None
    ) -> ExtendedGroup:
        command = ExtendGroup(
            topic,
            group,
            None if request.upto_seq is None else whole("upto_seq", request.upto_seq, U64_MAX),
            request.partition,
            request.consumer,
            whole("from_seq", request.from_seq, U64_MAX),
            request.claim_id,
            None if visibility_ms is None else whole("visibility_ms", visibility_ms, U64_MAX),
        )
        return await self._submit(command, ExtendedGroup)

    async def reset_group(self, topic: str, group: str, start: Start, *, partition: int) -> PlacedGroup:
        return await self._submit(ResetGroup(topic, group, start, partition), PlacedGroup)

    async def pause_group(self, topic: str, group: str, *, paused: bool) -> PausedGroup:
        return await self._submit(PauseGroup(topic, group, paused), PausedGroup)

    async def drop_group(self, topic: str, group: str) -> DroppedGroup:
        return await self._submit(DropGroup(topic, group), DroppedGroup)

    async def group_state(self, topic: str, group: str, *, partition: int) -> GroupState:
        host = self._open_host()
        await host.freshened(topic)
        return host.engine.groups.state(topic, group, partition)

    async def groups(self, topic: str) -> list[GroupState]:
        host = self._open_host()
        await host.freshened(topic)
        return host.engine.groups.list(topic)
