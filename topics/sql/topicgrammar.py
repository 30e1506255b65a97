"""Statements about topics: create, alter, drop, clear, insert."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from topics.core.source import Operation, PayloadMode, RouteStart
from topics.errors import TopicsError
from topics.jsontext import encode, too_deep
from topics.limits import U32_MAX
from topics.sql.expression import condition, expressions
from topics.sql.options import NO_RETENTION, OPTIONS, RETENTION, Options, check_changes, check_new
from topics.sql.place import Place
from topics.sql.reader import Reader
from topics.sql.statements import (
    AddSource,
    AlterTopic,
    Cell,
    ClearTopic,
    CreateTopic,
    DropSource,
    DropTopic,
    Insert,
    Json,
    Value,
)
from topics.sql.tokens import Kind

COLUMNS = ("data", "tag", "node", "meta")
"""What a record has that a writer names."""

_json = msgspec.json.Decoder(msgspec.Raw)


def create(reader: Reader) -> CreateTopic:
    reader.expect("TOPIC")
    if_not_exists = reader.accept("IF")
    if if_not_exists:
        reader.expect("NOT", "EXISTS")
    topic = reader.topic()
    options = Options(reader)
    if reader.accept("PARTITIONS"):
        options.add("partitions", reader.whole("the number of partitions", 1), reader.place)
    if reader.accept("ALIAS"):
        place = reader.place
        options.add("alias", reader.topic("an alias"), place)
    if reader.accept("WITH"):
        _options(reader, options)
    return CreateTopic(topic, check_new(reader, topic, options), if_not_exists)


def alter(reader: Reader) -> AlterTopic | AddSource | DropSource:
    reader.expect("TOPIC")
    topic = reader.topic()
    if reader.accept("ADD"):
        return _add_source(reader, topic)
    if reader.accept("DROP"):
        reader.expect("SOURCE")
        table = reader.table()
        return DropSource(topic, table, _operations(reader) if reader.accept("ON") else ())
    if reader.accept("CLEAR"):
        reader.expect("RETENTION")
        return AlterTopic(topic, NO_RETENTION)
    reader.expect("SET")
    options = Options(reader)
    if reader.accept("RETENTION"):
        reader.expect("WITH")
        _options(reader, options, RETENTION)
    else:
        _options(reader, options)
    return AlterTopic(topic, check_changes(reader, topic, options))


def drop(reader: Reader) -> DropTopic:
    if_exists = reader.accept("IF")
    if if_exists:
        reader.expect("EXISTS")
    return DropTopic(reader.topic(), if_exists)


def clear(reader: Reader) -> ClearTopic:
    reader.expect("TOPIC")
    topic = reader.topic()
    return ClearTopic(topic, partition(reader) if reader.accept("PARTITION") else None)


def partition(reader: Reader) -> int:
    return reader.whole("a partition", 0, U32_MAX)


# ---- sources


def _add_source(reader: Reader, topic: str) -> AddSource:
    reader.expect("SOURCE")
    table = reader.table()
    reader.expect("ON")
    operations = _operations(reader)
    start, version = _start(reader) if reader.accept("FROM") else (None, 0)
    where = condition(reader, ("PARTITION", "BY"), ("WITH", "(")) if reader.accept("WHERE") else None
    partition_by = None
    if reader.accept("PARTITION"):
        reader.expect("BY")
        partition_by = expressions(reader)
    payload, snapshot = _route_options(reader) if reader.accept("WITH") else (PayloadMode.KEY, None)
    if snapshot is not None:
        if start is not None:
            raise reader.fail("FROM and snapshot both say where it begins", snapshot, ["one of them"])
        start = RouteStart.SNAPSHOT
    return AddSource(topic, table, operations, where, partition_by, payload, start, version)


def _start(reader: Reader) -> tuple[RouteStart, int]:
    start = RouteStart(reader.one_of("NOW", "SNAPSHOT", "VERSION").lower())
    return start, reader.whole("a version") if start is RouteStart.VERSION else 0


def _operations(reader: Reader) -> tuple[Operation, ...]:
    found: list[Operation] = []
    while not found or reader.accept_sign(","):
        place = reader.place
        operation = Operation(reader.one_of(*(member.value.upper() for member in Operation)).lower())
        if operation in found:
            raise reader.fail(f"{operation.upper()} is said twice", place)
        found.append(operation)
    return tuple(found)


def _route_options(reader: Reader) -> tuple[PayloadMode, Place | None]:
    """What a record holds, and where it is said that all rows come first, if it is."""
    reader.expect_sign("(")
    payload = PayloadMode.KEY
    snapshot: Place | None = None
    said: list[str] = []
    while not said or reader.accept_sign(","):
        name_place = reader.place
        name = reader.one_of("PAYLOAD", "SNAPSHOT")
        if name in said:
            raise reader.fail(f"{name.lower()} is said twice", name_place)
        said.append(name)
        reader.expect_sign("=")
        if name == "PAYLOAD":
            payload = _payload(reader)
        else:
            value, place = reader.literal("TRUE or FALSE")
            if not isinstance(value, bool):
                raise reader.fail("snapshot is TRUE or FALSE", place, ["TRUE", "FALSE"])
            snapshot = place if value else None
    reader.expect_sign(")")
    return payload, snapshot


def _payload(reader: Reader) -> PayloadMode:
    value, place = reader.literal("a payload")
    modes = {member.value: member for member in PayloadMode}
    if not isinstance(value, str) or value not in modes:
        raise reader.fail("payload is what a record holds of a row", place, [f"'{mode}'" for mode in modes])
    return modes[value]


# ---- options


def _options(reader: Reader, options: Options, known: Sequence[str] = OPTIONS) -> None:
    """`(name = value, …)`; a value may be several in parentheses."""
    reader.expect_sign("(")
    while True:
        name, place = reader.name("an option")
        reader.expect_sign("=")
        value_place = reader.place
        options.add_named(name, place, _value(reader), Place(value_place.start, value_place.end), known)
        if not reader.accept_sign(","):
            break
    reader.expect_sign(")")


def _value(reader: Reader) -> Value:
    if not reader.accept_sign("("):
        return _scalar(reader)
    values = [_scalar(reader)] if not reader.accept_sign(")") else []
    while values and reader.accept_sign(","):
        values.append(_scalar(reader))
    if values:
        reader.expect_sign(")")
    return tuple(values)


def _scalar(reader: Reader) -> Value:
    value, place = reader.literal("a value")
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise reader.fail("an option is a string, a number, TRUE, FALSE, NULL or a list", place, ["a value"])


# ---- insert


def insert(reader: Reader) -> Insert:
    reader.expect("INTO", "TOPIC")
    topic = reader.topic()
    number = key = None
    if reader.accept("PARTITION"):
        number = partition(reader)
    elif reader.accept("KEY"):
        key = reader.text_value("a key")[0]
    columns = _columns(reader) if reader.accept_sign("(") else ("data",)
    reader.expect("VALUES")
    rows: list[tuple[Cell, ...]] = []
    while not rows or reader.accept_sign(","):
        rows.append(_row(reader, columns))
    return Insert(topic, columns, tuple(rows), number, key)


def _columns(reader: Reader) -> tuple[str, ...]:
    found: list[str] = []
    while not found or reader.accept_sign(","):
        name, place = reader.name("a column")
        if name not in COLUMNS:
            raise reader.fail(f"{name} is no column that can be written", place, COLUMNS)
        if name in found:
            raise reader.fail(f"{name} is said twice", place)
        found.append(name)
    place = reader.place
    reader.expect_sign(")")
    if "data" not in found:
        raise reader.fail("a record has data", place, ["data"])
    return tuple(found)


def _row(reader: Reader, columns: tuple[str, ...]) -> tuple[Cell, ...]:
    reader.expect_sign("(")
    cells: list[Cell] = []
    for column in columns:
        if cells:
            reader.expect_sign(",")
        cells.append(_cell(reader, column))
    reader.expect_sign(")")
    return tuple(cells)


def _cell(reader: Reader, column: str) -> Cell:
    token = reader.token
    literal_text = token is not None and token.kind is Kind.STRING
    value, place = reader.literal(f"a value for {column}")
    if column in ("tag", "node"):
        if value is None or isinstance(value, str):
            return value
        raise reader.fail(f"{column} is a string or NULL", place, ["a string"])
    if literal_text:
        assert isinstance(value, str)
        return _json_text(reader, value, place, column)
    if value is None and column == "meta":
        return None
    try:
        return Json(encode(value, column))
    except TopicsError as error:
        raise reader.fail(error.message, place, ["a value that JSON has"]) from error


def _json_text(reader: Reader, text: str, place: Place, column: str) -> Json:
    try:
        return Json(bytes(_json.decode(text.encode())).strip())
    except RecursionError as error:
        raise reader.fail(too_deep(column).message, place, ["a value that is less deep"]) from error
    except msgspec.DecodeError as error:
        hint = 'JSON text such as \'{"sku": "A1"}\' or \'"text"\''
        raise reader.fail(f"this is not JSON for {column}: {error}", place, [hint, "a parameter"]) from error
