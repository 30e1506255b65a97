"""JSON text as values, a column at a time: what the option `schema` makes of `data`.

All texts of a column are parsed at once into a struct. When one of them does not fit, the column is halved
until the culprits are alone; those become null, and their text is kept as corrupt. A field that the schema does not
name is ignored, one that is missing is null, and nothing is converted: a number where text should be is corrupt.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from topics.errors import InvalidRequest

_PARSED_TOO: Final = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)


def parse_values(texts: Any, kind: Any) -> tuple[Any, Any]:
    """The texts as structs of type `kind`, and those that do not fit, each with null in the place of the other."""
    fields = pa.schema(list(_readable(kind)))
    # The parser does not survive a null where a value should begin.
    nothing = pc.equal(texts, "null")
    values, corrupt = _parse(pc.if_else(nothing, "{}", texts), fields, kind)
    return pc.if_else(nothing, pa.scalar(None, kind), values), corrupt


def infer_fields(texts: list[str]) -> Any:
    """The fields that a sample of texts has; those that are no objects, or at odds with the others, do not count."""
    found = pa.schema([])
    for text in texts:
        if text == "null":
            continue
        try:
            seen = _read(text.encode(), None).schema
            found = pa.unify_schemas([found, seen], promote_options="permissive")
        except pa.ArrowException:
            continue
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in found])


def _plain(kind: Any) -> Any:
    """An inferred type as Spark should have it: text stays text, also where it looks like a time."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind if any(is_kind(kind) for is_kind in _PARSED_TOO) else pa.string()


def _readable(kind: Any) -> Any:
    """A type as the parser knows it: a date is read as a time first."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _readable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    if pa.types.is_date(kind):
        return pa.timestamp("s")
    if any(is_kind(kind) for is_kind in (*_PARSED_TOO, pa.types.is_string, pa.types.is_timestamp)):
        return kind
    raise InvalidRequest(
        f"option schema cannot have {kind}: read the column data and use from_json",
        field="schema",
        expected="numbers, booleans, strings, dates, timestamps, structs and arrays",
    )


def _parse(texts: Any, fields: Any, kind: Any) -> tuple[Any, Any]:
    count = len(texts)
    if not count:
        return pa.nulls(0, kind), pa.nulls(0, pa.string())
    joined = pc.binary_join(pa.LargeListArray.from_arrays([0, count], texts), "\n")[0].as_buffer()
    try:
        table = _read(joined, fields)
        assert table.num_rows == count, "each text is one JSON value"
        return table.select(fields.names).to_struct_array().combine_chunks().cast(kind), pa.nulls(count, pa.string())
    except pa.ArrowException:
        if count == 1:
            return pa.nulls(1, kind), texts
    halves = [_parse(half, fields, kind) for half in (texts[: count // 2], texts[count // 2 :])]
    return pa.concat_arrays([each[0] for each in halves]), pa.concat_arrays([each[1] for each in halves])


def _read(text: Any, fields: Any | None) -> Any:
    """Texts with line breaks between them as a table, in one block: they are in memory already."""
    return pj.read_json(
        pa.py_buffer(text),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 64),
        parse_options=pj.ParseOptions(
            explicit_schema=fields,
            newlines_in_values=True,
            unexpected_field_behavior="infer" if fields is None else "ignore",
        ),
    )
