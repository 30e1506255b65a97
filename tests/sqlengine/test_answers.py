from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from topics.sqlengine.answers import PIECE_BYTES, ArrowAnswer, Bounds, JsonAnswer, Refused, pieces
from topics.sqlmodel import SqlColumn

BATCH = pa.record_batch({"a": [1, 2], "b": ["x", None]})
NAMED = (SqlColumn("a", "BIGINT"), SqlColumn("b", "VARCHAR"))


def test_json_answer_has_the_rows_of_all_batches() -> None:
    answer = JsonAnswer(NAMED)
    empty = BATCH.slice(0, 0)
    sizes = [answer.add(batch) for batch in (empty, BATCH, empty, BATCH)]
    made = msgspec.json.decode(b"".join(answer.parts()))
    assert made == {
        "columns": [{"name": "a", "type": "BIGINT"}, {"name": "b", "type": "VARCHAR"}],
        "rows": [[1, "x"], [2, None]] * 2,
        "row_count": 4,
    }
    assert sizes == [0, len('[1,"x"],[2,null]')] * 2


def test_answer_without_rows_is_an_answer() -> None:
    assert msgspec.json.decode(b"".join(JsonAnswer(()).parts())) == {"columns": [], "rows": [], "row_count": 0}


def test_arrow_answer_is_a_stream_and_counts_its_bytes() -> None:
    answer = ArrowAnswer(BATCH.schema)
    size = answer.add(BATCH) + answer.add(BATCH)
    stream = b"".join(answer.parts())
    assert pa.ipc.open_stream(stream).read_all().to_pydict() == {"a": [1, 2, 1, 2], "b": ["x", None] * 2}
    assert 0 < size < len(stream)


def test_large_batch_is_taken_in_pieces() -> None:
    batch = pa.record_batch({"a": ["x" * 1000] * 10_000})
    made = list(pieces(batch))
    assert len(made) > 4 and sum(piece.num_rows for piece in made) == 10_000
    assert max(piece.nbytes for piece in made) <= PIECE_BYTES
    (whole,) = pieces(pa.record_batch({"a": ["x" * 2 * PIECE_BYTES]}))
    assert whole.num_rows == 1
    assert list(pieces(batch.slice(0, 0))) == []


@pytest.mark.parametrize(("rows", "size", "kind"), [(11, 10, "rows"), (10, 11, "answer")])
def test_answer_over_a_bound_is_refused(rows: int, size: int, kind: str) -> None:
    bounds = Bounds(10, 10)
    with pytest.raises(Refused) as refused:
        bounds.take_rows(rows)
        bounds.take_bytes(size)
    assert refused.value.failure.kind == kind
    bounds = Bounds(10, 10)
    bounds.take_rows(10)
    bounds.take_bytes(10)
