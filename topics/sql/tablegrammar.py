"""Statements about registered tables: register, unregister, describe."""

from __future__ import annotations

from topics.core.pipelinecommands import Existing
from topics.core.table import FILE_OPTIONS, check_config
from topics.errors import InvalidRequest
from topics.sql.ddl import parse_columns
from topics.sql.pipelinestatements import DescribeTable, RegisterTable, UnregisterTable
from topics.sql.place import Place
from topics.sql.reader import Reader
from topics.tablemodel import TableColumn, TableConfig, TableFormat

_FIELDS = ("location_env", "source")
_OPTIONS = (*_FIELDS, *FILE_OPTIONS)
_BY_LOWER = {option.lower(): option for option in _OPTIONS}


def register(reader: Reader) -> RegisterTable:
    existing = or_replace(reader)
    reader.expect("TABLE")
    existing = if_not_exists(reader, existing)
    place = reader.place
    table = reader.registered()
    reader.expect("USING")
    form = TableFormat(reader.one_of(*(member.value.upper() for member in TableFormat)).lower())
    location = reader.string("a location") if reader.accept("LOCATION") else ""
    key = names(reader, "a column") if reader.accept("KEY") else ()
    columns = _columns(reader) if reader.accept("COLUMNS") else ()
    said = options(reader, _BY_LOWER, "table") if reader.accept("WITH") else {}
    config = TableConfig(
        format=form,
        location=location,
        location_env=_text(said, "location_env"),
        source=_text(said, "source"),
        key=key,
        columns=columns,
        options={name: _text(said, name) for name in said if name not in _FIELDS},
    )
    try:
        check_config(table, config)
    except InvalidRequest as error:
        raise reader.fail(error.message, place, [str(error.detail["expected"])]) from error
    return RegisterTable(table, config, existing)


def unregister(reader: Reader) -> UnregisterTable:
    reader.expect("TABLE")
    if_exists = reader.accept("IF")
    if if_exists:
        reader.expect("EXISTS")
    return UnregisterTable(reader.registered(), if_exists)


def describe(reader: Reader) -> DescribeTable:
    return DescribeTable(reader.registered())


# ---- what statements about pipelines are made of, too


def or_replace(reader: Reader) -> Existing:
    if not reader.accept("OR"):
        return Existing.REFUSE
    reader.expect("REPLACE")
    return Existing.REPLACE


def if_not_exists(reader: Reader, existing: Existing) -> Existing:
    place = reader.place
    if not reader.accept("IF"):
        return existing
    reader.expect("NOT", "EXISTS")
    if existing is Existing.REPLACE:
        raise reader.fail("OR REPLACE and IF NOT EXISTS cannot both be meant", place, ["one of them"])
    return Existing.KEEP


def names(reader: Reader, what: str) -> tuple[str, ...]:
    """`(a, b)`, each once."""
    reader.expect_sign("(")
    found: list[str] = []
    while not found or reader.accept_sign(","):
        name, place = reader.name(what)
        if name in found:
            raise reader.fail(f"{name} is said twice", place)
        found.append(name)
    reader.expect_sign(")")
    return tuple(found)


def options(reader: Reader, known: dict[str, str], what: str) -> dict[str, tuple[object, Place]]:
    """`(name = value, …)`, by the names that `known` has under small letters; and where each value stands."""
    reader.expect_sign("(")
    found: dict[str, tuple[object, Place]] = {}
    while not found or reader.accept_sign(","):
        name, place = reader.name("an option")
        option = known.get(name.lower())
        if option is None:
            raise reader.fail(f"{name} is no option of a {what}", place, sorted(known.values()))
        if option in found:
            raise reader.fail(f"{option} is said twice", place)
        reader.expect_sign("=")
        found[option] = reader.literal("a value")
    reader.expect_sign(")")
    return found


def _text(said: dict[str, tuple[object, Place]], option: str) -> str:
    value = said[option][0] if option in said else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _columns(reader: Reader) -> tuple[TableColumn, ...]:
    reader.expect_sign("(")
    place = reader.place
    text = reader.string("columns and their types")
    try:
        found = parse_columns(text)
    except ValueError as error:
        message = f"these are no columns with their types: {error}"
        raise reader.fail(message, place, ["such as 'id bigint, body string'"]) from error
    reader.expect_sign(")")
    return found
