from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.wire.query import Query


def test_values() -> None:
    query = Query("prefix=a%2Fb&touch=false&page_size=007&odd&empty=")
    assert query.text("prefix") == "a/b"
    assert query.text("absent") == query.text("odd") == query.text("empty") == ""
    assert query.flag("touch", True) is False
    assert query.flag("absent", True) is True
    assert query.whole("page_size", 100, 10) == 7
    assert query.whole("absent", 100, 10) == 100
    assert query.whole("absent", None, 10) is None
    assert query.given(("prefix", "absent", "odd", "empty")) == {"prefix": "a/b", "odd": "", "empty": ""}


def test_no_query() -> None:
    assert Query("").flag("touch", True) is True


@pytest.mark.parametrize("text", ["a=1&a=1", "a=1&%61=2", "a=%FF", "%ff=1"])
def test_what_is_no_query(text: str) -> None:
    with pytest.raises(InvalidRequest):
        Query(text)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1e3", " 1", "11", "٣", "9" * 5000])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Query(f"n={text}".replace("+", "%2B").replace(" ", "%20")).whole("n", 0, 10)
    assert caught.value.detail["field"] == "n"
    assert caught.value.detail["expected"] == "a whole number from 0 to 10"
    assert len(caught.value.message) < 200


def test_one_of_several() -> None:
    query = Query("state=delayed&type=")
    assert query.one_of("state", ("leased", "delayed"), "leased") == "delayed"
    assert query.one_of("absent", ("leased", "delayed"), "leased") == "leased"
    with pytest.raises(InvalidRequest, match='type must be one of log, queue, not ""'):
        query.one_of("type", ("log", "queue"))


@pytest.mark.parametrize("text", ["", "TRUE", "yes", "2"])
def test_what_is_no_flag(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Query(f"f={text}").flag("f", True)
    assert caught.value.detail["expected"] == "true or false"
