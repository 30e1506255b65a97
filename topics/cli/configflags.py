"""The config of a topic as flags, the same for `topics topic create` and `topics topic config`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from topics.client.fields import ConfigFields
from topics.errors import InvalidRequest
from topics.settings import Unit, parse_number

CONFIG = Group("Config", sort_key=50)
NOTHING = "none"
"""How a flag says null."""


def _flag(doc: str) -> Parameter:
    return Parameter(group=CONFIG, help=doc, show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ConfigFlags:
    """A flag for each config field; None is not said."""

    type: Annotated[Literal["log", "queue", "heap"] | None, _flag("How records are taken; fixed at creation.")] = None
    ttl_ms: Annotated[str | None, _flag("Age at which records expire, like 1h or 60000; 0 is never.")] = None
    cap_records: Annotated[str | None, _flag("Records retained at most; 0 is no cap.")] = None
    cap_bytes: Annotated[str | None, _flag("Bytes retained at most, like 64MiB; 0 is no cap.")] = None
    discard: Annotated[
        Literal["old", "reject"] | None, _flag("What a full topic does: drop the oldest, or refuse the write.")
    ] = None
    durability: Annotated[
        Literal["ephemeral", "memory", "disk", "fsync"] | None, _flag("When a write is acked, and what it survives.")
    ] = None
    priority: Annotated[str | None, _flag("-1000 to 1000; none derives it from reads.")] = None
    auto_priority: Annotated[bool | None, _flag("Whether reads raise the priority.")] = None
    auto_create: Annotated[bool | None, _flag("Whether a write may make the topic.")] = None
    idempotency_window_ms: Annotated[str | None, _flag("How long idempotency keys are remembered.")] = None
    dedupe_node: Annotated[bool | None, _flag("Whether readers can leave out their own records.")] = None
    lease_ms: Annotated[str | None, _flag("Queue, heap: how long a claim or pop lasts.")] = None
    claim_jitter_ms: Annotated[str | None, _flag("Queue: how long claims are gathered.")] = None
    max_deliveries: Annotated[str | None, _flag("Queue: deliveries before a job is dead-lettered; 0 is no limit.")] = (
        None
    )
    dead_letter: Annotated[str | None, _flag("Queue, heap: the topic dead letters go to, or none.")] = None
    leases_durable: Annotated[bool | None, _flag("Queue: whether leases survive a crash.")] = None
    partitions: Annotated[str | None, _flag("Logs that the topic is made of; fixed at creation.")] = None
    alias: Annotated[str | None, _flag("Another name for the topic; none takes it away.")] = None
    protect_unarchived: Annotated[bool | None, _flag("Whether retention waits for the archives.")] = None
    protect_groups: Annotated[str | None, _flag("Groups that retention waits for, with commas between; or none.")] = (
        None
    )
    protect_max_bytes: Annotated[str | None, _flag("Bytes a partition holds at most while retention waits.")] = None
    visibility_ms: Annotated[str | None, _flag("How long a consumer of a group has records; 0 is the server's.")] = None

    mode: Annotated[Literal["min", "max"] | None, _flag("Heap: which priority is best; fixed at creation.")] = None
    top_k_bound: Annotated[str | None, _flag("Heap: how far from the best a pop may be over several machines.")] = None
    replication_factor: Annotated[str | None, _flag("Heap: copies of each message; one machine keeps one.")] = None
    retention_ms: Annotated[str | None, _flag("Heap: how long dead letters are kept; 0 is for ever.")] = None
    max_retries: Annotated[str | None, _flag("Heap: how often a message may fail and be tried again.")] = None
    max_payload_bytes: Annotated[str | None, _flag("Heap: the largest payload, like 1MiB.")] = None
    compression: Annotated[bool | None, _flag("Heap: whether clients may compress what they send.")] = None
    dead_letter_ttl_ms: Annotated[str | None, _flag("Heap: how long dead letters are kept, if not as retention.")] = (
        None
    )

    def fields(self) -> ConfigFields:
        """The fields that were said."""
        said = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        values = {name: _value(name, given) if isinstance(given, str) else given for name, given in said.items()}
        # What the names and values may be is for the engine to say; this only reads units.
        make: Callable[..., ConfigFields] = ConfigFields
        return make(**values)


NO_CONFIG = ConfigFlags()
_NULLABLE = {"priority", "dead_letter", "alias"}
_LISTS = {"protect_groups"}
_TEXTS = {"type", "discard", "durability", "dead_letter", "alias", "mode"}


def _value(name: str, given: str) -> str | int | list[str] | None:
    if name in _LISTS:
        return [] if given == NOTHING else given.split(",")
    if name in _NULLABLE and given == NOTHING:
        return None
    if name in _TEXTS:
        return given
    if name == "priority":
        return _whole(name, given)
    unit = Unit.MS if name.endswith("_ms") else Unit.BYTES if name.endswith("_bytes") else Unit.COUNT
    number = parse_number(given, unit)
    if number is None:
        expected = {Unit.MS: "a duration like 1h or 60000", Unit.BYTES: "a size like 64MiB"}.get(unit, "a whole number")
        raise InvalidRequest(f"--{name.replace('_', '-')}={given}: expected {expected}", field=name, expected=expected)
    return number


def _whole(name: str, given: str) -> int:
    try:
        return int(given)
    except ValueError:
        raise InvalidRequest(f"--{name}={given}: expected a whole number or {NOTHING}", field=name) from None
