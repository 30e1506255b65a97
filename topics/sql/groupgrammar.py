"""Statements about groups: consume; ack, nack and extend what was consumed; pause, resume, reset, drop."""

from __future__ import annotations

from datetime import UTC, datetime

from topics.groupmodel import EARLIEST, LATEST, Start, at_seq, at_ts
from topics.limits import WAIT_MS_MAX
from topics.sql.reader import Reader
from topics.sql.statements import AckGroup, Consume, DropGroup, ExtendGroup, NackGroup, PauseGroup, ResetGroup
from topics.sql.tokens import Kind
from topics.sql.topicgrammar import partition


def consume(reader: Reader) -> Consume:
    reader.expect("FROM")
    topic = reader.topic()
    number = partition(reader) if reader.accept("PARTITION") else None
    group = reader.group() if reader.accept("GROUP") else None
    consumer = reader.group("the name of a consumer") if group is not None and reader.accept("CONSUMER") else ""
    start = _start(reader) if reader.accept("FROM") or reader.accept("START") else None
    limit = reader.whole("a limit", 1) if reader.accept("LIMIT") else None
    wait_ms = reader.whole("a time in milliseconds", 0, WAIT_MS_MAX) if reader.accept("WAIT") else 0
    return Consume(topic, number, group, consumer, start, limit, wait_ms)


def ack(reader: Reader) -> AckGroup:
    topic, group, consumer, number = _claim(reader)
    return AckGroup(topic, group, _upto(reader), number, consumer)


def nack(reader: Reader) -> NackGroup:
    topic, group, consumer, number = _claim(reader)
    since = 0
    if reader.accept("FROM"):
        reader.accept("OFFSET")
        since = reader.whole("an offset")
    upto = _upto(reader)
    delay_ms = reader.whole("a time in milliseconds") if reader.accept("DELAY") else 0
    return NackGroup(topic, group, upto, since, number, consumer, delay_ms)


def extend(reader: Reader) -> ExtendGroup:
    topic, group, consumer, number = _claim(reader)
    upto = _upto(reader)
    visibility_ms = reader.whole("a time in milliseconds", 1) if reader.accept("FOR") else None
    return ExtendGroup(topic, group, upto, number, consumer, visibility_ms)


def pause(reader: Reader) -> PauseGroup:
    return _paused(reader, True)


def resume(reader: Reader) -> PauseGroup:
    return _paused(reader, False)


def reset(reader: Reader) -> ResetGroup:
    _group_word(reader)
    group = reader.group()
    reader.expect("ON")
    topic = reader.topic()
    number = partition(reader) if reader.accept("PARTITION") else None
    reader.expect("TO")
    return ResetGroup(topic, group, _start(reader), number)


def drop(reader: Reader) -> DropGroup:
    group = reader.group()
    reader.expect("ON")
    return DropGroup(reader.topic(), group)


def _claim(reader: Reader) -> tuple[str, str, str, int]:
    """Whose records are meant: topic, group, consumer and partition."""
    topic = reader.topic()
    reader.expect("GROUP")
    group = reader.group()
    consumer = reader.group("the name of a consumer") if reader.accept("CONSUMER") else ""
    return topic, group, consumer, partition(reader) if reader.accept("PARTITION") else 0


def _upto(reader: Reader) -> int:
    reader.expect("UPTO")
    reader.accept("OFFSET")
    return reader.whole("an offset")


def _group_word(reader: Reader) -> None:
    reader.accept("CONSUMER")
    reader.expect("GROUP")


def _paused(reader: Reader, paused: bool) -> PauseGroup:
    _group_word(reader)
    group = reader.group()
    reader.expect("ON")
    return PauseGroup(reader.topic(), group, paused)


def _start(reader: Reader) -> Start:
    if reader.accept("EARLIEST"):
        return EARLIEST
    if reader.accept("LATEST"):
        return LATEST
    if reader.accept("TIMESTAMP"):
        return at_ts(_timestamp_ms(reader))
    token = reader.token
    if not reader.accept("OFFSET") and (token is None or token.kind not in (Kind.NUMBER, Kind.PARAMETER)):
        reader.refuse("an offset")
    return at_seq(reader.whole("an offset"))


def _timestamp_ms(reader: Reader) -> int:
    """Milliseconds since 1970: of a time as text, in UTC unless it says otherwise, or as they are."""
    expected = ["'2026-01-28 12:00:00'", "milliseconds since 1970"]
    value, place = reader.literal("a time")
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if not isinstance(value, str):
        raise reader.fail("this is no time", place, expected)
    try:
        time = datetime.fromisoformat(value)
    except ValueError as error:
        raise reader.fail("this is no time", place, expected) from error
    since = (time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    milliseconds = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    if milliseconds < 0:
        raise reader.fail("times begin in 1970", place, expected)
    return milliseconds
