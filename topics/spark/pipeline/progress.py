"""How far a query is, in words and numbers, out of what Spark says of its last batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql.streaming.listener import StreamingQueryProgress

_PLACES: Final = {"version": "version", "id": "id", "files": "file"}
_EPOCH: Final = "epoch"


@dataclass
class Progress:
    """The sums of a query's batches, and where the last one ended."""

    batch_id: int | None = None
    batch_ms: int | None = None
    position: str = ""
    lag: int | None = None
    """Versions, ids, files or records, as the position counts them."""
    input_rows_per_second: float = 0.0
    output_rows_per_second: float = 0.0
    input_rows: int = 0
    observed: dict[str, int] = field(default_factory=dict)
    """What was counted, by its name and the column's: `routes.records0`."""

    def take(self, batches: Iterable[StreamingQueryProgress]) -> bool:
        """Add the batches that were not seen before; whether there was one with rows."""
        moved = False
        for batch in batches:
            offsets = [source.endOffset for source in batch.sources]
            latest = [source.latestOffset for source in batch.sources]
            self.position = " ".join(text for text in map(position_text, offsets) if text) or self.position
            self.lag = lag_between(offsets, latest)
            self.input_rows_per_second = _finite(batch.inputRowsPerSecond)
            if self.batch_id is not None and batch.batchId <= self.batch_id:
                continue
            # While a query waits it tells of the next batch again and again, without rows.
            if not batch.numInputRows and not batch.durationMs.get("addBatch"):
                continue
            self.batch_id, moved = batch.batchId, True
            self.batch_ms = batch.durationMs.get("triggerExecution")
            self.output_rows_per_second = _finite(batch.processedRowsPerSecond)
            self.input_rows += batch.numInputRows
            for name, row in batch.observedMetrics.items():
                for column, count in _columns(row).items():
                    counted = f"{name}.{column}"
                    self.observed[counted] = self.observed.get(counted, 0) + int(count or 0)
        return moved


def position_text(offset: str | None) -> str:
    """An offset in words: `version 17`, or `orders/0@1200 orders/1@1180`."""
    places = _decoded(offset)
    for name, word in _PLACES.items():
        if isinstance(places.get(name), int):
            return f"{word} {places[name]}"
    found = []
    for topic, seqs in sorted(places.items()):
        if isinstance(seqs, dict):
            found += [f"{topic}/{name}@{seqs[name]}" for name in sorted(seqs, key=_rank) if name != _EPOCH]
    return " ".join(found)


def lag_between(offsets: list[Any], latest: list[Any]) -> int | None:
    """How much lies between where sources are and where they could be; None when it is not said."""
    total: int | None = None
    for here, there in zip(offsets, latest, strict=True):
        behind = _behind(_decoded(here), _decoded(there))
        if behind is not None:
            total = (total or 0) + behind
    return total


def _behind(here: Mapping[str, Any], there: Mapping[str, Any]) -> int | None:
    for name in _PLACES:
        if isinstance(here.get(name), int) and isinstance(there.get(name), int):
            return max(0, int(there[name]) - int(here[name]))
    total: int | None = None
    for topic, seqs in there.items():
        if isinstance(seqs, dict):
            known = here.get(topic, {})
            same = isinstance(known, dict) and known.get(_EPOCH) == seqs.get(_EPOCH)
            for name in seqs.keys() - {_EPOCH}:
                total = (total or 0) + max(0, seqs[name] - (known.get(name, 0) if same else 0))
    return total


def _columns(row: Row) -> dict[str, Any]:
    """What a batch counted, by its names. Spark Connect tells a row as the row of its values and its schema."""
    told: dict[str, Any] = row.asDict()
    if told.keys() != {"values", "schema"}:
        return told
    return {field["name"]: value for field, value in zip(told["schema"]["fields"], told["values"], strict=True)}


def _decoded(offset: str | None) -> dict[str, Any]:
    try:
        found = json.loads(offset) if offset else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _rank(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdecimal() else (1 << 60, name)


def _finite(rate: float | None) -> float:
    return float(rate) if rate is not None and rate == rate and rate < float("inf") else 0.0
