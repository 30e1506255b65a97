"""The stages of one task: one for each partition of a topic that it has rows for, filled in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa

from topics.errors import BatchTooLarge
from topics.limits import BATCH_RECORDS_DEFAULT, MIB
from topics.spark.server import Server

CHUNK_BYTES: Final = 8 * MIB
"""What is sent at once, unless a single record is larger."""


class Target(NamedTuple):
    topic: str
    partition: int


def new_stage() -> str:
    """A name that no other attempt uses."""
    return f"spark-{uuid4().hex}"


@dataclass(slots=True)
class _Stage:
    name: str
    sent_count: int = 0
    waiting: list[Any] = field(default_factory=list)
    waiting_count: int = 0
    waiting_bytes: int = 0


class Staging:
    """Gathers what goes to the same place and sends it in large pieces."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._chunk_records = BATCH_RECORDS_DEFAULT
        self._open: dict[Target, _Stage] = {}

    @property
    def stages(self) -> list[str]:
        """The names of the stages, in the order in which their first rows came."""
        return [stage.name for stage in self._open.values()]

    def add(self, target: Target, records: Any) -> None:
        """Put rows, an Arrow table with the columns of a write, behind those that came before."""
        stage = self._open.get(target)
        if stage is None:
            stage = self._open[target] = _Stage(new_stage())
        stage.waiting.append(records)
        stage.waiting_count += records.num_rows
        stage.waiting_bytes += records.nbytes
        if stage.waiting_count >= self._chunk_records or stage.waiting_bytes >= CHUNK_BYTES:
            self._send(target, stage)

    def flush(self) -> None:
        for target, stage in self._open.items():
            self._send(target, stage)

    def _send(self, target: Target, stage: _Stage) -> None:
        if not stage.waiting_count:
            return
        records = pa.concat_tables(stage.waiting)
        pieces = max(1, -(-stage.waiting_bytes // CHUNK_BYTES))
        stage.waiting, stage.waiting_count, stage.waiting_bytes = [], 0, 0
        most = max(1, records.num_rows // pieces)
        at = 0
        while at < records.num_rows:
            piece = records.slice(at, min(most, self._chunk_records))
            try:
                self._server.stage(stage.name, *target, stage.sent_count, piece)
            except BatchTooLarge as error:
                # A server may be set to take fewer records at once; it says how many.
                allowed = error.detail.get("max", 0)
                if not 0 < allowed < piece.num_rows:
                    raise
                self._chunk_records = allowed
                continue
            stage.sent_count += piece.num_rows
            at += piece.num_rows
