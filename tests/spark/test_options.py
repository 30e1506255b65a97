from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.spark.options import FAIL, ROW, Options, parse_options

GIVEN = {"url": "http://host:1", "topic": "orders"}


def refused(**options: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse_options(GIVEN | options)
    return caught.value


def test_names_are_not_case_sensitive() -> None:
    found = parse_options({"URL": "http://host:1", "Topic": "a, b*,a", "startingseq": "7", "ONGAP": "ROW"})
    assert (found.url, found.topics, found.starting_seq, found.on_gap) == ("http://host:1", ("a", "b*"), 7, ROW)
    assert found.is_wild and not parse_options(GIVEN).is_wild


def test_defaults() -> None:
    assert parse_options(GIVEN) == Options(url="http://host:1", topics=("orders",))
    assert parse_options(GIVEN).on_gap == FAIL


def test_what_is_said_goes_before_the_session_and_that_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_URL", "http://environment")
    monkeypatch.setenv("TOPICS_API_KEY", "from-environment")
    assert parse_options({}).url == "http://environment"
    found = parse_options({}, {"url": "http://session", "key": "from-session"})
    assert (found.url, found.key) == ("http://session", "from-session")
    assert parse_options({"URL": "http://said"}, {"url": "http://session"}).url == "http://said"


def test_a_key_is_not_shown() -> None:
    assert "hush" not in repr(parse_options(GIVEN | {"key": "hush"}))


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20.5+01:00", 1_700_000_000_500),
        ("2023-11-14 22:13:20", 1_700_000_000_000),
    ],
)
def test_times(text: str, ms: int) -> None:
    assert parse_options(GIVEN | {"startingTimestamp": text}).starting_ms == ms


def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(startingSeq="-1").detail["field"] == "startingSeq"
    assert refused(endingTimestamp="soon").detail["field"] == "endingTimestamp"
    assert refused(onGap="ignore").detail["field"] == "onGap"
    assert refused(history="tape").detail["field"] == "history"
    assert refused(topic="a*b").detail["field"] == "topic"
    assert refused(create="yes").detail["field"] == "create"
    assert refused(maxRowsPerTrigger="many").detail["field"] == "maxRowsPerTrigger"
    assert "startingSeq" in refused(startingSeqq="1").message
    assert parse_options(GIVEN | {"path": "/x", "checkpointLocation": "/y"}).topics == ("orders",)
    monkeypatch.delenv("TOPICS_URL", raising=False)
    with pytest.raises(InvalidRequest, match="TOPICS_URL"):
        parse_options({"topic": "orders"})
