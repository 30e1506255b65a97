"""Making and changing a topic's config out of the fields a client sent.

    build    create a topic: what is not named has its default
    replace  PUT: the whole config anew, except what never changes (`type`, `partitions`, `mode`)
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
    HEAP_IDEMPOTENCY_WINDOW_MS_DEFAULT,
    HEAP_LEASE_MS_DEFAULT,
    HEAP_PAYLOAD_BYTES_MAX,
    HEAP_REPLICATION_MAX,
    LEASE_MS_MAX,
    LEASE_MS_MIN,
    PARTITIONS_MAX,
    PRIORITY_MAX,
    PRIORITY_MIN,
    PROTECT_GROUPS_MAX,
    U32_MAX,
    U64_MAX,
)
from topics.model import Discard, Durability, Mode, TopicConfig, TopicType

__all__ = ["DEFAULT", "FIELDS", "TopicConfig", "as_wire", "build", "default", "merge", "replace"]

Fields = Mapping[str, object]
DEFAULT = TopicConfig()
IMMUTABLE = ("type", "partitions", "mode")
HEAP_FIELDS = (
    "mode",
    "top_k_bound",
    "replication_factor",
    "retention_ms",
    "max_retries",
    "max_payload_bytes",
    "compression",
    "dead_letter_ttl_ms",
)
"""What only a heap has."""
QUEUE_FIELDS = ("lease_ms", "claim_jitter_ms")
"""What a log has no use for. Its config shows their defaults, so these may be sent back."""
NOT_OF_HEAPS = ("ttl_ms", "max_deliveries", "claim_jitter_ms")
DLQ_SUFFIX = ".dlq"


def default(topic: str, kind: TopicType) -> TopicConfig:
    """The config of a topic of which nothing but its type is said."""
    if kind is not TopicType.HEAP:
        return msgspec.structs.replace(DEFAULT, type=kind)
    return msgspec.structs.replace(
        DEFAULT,
        type=kind,
        durability=Durability.FSYNC,
        discard=Discard.REJECT,
        lease_ms=HEAP_LEASE_MS_DEFAULT,
        idempotency_window_ms=HEAP_IDEMPOTENCY_WINDOW_MS_DEFAULT,
        dead_letter=f"{topic}{DLQ_SUFFIX}",
    )


def build(topic: str, fields: Fields) -> TopicConfig:
    """The config of a new topic."""
    kind = _CHECKS["type"](fields["type"], "type") if "type" in fields else TopicType.LOG
    return _change(topic, default(topic, kind), fields)


def replace(topic: str, existing: TopicConfig, fields: Fields) -> TopicConfig:
    """The config after a PUT: omitted fields go back to their defaults, but those that never change stay."""
    kept = msgspec.structs.replace(default(topic, existing.type), partitions=existing.partitions, mode=existing.mode)
    return _same_kind(topic, existing, _change(topic, kept, fields))


def merge(topic: str, existing: TopicConfig, fields: Fields) -> TopicConfig:
    """The config after a PATCH: omitted fields stay."""
    return _same_kind(topic, existing, _change(topic, existing, fields))


def as_wire(config: TopicConfig) -> dict[str, Any]:
    """The config object as every answer shows it, in the documented order; what only a heap has, of heaps alone."""
    wire: dict[str, Any] = {}
    for name in TopicConfig.__struct_fields__:
        if name in HEAP_FIELDS and config.type is not TopicType.HEAP:
            continue
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
    changed = msgspec.structs.replace(base, **changes)
    if changed.alias is not None and changed.alias == changed.dead_letter:
        raise InvalidRequest(
            f'dead_letter "{changed.alias}" is the alias of topic "{topic}" itself; name another topic',
            field="dead_letter",
            value=changed.alias,
            expected="the name of another topic",
        )
    _check_kind(topic, changed, changes)
    return changed


def _check_kind(topic: str, config: TopicConfig, changes: dict[str, Any]) -> None:
    """Refuse what a topic of this type cannot have."""
    if config.type is not TopicType.HEAP:
        for name in HEAP_FIELDS:
            if name in changes:
                hint = "; max_deliveries bounds the deliveries of a job" if name == "max_retries" else "; leave it out"
                message = f'{name} belongs to heaps, and topic "{topic}" is a {config.type.value}{hint}'
                raise InvalidRequest(message, field=name, expected='a topic of type "heap"')
        for name in QUEUE_FIELDS if config.type is TopicType.LOG else ():
            if name in changes and changes[name] != getattr(DEFAULT, name):
                hint = "; visibility_ms says how long a group has records" if name == "lease_ms" else "; leave it out"
                message = f'{name} belongs to queues and heaps, and topic "{topic}" is a log{hint}'
                raise InvalidRequest(message, field=name, expected='a topic of type "queue" or "heap"')
        return
    for name in NOT_OF_HEAPS:
        if getattr(config, name):
            hint = "max_retries bounds deliveries" if name == "max_deliveries" else "what is not done never expires"
            hint = "pops are served at once" if name == "claim_jitter_ms" else hint
            message = f'{name} of heap "{topic}" must be 0: {hint}'
            raise InvalidRequest(message, field=name, value=shorten(getattr(config, name)), expected="0")
    if config.discard is not Discard.REJECT:
        message = f'discard of heap "{topic}" must be "reject": a full heap refuses, it does not drop what is not done'
        raise InvalidRequest(message, field="discard", value=config.discard.value, expected='"reject"')
    if config.dead_letter is not None:
        check_topic(config.dead_letter, "dead_letter")


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


def _between(low: int, high: int) -> Callable[[object, str], int]:
    def check(value: object, field: str) -> int:
        return _whole(value, field, low, high, f"an integer from {low} to {high}")

    return check


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
    "mode": _one_of(Mode),
    "top_k_bound": _between(1, U32_MAX),
    "replication_factor": _between(1, HEAP_REPLICATION_MAX),
    "retention_ms": _u64,
    "max_retries": _between(0, U32_MAX),
    "max_payload_bytes": _between(1, HEAP_PAYLOAD_BYTES_MAX),
    "compression": _bool,
    "dead_letter_ttl_ms": _u64,
}

FIELDS = tuple(_CHECKS)
"""Every field that a client may send."""

assert _CHECKS.keys() - {"durable"} == set(TopicConfig.__struct_fields__)
