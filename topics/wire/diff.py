"""The body of a diff: what a reader asks for behind its cursor."""

from __future__ import annotations

from typing import Any

import msgspec

from topics.core.cut import PLAIN, Shape
from topics.core.match import Match, parse_match
from topics.limits import PARTITIONS_MAX, U64_MAX, WAIT_MS_MAX
from topics.wire import json
from topics.wire.numbers import whole


class DiffRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A limit or budget of 0 is the default; above what is allowed it is clamped."""

    from_seq: int = 0
    from_ts: int | None = None
    limit: int = 0
    byte_budget: int = 0
    nodes: tuple[str, ...] = ()
    match: Match | None = None
    shape: Shape = PLAIN
    wait_ms: int = 0
    partition: int = 0


class _Body(msgspec.Struct):
    from_seq: int | None = None
    from_ts: int | None = None
    limit: int | None = None
    max_batch_bytes: int | None = None
    node: str | list[str] | None = None
    match: Any = None
    include_tags: bool | None = None
    include_meta: bool | None = None
    wait_ms: int | None = None
    partition: int | None = None


_decoder = msgspec.json.Decoder(_Body)
_PLAIN_REQUEST = DiffRequest()


def decode_diff(body: bytes) -> DiffRequest:
    """The read a body asks for; an empty body is a read from the beginning."""
    if not body:
        return _PLAIN_REQUEST
    parsed = json.decode(_decoder, body)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return DiffRequest(
        from_seq=whole("from_seq", parsed.from_seq, U64_MAX),
        from_ts=None if parsed.from_ts is None else whole("from_ts", parsed.from_ts, U64_MAX),
        limit=whole("limit", parsed.limit, U64_MAX),
        byte_budget=whole("max_batch_bytes", parsed.max_batch_bytes, U64_MAX),
        nodes=_nodes(parsed.node),
        match=None if parsed.match is None else parse_match(parsed.match),
        shape=Shape(tags=bool(parsed.include_tags), meta=parsed.include_meta is not False),
        wait_ms=min(whole("wait_ms", parsed.wait_ms, U64_MAX), WAIT_MS_MAX),
        partition=whole("partition", parsed.partition, PARTITIONS_MAX - 1),
    )


def _nodes(node: str | list[str] | None) -> tuple[str, ...]:
    if node is None:
        return ()
    return (node,) if isinstance(node, str) else tuple(node)
