from __future__ import annotations

import pytest

from topics.core.source import Operation, PayloadMode, Source, added, without
from topics.errors import InvalidRequest, NotFound
from topics.limits import SOURCE_EXPRESSION_BYTES_MAX, SOURCES_MAX

INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE


def test_each_pair_of_table_and_operation_is_there_once() -> None:
    first = added("t", (), [Source("b", UPDATE), Source("a", INSERT)])
    assert first == (Source("a", INSERT), Source("b", UPDATE))
    full = Source("a", INSERT, PayloadMode.FULL, "x > 1", "y")
    assert added("t", first, [full, Source("a", DELETE)]) == (Source("a", DELETE), full, Source("b", UPDATE))


def test_those_that_are_named_go() -> None:
    three = added("t", (), [Source("a", INSERT), Source("a", DELETE), Source("b", INSERT)])
    assert without("t", three, "a", []) == (Source("b", INSERT),)
    assert without("t", three, "a", [DELETE]) == (Source("a", INSERT), Source("b", INSERT))
    with pytest.raises(NotFound, match='topic "t" has no source "a" on update'):
        without("t", three, "a", [INSERT, UPDATE])
    with pytest.raises(NotFound, match='no source "c"'):
        without("t", three, "c", [])


def test_what_is_too_much_is_refused() -> None:
    many = [Source(f"t{number}", INSERT) for number in range(SOURCES_MAX)]
    full = added("t", (), many)
    assert len(full) == SOURCES_MAX
    with pytest.raises(InvalidRequest, match="at most"):
        added("t", full, [Source("one more", INSERT)])
    with pytest.raises(InvalidRequest, match="an expression"):
        added("t", (), [Source("a", INSERT, where="x" * (SOURCE_EXPRESSION_BYTES_MAX + 1))])
    with pytest.raises(InvalidRequest, match="name of a table"):
        added("t", (), [Source("", INSERT)])
