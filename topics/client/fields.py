"""What a caller may name: the config fields of a topic, and the fields of a record.

A server ignores fields it does not know, so that old and new ones can talk. In a program a name that nobody knows is a
slip of the pen, so it is refused here, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, NotRequired, Required, TypedDict

from topics.errors import InvalidRequest
from topics.model import Discard, Durability, Mode, TopicType


class ConfigFields(TypedDict, total=False):
    """The config of a topic as keywords; what each means is in `topics.TopicConfig`."""

    type: TopicType | Literal["log", "queue", "heap"]
    ttl_ms: int
    cap_records: int
    cap_bytes: int
    discard: Discard | Literal["old", "reject"]
    durable: bool
    durability: Durability | Literal["ephemeral", "memory", "disk", "fsync"]
    priority: int | None
    auto_priority: bool
    auto_create: bool
    idempotency_window_ms: int
    dedupe_node: bool
    lease_ms: int
    claim_jitter_ms: int
    max_deliveries: int
    dead_letter: str | None
    leases_durable: bool
    protect_unarchived: bool
    protect_groups: Sequence[str]
    protect_max_bytes: int
    visibility_ms: int
    partitions: int
    alias: str | None
    mode: Mode | Literal["min", "max"]
    top_k_bound: int
    replication_factor: int
    retention_ms: int
    max_retries: int
    max_payload_bytes: int
    compression: bool
    dead_letter_ttl_ms: int


class RecordFields(TypedDict, total=False):
    """One record of `write_many` or `stage`: `data` is any JSON value or bytes, the rest may be left out."""

    data: Required[Any]
    tag: NotRequired[str | None]
    node: NotRequired[str | None]
    meta: NotRequired[Mapping[str, str] | None]
    content_type: NotRequired[str | None]
    """Kept in `meta` under `content-type`; of bytes, `application/octet-stream` unless you say otherwise."""
    delay_ms: NotRequired[int | None]
    """Of a job: nobody gets it earlier. In a stage it counts from the publish."""
    not_before: NotRequired[datetime | int | None]
    """The same as a time, instead of `delay_ms`: a `datetime` with a time zone, or milliseconds since 1970."""


CONFIG_NAMES = frozenset(ConfigFields.__annotations__)
RECORD_NAMES = frozenset(RecordFields.__annotations__)


def check_config(fields: Mapping[str, object]) -> Mapping[str, object]:
    """`fields`, when all of them are config fields."""
    if not isinstance(fields, Mapping):
        expected = "a mapping of names to values"
        raise InvalidRequest(
            f"config must be {expected}, not {type(fields).__name__}", field="config", expected=expected
        )
    _refuse_strangers(fields.keys() - CONFIG_NAMES, CONFIG_NAMES, "config")
    return fields


def check_records(records: Iterable[RecordFields]) -> Sequence[Mapping[str, Any]]:
    """The records, when none of them has a field that records do not have."""
    if not isinstance(records, Iterable) or isinstance(records, str | bytes):
        expected = "a sequence of mappings"
        raise InvalidRequest(
            f"records must be {expected}, not {type(records).__name__}", field="records", expected=expected
        )
    listed: list[Mapping[str, Any]] = list(records)
    for index, record in enumerate(listed):
        if isinstance(record, Mapping) and not record.keys() <= RECORD_NAMES:
            _refuse_strangers(record.keys() - RECORD_NAMES, RECORD_NAMES, f"records[{index}]")
    return listed


def _refuse_strangers(strangers: Iterable[str], known: frozenset[str], place: str) -> None:
    for name in sorted(strangers, key=str):
        near = get_close_matches(str(name), known, n=1)
        hint = f"did you mean {near[0]}?" if near else "there are " + ", ".join(sorted(known))
        raise InvalidRequest(f"{place} has no field {name}; {hint}", field=f"{place}.{name}", expected=sorted(known))
