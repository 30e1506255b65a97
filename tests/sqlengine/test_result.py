"""What a result looks like on its way out, whatever is in it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import msgspec
import pyarrow as pa

from topics.sqlengine.result import Result, as_values, columns, iso_time, table_rows
from topics.sqlmodel import SqlTombstone

LOST = [
    SqlTombstone(
        topic="orders",
        partition=partition,
        gap_from=1,
        gap_to=9,
        reason="cap",
        missed_estimate=9,
        earliest_seq=10,
        head_seq=20,
    )
    for partition in (0, 1)
]


def test_what_was_lost_is_told_of_every_partition() -> None:
    named = columns(("seq", "BIGINT"))
    one, both = as_values([Result(named, [[1]], tombstones=(LOST[0],)), Result(named, [[1]], tombstones=tuple(LOST))])
    assert one.tombstone == both.tombstone == LOST[0]
    assert (one.tombstones, both.tombstones) == ([], LOST)


def test_an_arrow_stream_says_what_json_says_beside_the_rows() -> None:
    named = columns(("seq", "BIGINT"), ("data", "JSON"))
    result = Result(named, [[1, msgspec.Raw(b'{"n":1}')]], message="read", tombstones=tuple(LOST))
    table = pa.ipc.open_stream(result.arrow()).read_all()
    assert table.to_pydict() == {"seq": [1], "data": ['{"n":1}']}
    assert table.schema.metadata[b"message"] == b"read"
    assert msgspec.json.decode(table.schema.metadata[b"tombstones"], type=list[SqlTombstone]) == LOST


def test_values_that_json_has_no_word_for_are_text() -> None:
    table = pa.table(
        {
            "took": pa.array([timedelta(days=1, seconds=2), None]),
            "id": pa.array([UUID(int=7).bytes, None], pa.uuid()),
        }
    )
    rows = table_rows(table, columns(("took", "INTERVAL"), ("id", "UUID")))
    assert rows == [["1 day, 0:00:02", "00000000-0000-0000-0000-000000000007"], [None, None]]


def test_a_time_that_no_calendar_has_is_its_number() -> None:
    assert iso_time(1_000) == "1970-01-01T00:00:01.000Z"
    assert iso_time(10**15) == "1000000000000000"
