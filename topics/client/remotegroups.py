"""The verbs of consumer groups over HTTP.

A consume is not tried again when its answer is lost: it may have claimed records, which come again when the claim runs
out. Acks, resets and the like are the same said twice.
"""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from topics.client.body import plain_body
from topics.client.caller import Caller
from topics.client.grouptransport import ConsumeRequest, SettleRequest
from topics.client.remoteanswer import decoded, topic_path
from topics.errors import InvalidRequest
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
from topics.limits import CLAIM_WAIT_MS_MAX
from topics.model import Tombstone
from topics.wire.group import ANY_PARTITION, start_fields

T = TypeVar("T")


class _Batch(msgspec.Struct):
    topic: str
    group: str
    records: msgspec.Raw
    count: int
    first_seq: int
    last_seq: int
    deadline: int
    deliveries: int
    committed_seq: int
    head_seq: int
    paused: bool
    claim_id: str | None = None
    visibility_ms: int = 0
    tombstone: Tombstone | None = None
    partition: int = 0
    consumer: str = ""


class _Listed(msgspec.Struct):
    groups: list[GroupState]


class RemoteGroups:
    """The part of a transport over HTTP that is about consumer groups."""

    _caller: Caller

    async def consume(self, topic: str, group: str, request: ConsumeRequest) -> GroupBatch:
        fields: dict[str, Any] = {
            "limit": request.limit,
            "partition": ANY_PARTITION if request.partition is None else request.partition,
        }
        if request.start is not None:
            fields["from"] = start_fields(request.start)
        if request.visibility_ms is not None:
            fields["visibility_ms"] = request.visibility_ms
        for name in ("wait_ms", "consumer", "max_batch_bytes", "include_tags"):
            if value := getattr(request, name):
                fields[name] = value
        if request.acked is not None:
            fields["ack_upto_seq"] = request.acked.last_seq
            fields["ack_partition"] = request.acked.partition
            fields["ack_claim_id"] = request.acked.claim_id
        wait_ms = min(request.wait_ms, CLAIM_WAIT_MS_MAX)
        path = f"{_path(topic, group)}/consume"
        answer = await self._caller.call("POST", path, plain_body(fields), repeatable=False, wait_ms=wait_ms)
        found = decoded(answer, _Batch)
        return GroupBatch(
            topic=found.topic,
            partition=found.partition,
            group=found.group,
            consumer=found.consumer,
            body=bytes(found.records)[1:-1],
            count=found.count,
            first_seq=found.first_seq,
            last_seq=found.last_seq,
            claim_id=found.claim_id or "",
            deadline=found.deadline,
            visibility_ms=found.visibility_ms,
            deliveries=found.deliveries,
            committed_seq=found.committed_seq,
            head_seq=found.head_seq,
            tombstone=found.tombstone,
            paused=found.paused,
        )

    async def ack_group(self, topic: str, group: str, request: SettleRequest) -> AckedGroup:
        return await self._say(topic, group, "ack", _settled(request), AckedGroup)

    async def nack_group(self, topic: str, group: str, request: SettleRequest, *, delay_ms: int) -> NackedGroup:
        fields = _settled(request) | {"delay_ms": delay_ms}
        # Without a claim a second one might give back what somebody has got again in between.
        return await self._say(topic, group, "nack", fields, NackedGroup, repeatable=request.claim_id is not None)

    async def extend_group(
        self, topic: str, group: str, request: SettleRequest, *, visibility_ms: int | None
    ) -> ExtendedGroup:
        fields = _settled(request)
        if visibility_ms is not None:
            fields["visibility_ms"] = visibility_ms
        return await self._say(topic, group, "extend", fields, ExtendedGroup)

    async def reset_group(self, topic: str, group: str, start: Start, *, partition: int) -> PlacedGroup:
        fields = {"to": start_fields(start), "partition": partition}
        return await self._say(topic, group, "reset", fields, PlacedGroup)

    async def pause_group(self, topic: str, group: str, *, paused: bool) -> PausedGroup:
        return await self._say(topic, group, "pause" if paused else "resume", {}, PausedGroup)

    async def drop_group(self, topic: str, group: str) -> DroppedGroup:
        return decoded(await self._caller.call("DELETE", _path(topic, group), repeatable=True), DroppedGroup)

    async def group_state(self, topic: str, group: str, *, partition: int) -> GroupState:
        path = _path(topic, group) + (f"?partition={partition}" if partition else "")
        return decoded(await self._caller.call("GET", path, repeatable=True), GroupState)

    async def groups(self, topic: str) -> list[GroupState]:
        answer = await self._caller.call("GET", f"{topic_path(topic)}/groups", repeatable=True)
        return decoded(answer, _Listed).groups

    async def _say(
        self, topic: str, group: str, verb: str, fields: dict[str, Any], kind: type[T], repeatable: bool = True
    ) -> T:
        path = f"{_path(topic, group)}/{verb}"
        return decoded(await self._caller.call("POST", path, plain_body(fields), repeatable=repeatable), kind)


def _path(topic: str, group: str) -> str:
    if not isinstance(group, str) or not group:
        raise InvalidRequest(f"group must be a name, not {group!r}", field="group", expected="a name")
    return f"{topic_path(topic)}/groups/{quote(group, safe='')}"


def _settled(request: SettleRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in ("upto_seq", "claim_id"):
        if (value := getattr(request, name)) is not None:
            fields[name] = value
    for name in ("from_seq", "partition", "consumer"):
        if value := getattr(request, name):
            fields[name] = value
    return fields
