"""How a producer works: when a batch leaves, how much may wait, how long a record may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from topics.client.fields import ConfigFields, check_config
from topics.errors import InvalidRequest
from topics.limits import KIB, MIB, SECOND_MS


class ProducerFields(TypedDict, total=False):
    """The options of a producer as keywords; what each means is in `topics.client.produceroptions`."""

    id: str
    epoch: int
    linger_ms: int
    batch_records_max: int
    batch_bytes_max: int
    buffer_bytes_max: int
    delivery_timeout_ms: int
    node: str | None
    create: bool | None
    config: ConfigFields | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    id: str
    """Names the producer; two with the same id fence each other, and the one with the higher epoch writes on."""
    epoch: int
    linger_ms: int = 5
    """How long the first record of a batch waits for others."""
    batch_records_max: int = 1000
    batch_bytes_max: int = 512 * KIB
    buffer_bytes_max: int = 32 * MIB
    """What waits to be delivered, of all topics; a `send` beyond it waits for room."""
    delivery_timeout_ms: int = 120 * SECOND_MS
    """How long a batch is tried before its records have failed."""
    node: str | None = None
    create: bool | None = None
    config: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                expected = f"a whole number, at least {least}"
                raise InvalidRequest(f"{name} must be {expected}, not {value!r}", field=name, expected=expected)
        if not isinstance(self.id, str) or not self.id:
            raise InvalidRequest(f"id must be a string, not {self.id!r}", field="id", expected="a string")
        if self.config is not None:
            check_config(self.config)


_LEAST = {
    "epoch": 0,
    "linger_ms": 0,
    "batch_records_max": 1,
    "batch_bytes_max": 1,
    "buffer_bytes_max": 1,
    "delivery_timeout_ms": 0,
}
