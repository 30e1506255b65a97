"""The report of an archive, and its progress as every answer shows it."""

from __future__ import annotations

import msgspec

from topics.core.commands import ReportArchive
from topics.errors import InvalidRequest
from topics.limits import PARTITIONS_MAX, U64_MAX
from topics.model import ArchiveState
from topics.wire import json
from topics.wire.numbers import whole


class _Body(msgspec.Struct):
    upto_seq: int | None = None
    location: str | None = None
    partition: int | None = None
    epoch: int | None = None


_decoder = msgspec.json.Decoder(_Body)


def decode_report(topic: str, archive: str, body: bytes) -> ReportArchive:
    parsed = json.decode(_decoder, body or b"{}")
    json.refuse_repeated_keys(body or b"{}", lambda root: [("", root)])
    if parsed.upto_seq is None:
        raise InvalidRequest(
            "a report names upto_seq, the last seq that the archive has", field="upto_seq", expected="a whole number"
        )
    return ReportArchive(
        topic,
        archive,
        whole("upto_seq", parsed.upto_seq, U64_MAX),
        parsed.location or "",
        whole("partition", parsed.partition, PARTITIONS_MAX - 1),
        None if parsed.epoch is None else whole("epoch", parsed.epoch, U64_MAX),
    )


def archive_fields(state: ArchiveState, partitions: int) -> dict[str, object]:
    """Who has one partition need not know that there could be more."""
    fields: dict[str, object] = msgspec.to_builtins(state)
    if partitions == 1:
        del fields["partition"]
    return fields
