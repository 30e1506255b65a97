"""What the queries of a pipeline have done, added up: over those that run, those that ended, and earlier runners.

Counts are by name: `input`, `misfits` (records that do not fit a schema), and of each route, by its number, `records:`
and `errors:`. What earlier runners counted is what the server remembers of their last report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from topics.pipelinemodel import PipelineState, RouteProgress
from topics.spark.pipeline.flows import MISFITS
from topics.spark.pipeline.progress import Progress
from topics.spark.pipeline.queries import Running
from topics.tablemodel import TableRoute

_BY_VERSION: Final = "version "


class Tally:
    def __init__(self, state: PipelineState) -> None:
        self._is_table = state.table is not None
        self._kept: Counter[str] = Counter()
        self._position_before = ""
        self._behind_since_ms: int | None = None
        report = state.report
        if report is None:
            return
        self._position_before = report.position
        self._kept["input"] = report.input_rows_total
        for route in report.routes:
            self._kept[f"records:{route.number}"] = route.records_total
            self._kept[f"errors:{route.number}"] = route.errors_total
        if not report.routes:
            self._kept["misfits"] = report.error_rows_total

    def keep(self, running: Sequence[Running]) -> None:
        """Add what these queries counted for good: they have ended."""
        self._kept = self._sums(running)

    def told(self, shown: Sequence[Running], running: Sequence[Running], now_ms: int) -> dict[str, Any]:
        """The fields of a report about numbers. `shown` are the queries that were begun last, running or not."""
        sums = self._sums(running)
        known = [each.progress for each in shown]
        lag = max((each.lag for each in known if each.lag is not None), default=None)
        by_version = any(each.position.startswith(_BY_VERSION) for each in known)
        written = sum(count for name, count in sums.items() if name.startswith("records:"))
        errors = sum(count for name, count in sums.items() if name.startswith("errors:"))
        slowest = max(known, key=lambda each: each.lag or 0, default=Progress())
        return {
            "position": slowest.position or self._position_before,
            "lag_versions": lag if by_version else None,
            "lag_records": None if by_version else lag,
            "lag_ms": self._lag_ms(lag, now_ms),
            "input_rows_per_second": sum(each.progress.input_rows_per_second for each in running),
            "output_rows_per_second": sum(each.progress.output_rows_per_second for each in running),
            "input_rows_total": sums["input"],
            "output_rows_total": written if self._is_table else sums["input"] - sums["misfits"],
            "error_rows_total": errors + sums["misfits"],
            "batch_id": slowest.batch_id,
            "batch_ms": slowest.batch_ms,
            "routes": tuple(_route(route, each.progress, sums) for each in shown for route in each.routes),
        }

    def _sums(self, running: Sequence[Running]) -> Counter[str]:
        sums = Counter(self._kept)
        for each in running:
            sums["input"] += each.progress.input_rows
            for name, count in each.progress.observed.items():
                kind, _, column = name.partition(".")
                if kind.startswith(MISFITS):
                    sums["misfits"] += count
                    continue
                word = column.rstrip("0123456789")
                sums[f"{word}:{each.routes[int(column[len(word) :])].number}"] += count
        return sums

    def _lag_ms(self, lag: int | None, now_ms: int) -> int | None:
        """For how long there has been something to do, as long as this runner has seen."""
        if not lag:
            self._behind_since_ms = None
            return None if lag is None else 0
        if self._behind_since_ms is None:
            self._behind_since_ms = now_ms
        return now_ms - self._behind_since_ms


def _route(route: TableRoute, progress: Progress, sums: Counter[str]) -> RouteProgress:
    by_version = progress.position.startswith(_BY_VERSION)
    return RouteProgress(
        topic=route.topic,
        operation=route.operation,
        number=route.number,
        position=progress.position,
        lag_versions=progress.lag if by_version else None,
        lag_records=None if by_version else progress.lag,
        records_total=sums[f"records:{route.number}"],
        errors_total=sums[f"errors:{route.number}"],
    )
