from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.wire.sql import SqlRequest, decode_sql


def test_statements_and_the_values_of_their_parameters() -> None:
    assert decode_sql(b'{"sql":"SELECT 1"}') == SqlRequest("SELECT 1")
    assert decode_sql(b'{"sql":"SELECT ?","params":[null,1,"a"]}') == SqlRequest("SELECT ?", [None, 1, "a"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "sql"),
        (b'{"sql":1}', "sql"),
        (b'{"sql":"a","params":1}', "params"),
        (b'{"sql":"a","sql":"b"}', "sql"),
        (b"", ""),
    ],
)
def test_what_is_wrong_is_named(body: bytes, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_sql(body)
    assert caught.value.detail["field"] == field
