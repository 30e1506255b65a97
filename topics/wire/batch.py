"""The bodies of an atomic batch: records for a stage, and the stages to publish or abort."""

from __future__ import annotations

import msgspec

from topics.core.records import RecordLimits
from topics.core.waits import staged_waits
from topics.errors import InvalidRequest
from topics.limits import STAGES_PER_BATCH_MAX, U64_MAX
from topics.wire import json
from topics.wire.numbers import whole
from topics.wire.records import WriteBatch, decode_write


class StageRequest(msgspec.Struct, frozen=True):
    stage: str
    batch: WriteBatch
    at: int | None = None
    waits: bytes = b""
    """Of each record, how long nobody gets it (`core/waits.py`)."""


class PublishRequest(msgspec.Struct, frozen=True):
    stages: tuple[str, ...]
    producer_id: str
    epoch: int


class _StageBody(msgspec.Struct):
    stage: str
    at: int | None = None


class _PublishBody(msgspec.Struct):
    stages: list[str]
    producer_id: str
    epoch: int


class _AbortBody(msgspec.Struct):
    stages: list[str]


_stage_decoder = msgspec.json.Decoder(_StageBody)
_publish_decoder = msgspec.json.Decoder(_PublishBody)
_abort_decoder = msgspec.json.Decoder(_AbortBody)


def decode_stage(body: bytes, limits: RecordLimits) -> StageRequest:
    """A write body with the name of a stage beside the records; what makes a write idempotent has no place here."""
    batch = decode_write(body, limits)
    # A write ignores what it does not know, so `stage` is looked at here: its type, and that it stands there once.
    parsed = json.decode(_stage_decoder, body)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return stage_request(parsed.stage, batch, None if parsed.at is None else whole("at", parsed.at, U64_MAX))


def stage_request(stage: str, batch: WriteBatch, at: int | None) -> StageRequest:
    """A write into a stage, or `InvalidRequest` for what a stage cannot do."""
    if batch.dedupe_key is not None:
        raise InvalidRequest(
            "a stage is made idempotent by its publish: give producer_id and epoch there",
            field="producer_id",
            expected="no idempotency_key, producer_id, epoch or sequence",
        )
    waits = staged_waits(batch.records.count, batch.delay_ms, batch.not_before_ms, batch.waits)
    return StageRequest(stage, batch, at, waits)


def decode_publish(body: bytes) -> PublishRequest:
    parsed = json.decode(_publish_decoder, body)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return PublishRequest(_stages(parsed.stages), parsed.producer_id, whole("epoch", parsed.epoch, U64_MAX))


def decode_abort(body: bytes) -> tuple[str, ...]:
    parsed = json.decode(_abort_decoder, body)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return tuple(dict.fromkeys(_stages(parsed.stages)))


def _stages(names: list[str]) -> tuple[str, ...]:
    if not 1 <= len(names) <= STAGES_PER_BATCH_MAX:
        expected = f"1 to {STAGES_PER_BATCH_MAX} names"
        raise InvalidRequest(f"stages must have {expected}, not {len(names)}", field="stages", expected=expected)
    return tuple(names)
