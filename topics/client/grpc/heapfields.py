"""What of a heap's config can be said over gRPC: the contract has names for the most of it, and types of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from topics.client.grpc.fitting import MS_MAX, not_whole, unfit
from topics.errors import InvalidRequest
from topics.limits import U32_MAX
from topics.model import Mode

_COUNTS: Final = ("partitions", "replication_factor", "top_k_bound", "max_retries", "max_payload_bytes")
_TIMES: Final = ("retention_ms", "lease_ms", "dead_letter_ttl_ms")
_ELSEWHERE: Final = "leave it out, or connect without grpc"


def sayable(topic: str, fields: Mapping[str, object]) -> dict[str, Any]:
    """The fields, when all of them can be said."""
    for name, value in fields.items():
        expected = _expected(topic, name, value)
        if expected:
            raise unfit(name, value, expected)
    return dict(fields)


def _expected(topic: str, name: str, value: object) -> str:
    """What it should be; empty when it is."""
    match name:
        case "mode":
            return "" if value in list(Mode) else "min or max"
        case "compression":
            return "" if isinstance(value, bool) else "true or false"
        case "dead_letter":
            own = f"{topic}.dlq"
            return "" if value in (None, own) else f'None or "{own}" over gRPC ({_ELSEWHERE})'
        case _ if name in _COUNTS:
            return not_whole(value, U32_MAX)
        case _ if name in _TIMES:
            return not_whole(value, MS_MAX)
    raise InvalidRequest(f"{name} of a heap cannot be set over gRPC: {_ELSEWHERE}", field=name)
