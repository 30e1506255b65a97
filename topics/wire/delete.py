"""The body of a delete: which records go."""

from __future__ import annotations

from typing import Any

import msgspec

from topics.core.match import Match, parse_match
from topics.errors import InvalidRequest
from topics.limits import PARTITIONS_MAX, U64_MAX
from topics.wire import json
from topics.wire.numbers import whole

_EXPECTED = "before_seq, match, or both"


class DeleteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Both given means both must hold. `erase`: the answer waits until the bytes are gone from disk.

    `dry_run`: count, and delete nothing.
    """

    before_seq: int | None = None
    match: Match | None = None
    erase: bool = False
    dry_run: bool = False
    partition: int = 0


class _Body(msgspec.Struct):
    before_seq: int | None = None
    match: Any = None
    erase: bool | None = None
    dry_run: bool | None = None
    partition: int | None = None


_decoder = msgspec.json.Decoder(_Body)


def decode_delete(body: bytes) -> DeleteRequest:
    parsed = json.decode(_decoder, body or b"{}")
    json.refuse_repeated_keys(body or b"{}", lambda root: [("", root)])
    if parsed.before_seq is None and parsed.match is None:
        raise InvalidRequest(f"a delete names {_EXPECTED}", field="before_seq", expected=_EXPECTED)
    return DeleteRequest(
        before_seq=None if parsed.before_seq is None else whole("before_seq", parsed.before_seq, U64_MAX),
        match=None if parsed.match is None else parse_match(parsed.match),
        erase=bool(parsed.erase),
        dry_run=bool(parsed.dry_run),
        partition=whole("partition", parsed.partition, PARTITIONS_MAX - 1),
    )
