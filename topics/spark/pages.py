"""Reading a range, page by page, into batches. Loss is never passed over: it is a row, or the end of the job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from topics.errors import TopicsError
from topics.limits import BYTE_BUDGET_MAX
from topics.spark.columns import Columns
from topics.spark.jobs import as_jobs
from topics.spark.options import ROW, Options
from topics.spark.ranges import SeqRange, match_of
from topics.spark.server import Gap, Server

RECREATED: Final = "recreated"
PAGE_RECORDS: Final = 16_384
"""Records asked for at once: large pages fall out of the processor's caches on their way, small ones cost calls."""


class RecordsLost(TopicsError):
    """Records that a job was to read are not there any more."""

    code = "records_lost"


def read_range(server: Server, options: Options, columns: Columns, wanted: SeqRange) -> Iterator[Any]:
    """The batches of a range."""
    cursor = wanted.from_seq
    if wanted.recreated:
        yield told(options, columns, wanted, Gap(cursor + 1, cursor, RECREATED))
    asked = {"node": options.node} if options.node else {}
    asked |= match_of(options.tags)
    while cursor < wanted.to_seq:
        page = server.read(
            wanted.topic,
            partition=wanted.partition,
            from_seq=cursor,
            limit=min(PAGE_RECORDS, wanted.to_seq - cursor),
            max_batch_bytes=BYTE_BUDGET_MAX,
            **asked,
        )
        facts = page.facts
        if facts.epoch != wanted.epoch:
            yield told(options, columns, wanted, Gap(cursor + 1, wanted.to_seq, RECREATED))
            return
        gap = facts.tombstone
        if gap is not None and gap.gap_from <= wanted.to_seq:
            yield told(options, columns, wanted, Gap(gap.gap_from, min(gap.gap_to, wanted.to_seq), gap.reason))
        records = _within(page.records, wanted.to_seq, options.tags)
        if wanted.dead_of:
            records = as_jobs(records, wanted.dead_of)
        if records.num_rows:
            yield columns.batch(wanted.dead_of or wanted.topic, wanted.partition, records)
        assert facts.next_from_seq > cursor, "a server that has records behind a cursor moves it"
        cursor = facts.next_from_seq


def told(options: Options, columns: Columns, wanted: SeqRange, gap: Gap) -> Any:
    """The row that tells of a gap; or the end of the job, if that is what its options say."""
    if options.on_gap == ROW:
        return columns.gap(wanted.topic, wanted.partition, gap)
    lost = f"records {gap.gap_from} to {gap.gap_to} of" if gap.gap_to >= gap.gap_from else "what was there before of"
    raise RecordsLost(
        f'{lost} topic "{wanted.topic}", partition {wanted.partition}, cannot be read any more ({gap.reason}). '
        "With .option('onGap', 'row') a row tells of them and the job goes on",
        topic=wanted.topic,
        partition=wanted.partition,
        gap_from=gap.gap_from,
        gap_to=gap.gap_to,
        reason=gap.reason,
    )


def _within(records: Any, to_seq: int, tags: tuple[str, ...]) -> Any:
    """What lies in the range. A page may go beyond it when records before its end were deleted."""
    seqs = records.column("seq")
    if len(seqs) and seqs[-1].as_py() > to_seq:
        records = records.filter(pc.less_equal(seqs, to_seq))
    return records if len(tags) <= 1 else with_tags(records, tags)


def with_tags(records: Any, tags: tuple[str, ...]) -> Any:
    """The records that have any of these tags; all when none is named."""
    if not tags:
        return records
    column = records.column("tag")
    exact = [tag for tag in tags if not tag.endswith("*")]
    chosen = pc.is_in(column, value_set=pa.array(exact, pa.string()))
    for tag in tags:
        if tag.endswith("*"):
            chosen = pc.or_(chosen, pc.fill_null(pc.starts_with(column, tag[:-1]), False))
    return records.filter(chosen)
