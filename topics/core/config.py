"""Making and changing a topic's config out of the fields a client sent.

    build    create a topic: what is not named has its default
    replace  PUT: the whole config anew, except what never changes (`type`, `partitions`)
    merge    PATCH: what is not named stays

Unknown fields are ignored, values out of a documented range are clamped where the API says so and refused otherwise,
and a refusal names the field. `TopicConfig` itself, with the defaults, is in `model.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from topics.core.names import check_group, check_topic, shorten
from topics.errors import InvalidRequest, TopicExistsIncompatible
from topics.limits import (
    CLAIM_JITTER_MS_MAX,
    LEASE_MS_MAX,
    LEASE_MS_MIN,
    PARTITIONS_MAX,
    PRIORITY_MAX,
    PRIORITY_MIN,
    PROTECT_GROUPS_MAX,
    U64_MAX,
)
from topics.model import Discard, Durability, TopicConfig, TopicType

__all__ = ["DEFAULT", "FIELDS", "TopicConfig", "as_wire", "build", "merge", "replace"]

Fields = Mapping[str, object]
DEFAULT = TopicConfig()
IMMUTABLE = ("type", "partitions")


def build(topic: str, fields: Fields) -> TopicConfig:
    """The config of a new topic."""
    return _change(topic, DEFAULT, fields)


def replace(topic: str, existing: TopicConfig, fields: Fields) -> TopicConfig:
    """The config after a PUT: omitted fields go back to their defaults, `type` and `partitions` stay."""
    kept = msgspec.structs.replace(DEFAULT, type=existing.type, partitions=existing.partitions)
    return _same_kind(topic, existing, _change(topic, kept, fields))


def merge(topic: str, existing: TopicConfig, fields: Fields) -> TopicConfig:
    """The config after a PATCH: omitted fields stay."""
    return _same_kind(topic, existing, _change(topic, existing, fields))


def as_wire(config: TopicConfig) -> dict[str, Any]:
    """The config object as every answer shows it, in the documented order."""
    wire: dict[str, Any] = {}
    for name in TopicConfig.__struct_fields__:
        if name == "durability":
            wire["durable"] = config.durable
        value = getattr(config, name)
        wire[name] = value.value if isinstance(value, StrEnum) else list(value) if isinstance(value, tuple) else value
    return wire


def _change(topic: str, base: TopicConfig, fields: Fields) -> TopicConfig:
    changes = {name: check(fields[name], name) for name, check in _CHECKS.items() if name in fields}
    durable = changes.pop("durable", None)
    if durable is not None and "durability" not in changes and durable != base.durable:
        changes["durability"] = Durability.FSYNC if durable else Durability.DISK
    if changes.get("alias") == topic:
        raise InvalidRequest(
            f'alias must be another name than "{topic}" itself', field="alias", value=topic, expected="another name"
        )
    if changes.get("dead_letter") == topic:
        raise InvalidRequest(
            f'dead_letter must be another topic than "{topic}" itself',
            field="dead_letter",
            value=topic,
            expected="the name of another topic",
        )
    return msgspec.structs.replace(base, **changes)


def _same_kind(topic: str, existing: TopicConfig, wanted: TopicConfig) -> TopicConfig:
    for name in IMMUTABLE:
        before, after = getattr(existing, name), getattr(wanted, name)
        if before != after:
            raise TopicExistsIncompatible(
                f'{name} of topic "{topic}" is {before} and fixed since its creation: it cannot become {after}',
                topic=topic,
                field=name,
                current=before,
                requested=after,
            )
    return wanted


def _refuse(field: str, value: object, expected: str) -> InvalidRequest:
    shown = shorten(value)
    return InvalidRequest(f"{field} must be {expected}, not {shown}", field=field, value=shown, expected=expected)


def _u64(value: object, field: str) -> int:
    return _whole(value, field, 0, U64_MAX, "an integer from 0 to 2^64-1")


def _whole(value: object, field: str, low: int, high: int, expected: str) -> int:
    # A bool is an int to Python, not to JSON.
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _refuse(field, value, expected)
    return value


def _clamped(low: int, high: int) -> Callable[[object, str], int]:
    def check(value: object, field: str) -> int:
        return max(low, min(_u64(value, field), high))

    return check


def _priority(value: object, field: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refuse(field, value, "an integer or null")
    return max(PRIORITY_MIN, min(value, PRIORITY_MAX))


def _bool(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise _refuse(field, value, "true or false")
    return value


def _one_of(kind: type[StrEnum]) -> Callable[[object, str], StrEnum]:
    members = {member.value: member for member in kind}
    expected = "one of " + ", ".join(f'"{name}"' for name in members)

    def check(value: object, field: str) -> StrEnum:
        if not isinstance(value, str) or value not in members:
            raise _refuse(field, value, expected)
        return members[value]

    return check


def _topic_or_none(value: object, field: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _refuse(field, value, "the name of a topic or null")
    return check_topic(value, field)


def _partitions(value: object, field: str) -> int:
    return _whole(value, field, 1, PARTITIONS_MAX, f"an integer from 1 to {PARTITIONS_MAX}")


def _positive(value: object, field: str) -> int:
    return _whole(value, field, 1, U64_MAX, "an integer from 1 to 2^64-1")


def _groups(value: object, field: str) -> tuple[str, ...]:
    """Names of consumer groups, in order and each once."""
    expected = f"a list of at most {PROTECT_GROUPS_MAX} names of groups"
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise _refuse(field, value, expected)
    if len(set(value)) > PROTECT_GROUPS_MAX:
        raise _refuse(field, value, expected)
    return tuple(sorted({check_group(name, field) for name in value}))


def _visibility_ms(value: object, field: str) -> int:
    """0 is the server's own."""
    asked_ms = _u64(value, field)
    return max(LEASE_MS_MIN, min(asked_ms, LEASE_MS_MAX)) if asked_ms else 0


_CHECKS: dict[str, Callable[[object, str], Any]] = {
    "type": _one_of(TopicType),
    "ttl_ms": _u64,
    "cap_records": _u64,
    "cap_bytes": _u64,
    "discard": _one_of(Discard),
    "durable": _bool,
    "durability": _one_of(Durability),
    "priority": _priority,
    "auto_priority": _bool,
    "auto_create": _bool,
    "idempotency_window_ms": _u64,
    "dedupe_node": _bool,
    "lease_ms": _clamped(LEASE_MS_MIN, LEASE_MS_MAX),
    "claim_jitter_ms": _clamped(0, CLAIM_JITTER_MS_MAX),
    "max_deliveries": _u64,
    "dead_letter": _topic_or_none,
    "leases_durable": _bool,
    "partitions": _partitions,
    "alias": _topic_or_none,
    "protect_unarchived": _bool,
    "protect_groups": _groups,
    "protect_max_bytes": _positive,
    "visibility_ms": _visibility_ms,
}

FIELDS = tuple(_CHECKS)
"""Every field that a client may send."""

assert _CHECKS.keys() - {"durable"} == set(TopicConfig.__struct_fields__)
